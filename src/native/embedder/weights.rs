//! The tensors of a safetensors file, all of which are checked before the first one goes to the
//! device.

use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use super::files::{Blob, ModelFiles, refuse};
use super::json::parse;
use crate::device::DeviceInfo;
use crate::embed::{PREFIXES, Role, Weight};
use crate::error::Error;
use crate::native::storage::{Contents, Storage, TensorData};
use crate::tensor::Packing;

/// The name of the file.
const FILE: &str = "model.safetensors";

/// The most bytes of a header, as in the format's own library.
const MAX_HEADER: u64 = 100_000_000;

/// A file whose header was read.
#[derive(Debug)]
pub(super) struct WeightFile<'a> {
    blob: Blob<'a>,
    header: Metadata,
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
}

impl<'a> WeightFile<'a> {
    /// Reads the header and checks it against the length of the file.
    pub(super) fn open(files: &ModelFiles<'a>) -> Result<WeightFile<'a>, Error> {
        let Some(mut blob) = files.open(FILE)? else {
            return Err(refuse(FILE, "is missing"));
        };
        let mut length = [0; 8];
        if blob.len() < 8 {
            return Err(refuse(FILE, "is shorter than the length of its header"));
        }
        blob.read(0, &mut length)?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER.min(blob.len() - 8) {
            return Err(refuse(
                FILE,
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
            header.map_err(|error| refuse(FILE, &format!("its header is not good: {error}")))?;
        check_shapes(&header)?;
        let (data, wanted) = (8 + length, header.data_len() as u64);
        if blob.len() - data != wanted {
            return Err(refuse(
                FILE,
                &format!(
                    "has {} bytes of data, but its header speaks of {wanted}; download it again",
                    blob.len() - data
                ),
            ));
        }
        Ok(WeightFile {
            blob,
            header,
            data,
            prefix: "",
        })
    }

    /// Checks that the file has all of these tensors, in these shapes.
    pub(super) fn check(&mut self, weights: &[Weight]) -> Result<(), Error> {
        let Some(first) = weights.first() else {
            return Ok(());
        };
        let has = |prefix: &&str| {
            let name = [prefix, first.parts[0].as_str()].concat();
            self.header.info(&name).is_some()
        };
        self.prefix = PREFIXES.into_iter().find(has).unwrap_or_default();
        for weight in weights {
            for part in &weight.parts {
                self.kind(weight, part)?;
            }
        }
        Ok(())
    }

    /// Reads a tensor in the format that suits this device.
    pub(super) fn contents(
        &mut self,
        weight: &Weight,
        info: &DeviceInfo,
        dtype: Storage,
    ) -> Result<Contents, Error> {
        let kinds = weight.parts.iter().map(|part| self.kind(weight, part));
        let kinds = kinds.collect::<Result<Vec<Kind>, Error>>()?;
        let storage = match (weight.role, dtype) {
            (Role::Vector, _) => Storage::F32,
            (Role::Matrix, Storage::Auto) if info.software => Storage::F32,
            (Role::Matrix, Storage::Auto) => match kinds[..] {
                _ if info.engine == crate::device::Engine::Cpu => Storage::F32,
                [Kind::F16, ..] => Storage::F16,
                [Kind::Bf16, ..] => Storage::Bf16,
                _ => Storage::Auto,
            },
            (Role::Matrix, dtype) => dtype,
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
        let mut floats = Vec::new();
        for (part, kind) in weight.parts.iter().zip(kinds) {
            let one = Weight {
                parts: vec![part.clone()],
                dims: weight.part_dims(),
                role: weight.role,
            };
            match kind {
                Kind::F32 => floats.append(&mut self.read::<f32>(&one)?),
                Kind::F16 => widen(Packing::F16, &self.read(&one)?, &mut floats),
                Kind::Bf16 => widen(Packing::Bf16, &self.read(&one)?, &mut floats),
            }
        }
        TensorData::Floats(&floats)
            .contents(storage, info)
            .map_err(|error| match error {
                Error::InvalidInput(problem) => refuse(FILE, &named(&weight.parts[0], &problem)),
                other => other,
            })
    }

    /// All parts of a tensor, end to end.
    fn read<T: bytemuck::Pod>(&mut self, weight: &Weight) -> Result<Vec<T>, Error> {
        let count: u32 = weight.dims.iter().product();
        let mut values = vec![T::zeroed(); count as usize];
        let each = values.len() / weight.parts.len();
        for (part, values) in weight.parts.iter().zip(values.chunks_mut(each.max(1))) {
            let from = self.info(part)?.data_offsets.0 as u64;
            let at = self.data + from;
            self.blob.read(at, bytemuck::cast_slice_mut(values))?;
        }
        Ok(values)
    }

    fn info(&self, part: &str) -> Result<&TensorInfo, Error> {
        let name = [self.prefix, part].concat();
        let info = self.header.info(&name);
        info.ok_or_else(|| refuse(FILE, &named(&name, "is missing")))
    }

    /// Checks a part; the format of its elements.
    fn kind(&self, weight: &Weight, part: &str) -> Result<Kind, Error> {
        let info = self.info(part)?;
        let dims = weight.part_dims();
        let mut given = info.shape.iter().map(|dim| u32::try_from(*dim));
        if info.shape.len() != dims.len() || !dims.iter().all(|dim| given.next() == Some(Ok(*dim)))
        {
            let problem = format!(
                "has shape {:?}, but by config.json it must have {dims:?}",
                info.shape
            );
            return Err(refuse(FILE, &named(part, &problem)));
        }
        match info.dtype {
            Dtype::F32 => Ok(Kind::F32),
            Dtype::F16 => Ok(Kind::F16),
            Dtype::BF16 => Ok(Kind::Bf16),
            other => {
                let problem = format!("has elements of {other:?}; F32, F16 and BF16 are read");
                Err(refuse(FILE, &named(part, &problem)))
            }
        }
    }
}

/// Refuses numbers of elements that not every reader can count, where one dimension is 0.
fn check_shapes(header: &Metadata) -> Result<(), Error> {
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
            return Err(refuse(FILE, &named(&name, &problem)));
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
