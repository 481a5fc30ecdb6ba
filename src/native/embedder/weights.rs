//! The tensors of a model's safetensors files, all of which are checked before the first one goes
//! to the device.

use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use super::files::{Blob, ModelFiles, refuse};
use super::json::parse;
use crate::device::DeviceInfo;
use crate::embed::{Config, Part, Role, Source, Weight, prefixes};
use crate::error::Error;
use crate::native::storage::{Contents, Storage, TensorData};
use crate::tensor::Packing;

/// The most bytes of a header, as in the format's own library.
const MAX_HEADER: u64 = 100_000_000;

/// The files that a model's tensors are in. All tensors were found, with their shapes.
#[derive(Debug)]
pub(super) struct StoredWeights<'a> {
    files: Vec<WeightFile<'a>>,
    /// The packing of a converted folder's blocks, of several the one with the fewest bits; `None`
    /// where no file has blocks.
    pub(super) blocks: Option<Packing>,
}

impl<'a> StoredWeights<'a> {
    /// Reads the headers of the files, and checks that these tensors are there.
    pub(super) fn open(
        files: &ModelFiles<'a>,
        config: &Config,
        weights: &[Weight],
    ) -> Result<StoredWeights<'a>, Error> {
        let mut stored = StoredWeights {
            files: Vec::new(),
            blocks: None,
        };
        for weight in weights.iter().filter(|weight| !weight.parts.is_empty()) {
            let name = weight.source.file();
            if !stored.files.iter().any(|file| file.name == name) {
                let mut file = WeightFile::open(files, name)?;
                file.find_prefix(config, weight);
                stored.files.push(file);
            }
            for part in &weight.parts {
                match stored.of(weight).kind(weight, part)? {
                    Kind::Blocks(packing) if stored.blocks != Some(Packing::Int4) => {
                        stored.blocks = Some(packing);
                    }
                    _ => {}
                }
            }
        }
        Ok(stored)
    }

    /// Reads a tensor in the format that suits this device.
    pub(super) fn contents(
        &mut self,
        config: &Config,
        weight: &Weight,
        info: &DeviceInfo,
        dtype: Storage,
    ) -> Result<Contents, Error> {
        if let Some(floats) = weight.role.computed(config) {
            return TensorData::Floats(&floats).contents(Storage::F32, info);
        }
        let blocks = self.blocks;
        let file = self.of(weight);
        if weight.role.is_laid_out() {
            let floats = weight.role.lay_out(config, file.floats(weight)?);
            return TensorData::Floats(&floats).contents(Storage::F32, info);
        }
        match blocks.zip(file.blocks(weight)?) {
            None => file.contents(weight, info, dtype),
            Some((of_folder, packing)) => {
                file.check_dtype(weight, of_folder, dtype)?;
                file.blocks_as_they_are(weight, packing)
            }
        }
    }

    /// Whether this packing keeps fewer bits of a tensor than the file has.
    pub(super) fn loses(&self, weight: &Weight, packing: Option<Packing>) -> bool {
        let file = self
            .files
            .iter()
            .find(|file| file.name == weight.source.file());
        let as_it_is = match packing {
            None => return false,
            Some(Packing::F16) => Some(Kind::F16),
            Some(Packing::Bf16) => Some(Kind::Bf16),
            Some(blocks) => Some(Kind::Blocks(blocks)),
        };
        let is_kept = |file: &WeightFile<'_>| {
            let mut parts = weight.parts.iter();
            parts.all(|part| file.kind(weight, part).ok() == as_it_is)
        };
        !file.is_some_and(is_kept)
    }

    /// A tensor with all bits of its file, as 32-bit floats.
    pub(super) fn floats_of(&mut self, weight: &Weight) -> Result<Vec<f32>, Error> {
        self.of(weight).floats(weight)
    }

    /// Rows of a table, which has one part, with all bits of its file.
    pub(super) fn rows(&mut self, table: &Weight, rows: &[u32]) -> Result<Vec<f32>, Error> {
        self.of(table).rows(table, rows)
    }

    fn of(&mut self, weight: &Weight) -> &mut WeightFile<'a> {
        let name = weight.source.file();
        let file = self.files.iter_mut().find(|file| file.name == name);
        file.expect("every weight's file was opened")
    }
}

/// A file whose header was read.
#[derive(Debug)]
pub(super) struct WeightFile<'a> {
    name: String,
    pub(super) blob: Blob<'a>,
    pub(super) header: Metadata,
    /// Where the data begins.
    data: u64,
    prefix: &'static str,
}

/// The format of a file's floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    F32,
    F16,
    Bf16,
    /// Blocks of this packing, as a converted folder has them.
    Blocks(Packing),
}

/// Elements of a block.
pub(super) const BLOCK: u32 = 64;

impl<'a> WeightFile<'a> {
    /// Reads the header and checks it against the length of the file.
    pub(super) fn open(files: &ModelFiles<'a>, name: &str) -> Result<WeightFile<'a>, Error> {
        let Some(mut blob) = files.open(name)? else {
            return Err(refuse(name, "is missing"));
        };
        let mut length = [0; 8];
        if blob.len() < 8 {
            return Err(refuse(name, "is shorter than the length of its header"));
        }
        blob.read(0, &mut length)?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER.min(blob.len() - 8) {
            return Err(refuse(
                name,
                &format!(
                    "its header of {length} bytes is longer than the file or {MAX_HEADER} bytes; download it again"
                ),
            ));
        }
        let mut header = vec![0; usize::try_from(length).unwrap_or(0)];
        blob.read(8, &mut header)?;
        // Names, offsets without gaps or overlaps, and sizes that suit the shapes.
        let header = parse(&header).and_then(serde_json::from_value::<Metadata>);
        let header =
            header.map_err(|error| refuse(name, &format!("its header is not good: {error}")))?;
        check_shapes(name, &header)?;
        let (data, wanted) = (8 + length, header.data_len() as u64);
        if blob.len() - data != wanted {
            return Err(refuse(
                name,
                &format!(
                    "has {} bytes of data, but its header speaks of {wanted}; download it again",
                    blob.len() - data
                ),
            ));
        }
        Ok(WeightFile {
            name: name.into(),
            blob,
            header,
            data,
            prefix: "",
        })
    }

    /// The elements' type, the shape and the bytes of a tensor of this name, which is there.
    pub(super) fn whole(&mut self, name: &str) -> Result<(Dtype, Vec<usize>, Vec<u8>), Error> {
        let Some(info) = self.header.info(name) else {
            return Err(refuse(&self.name, &named(name, "is missing")));
        };
        let (begin, end) = info.data_offsets;
        let (dtype, shape) = (info.dtype, info.shape.clone());
        let mut bytes = vec![0; end - begin];
        self.blob.read(self.data + begin as u64, &mut bytes)?;
        Ok((dtype, shape, bytes))
    }

    /// Looks for the prefix that the names of an encoder's tensors have, by the first of them.
    fn find_prefix(&mut self, config: &Config, first: &Weight) {
        if first.source == Source::Encoder {
            let has = |prefix: &&str| {
                let name = [prefix, first.parts[0].name.as_str()].concat();
                self.header.info(&name).is_some()
            };
            let mut known = prefixes(config).iter().copied();
            self.prefix = known.find(has).unwrap_or_default();
        }
    }

    fn contents(
        &mut self,
        weight: &Weight,
        info: &DeviceInfo,
        dtype: Storage,
    ) -> Result<Contents, Error> {
        let kinds = weight.parts.iter().map(|part| self.kind(weight, part));
        let kinds = kinds.collect::<Result<Vec<Kind>, Error>>()?;
        let storage = match (weight.role, dtype) {
            (Role::Matrix, Storage::Auto) if info.software => Storage::F32,
            (Role::Matrix, Storage::Auto) => match kinds[..] {
                _ if info.engine == crate::device::Engine::Cpu => Storage::F32,
                [Kind::F16, ..] => Storage::F16,
                [Kind::Bf16, ..] => Storage::Bf16,
                _ => Storage::Auto,
            },
            (Role::Matrix, dtype) => dtype,
            _ => Storage::F32,
        };
        let as_it_is = match storage {
            Storage::F16 => Kind::F16,
            Storage::Bf16 => Kind::Bf16,
            _ => Kind::F32,
        };
        if as_it_is != Kind::F32 && kinds.iter().all(|kind| *kind == as_it_is) {
            let halves = self.read::<u16>(weight)?;
            return TensorData::Halves(&halves).contents(storage, info);
        }
        let floats = self.floats(weight)?;
        TensorData::Floats(&floats)
            .contents(storage, info)
            .map_err(|error| match error {
                Error::InvalidInput(problem) => {
                    refuse(&self.name, &named(&weight.parts[0].name, &problem))
                }
                other => other,
            })
    }

    /// The packing of a tensor of blocks; `None` for any other.
    fn blocks(&self, weight: &Weight) -> Result<Option<Packing>, Error> {
        let kinds = weight.parts.iter().map(|part| self.kind(weight, part));
        let kinds = kinds.collect::<Result<Vec<Kind>, Error>>()?;
        let blocks = kinds.iter().find_map(|kind| match kind {
            Kind::Blocks(packing) => Some(*packing),
            Kind::F32 | Kind::F16 | Kind::Bf16 => None,
        });
        match blocks {
            Some(packing) if kinds.iter().any(|kind| *kind != Kind::Blocks(packing)) => {
                let problem = [
                    "has parts as ",
                    packing.name(),
                    " and others; convert the folder again",
                ];
                Err(refuse(
                    &self.name,
                    &named(&weight.parts[0].name, &problem.concat()),
                ))
            }
            blocks => Ok(blocks),
        }
    }

    /// Refuses a dtype in which a converted folder, with blocks of this packing, cannot be had.
    fn check_dtype(
        &self,
        weight: &Weight,
        of_folder: Packing,
        dtype: Storage,
    ) -> Result<(), Error> {
        match (of_folder, dtype) {
            (_, Storage::Auto)
            | (Packing::Int8, Storage::Int8)
            | (Packing::Int4, Storage::Int4) => Ok(()),
            _ => Err(Error::Unsupported(format!(
                "{}: tensor {} is stored as {}, which cannot be had as {dtype:?}; open it with Storage::Auto, or open the folder that it was converted from",
                self.name,
                weight.parts[0].name,
                of_folder.name(),
            ))),
        }
    }

    /// The bytes of a tensor of blocks of this packing.
    fn blocks_as_they_are(&mut self, weight: &Weight, packing: Packing) -> Result<Contents, Error> {
        let mut words = Vec::new();
        for part in &weight.parts {
            let (from, to) = self.info(weight, part)?.data_offsets;
            let mut blocks = vec![0_u32; (to - from) / 4];
            let at = self.data + from as u64;
            self.blob.read(at, bytemuck::cast_slice_mut(&mut blocks))?;
            words.append(&mut blocks);
        }
        Ok(Contents {
            words: std::sync::Arc::new(words),
            packing: Some(packing),
            row: 0,
        })
    }

    /// All parts of a tensor as 32-bit floats, end to end.
    fn floats(&mut self, weight: &Weight) -> Result<Vec<f32>, Error> {
        let mut floats = Vec::new();
        for part in &weight.parts {
            let one = Weight {
                parts: vec![part.clone()],
                ..weight.clone()
            };
            match self.kind(weight, part)? {
                Kind::F32 => floats.append(&mut self.read::<f32>(&one)?),
                Kind::F16 => widen(Packing::F16, &self.read(&one)?, &mut floats),
                Kind::Bf16 => widen(Packing::Bf16, &self.read(&one)?, &mut floats),
                Kind::Blocks(packing) => {
                    let problem = [
                        "is stored as ",
                        packing.name(),
                        ", where it has to have all bits",
                    ];
                    return Err(refuse(&self.name, &named(&part.name, &problem.concat())));
                }
            }
        }
        Ok(floats)
    }

    /// Rows of a table as 32-bit floats, end to end.
    fn rows(&mut self, table: &Weight, rows: &[u32]) -> Result<Vec<f32>, Error> {
        let part = &table.parts[0];
        let kind = self.kind(table, part)?;
        let from = self.data + self.info(table, part)?.data_offsets.0 as u64;
        let width = table.dims[1] as usize;
        let mut floats = Vec::with_capacity(rows.len() * width);
        for row in rows {
            let mut read = |values: &mut [u8]| {
                let at = u64::from(*row) * values.len() as u64;
                self.blob.read(from + at, values)
            };
            if kind == Kind::F32 {
                let mut values = vec![0.0; width];
                read(bytemuck::cast_slice_mut(&mut values))?;
                floats.append(&mut values);
                continue;
            }
            let mut halves = vec![0_u16; width];
            read(bytemuck::cast_slice_mut(&mut halves))?;
            let packing = match kind {
                Kind::Bf16 => Packing::Bf16,
                _ => Packing::F16,
            };
            widen(packing, &halves, &mut floats);
        }
        Ok(floats)
    }

    /// All parts of a tensor, end to end.
    fn read<T: bytemuck::Pod>(&mut self, weight: &Weight) -> Result<Vec<T>, Error> {
        let count = |part: &Part| part.dims.iter().product::<u32>() as usize;
        let mut values = vec![T::zeroed(); weight.parts.iter().map(count).sum()];
        let mut rest = &mut values[..];
        for part in &weight.parts {
            let values = rest.split_off_mut(..count(part)).expect("counted above");
            let from = self.info(weight, part)?.data_offsets.0 as u64;
            let at = self.data + from;
            self.blob.read(at, bytemuck::cast_slice_mut(values))?;
        }
        Ok(values)
    }

    fn info(&self, weight: &Weight, part: &Part) -> Result<&TensorInfo, Error> {
        let name = match weight.source {
            Source::Encoder => [self.prefix, &part.name].concat(),
            Source::Head | Source::Module(_) => part.name.clone(),
        };
        let info = self.header.info(&name);
        info.ok_or_else(|| refuse(&self.name, &named(&name, "is missing")))
    }

    /// Checks a part; the format of its elements.
    fn kind(&self, weight: &Weight, part: &Part) -> Result<Kind, Error> {
        let info = self.info(weight, part)?;
        let mut dims = part.dims.clone();
        let blocks = packing_of(info).filter(|_| weight.role == Role::Matrix);
        if let Some(packing) = blocks {
            dims = dims_of_blocks(packing, &dims);
        }
        let mut given = info.shape.iter().map(|dim| u32::try_from(*dim));
        if info.shape.len() != dims.len() || !dims.iter().all(|dim| given.next() == Some(Ok(*dim)))
        {
            let problem = format!(
                "has shape {:?}, but by config.json it must have {dims:?}",
                info.shape
            );
            return Err(refuse(&self.name, &named(&part.name, &problem)));
        }
        match (info.dtype, blocks) {
            (_, Some(packing)) => Ok(Kind::Blocks(packing)),
            (Dtype::F32, _) => Ok(Kind::F32),
            (Dtype::F16, _) => Ok(Kind::F16),
            (Dtype::BF16, _) => Ok(Kind::Bf16),
            (other, None) => {
                let problem = format!("has elements of {other:?}; F32, F16 and BF16 are read");
                Err(refuse(&self.name, &named(&part.name, &problem)))
            }
        }
    }
}

/// The packing whose blocks a tensor of a file holds, by the bytes of one.
fn packing_of(info: &TensorInfo) -> Option<Packing> {
    let holds = |packing: &Packing| {
        let bytes = packing.words(BLOCK) as usize * 4;
        info.dtype == Dtype::U8 && info.shape.last() == Some(&bytes)
    };
    [Packing::Int8, Packing::Int4].into_iter().find(holds)
}

/// The shape of a matrix of these dimensions as blocks of this packing.
fn dims_of_blocks(packing: Packing, dims: &[u32]) -> Vec<u32> {
    let elements: u64 = dims.iter().map(|dim| u64::from(*dim)).product();
    let blocks = u32::try_from(elements.div_ceil(BLOCK.into()));
    vec![blocks.unwrap_or(u32::MAX), packing.words(BLOCK) * 4]
}

/// Refuses numbers of elements that not every reader can count, where one dimension is 0.
fn check_shapes(file: &str, header: &Metadata) -> Result<(), Error> {
    const MOST: usize = (1 << 53) - 1;
    for name in header.offset_keys() {
        let Some(info) = header.info(&name) else {
            continue;
        };
        let mut elements = Some(1_usize);
        for dim in &info.shape {
            elements = elements
                .filter(|_| *dim <= MOST)
                .and_then(|elements| elements.checked_mul(*dim))
                .filter(|elements| *elements <= MOST);
        }
        if elements.is_none() {
            let problem = format!("has too many elements in shape {:?}", info.shape);
            return Err(refuse(file, &named(&name, &problem)));
        }
    }
    Ok(())
}

fn widen(packing: Packing, halves: &[u16], floats: &mut Vec<f32>) {
    let words = halves.chunks(2).map(|pair| {
        let high = pair.get(1).copied().unwrap_or_default();
        u32::from(pair[0]) | u32::from(high) << 16
    });
    let words: Vec<u32> = words.collect();
    let bits = packing.unpack(&words);
    floats.extend(
        bits.iter()
            .take(halves.len())
            .map(|bits| f32::from_bits(*bits)),
    );
}

fn named(tensor: &str, problem: &str) -> String {
    ["tensor ", tensor, " ", problem].concat()
}
