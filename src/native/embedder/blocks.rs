//! The tensors of `model.safetensors`, with matrices in blocks of whole numbers and scales, as
//! devices keep them.

use safetensors::tensor::{Dtype, TensorView};

use super::files::{ModelFiles, refuse};
use super::weights::{BLOCK, WeightFile};
use crate::error::Error;
use crate::tensor::Packing;

/// The file that every model has.
pub(super) const WEIGHTS: &str = "model.safetensors";

/// A matrix that can be written in blocks.
pub(super) struct Matrix {
    /// The layer that it is of, if it is of one.
    pub(super) layer: Option<u32>,
    /// Whether it has the most elements of all.
    pub(super) is_largest: bool,
}

/// The tensors of a file, of which some are matrices.
pub(super) struct Matrices<'a> {
    file: WeightFile<'a>,
    /// The tensors' names, in the order of their bytes.
    names: Vec<String>,
    /// The place of the largest matrix.
    largest: Option<usize>,
}

/// A tensor as it is written.
struct Written {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl<'a> Matrices<'a> {
    /// Reads the header of the file.
    pub(super) fn open(files: &ModelFiles<'a>) -> Result<Matrices<'a>, Error> {
        let file = WeightFile::open(files, WEIGHTS)?;
        let names = file.header.offset_keys();
        let mut matrices = Matrices {
            file,
            names,
            largest: None,
        };
        let mut most = 0;
        for at in 0..matrices.names.len() {
            let elements = matrices.elements(at);
            if elements > most {
                (most, matrices.largest) = (elements, Some(at));
            }
        }
        Ok(matrices)
    }

    /// Bytes of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.file.blob.len()
    }

    /// How many layers the tensors are of.
    pub(super) fn layers(&self) -> u32 {
        let layers = self.names.iter().filter_map(|name| layer_of(name));
        layers.max().map_or(0, |last| last + 1)
    }

    /// The bytes of a file of the same tensors, with each matrix in these blocks.
    pub(super) fn written(
        &mut self,
        packing_of: impl Fn(&Matrix) -> Packing,
    ) -> Result<Vec<u8>, Error> {
        let all = (0..self.names.len()).map(|at| {
            let packing = (self.elements(at) > 0).then(|| {
                packing_of(&Matrix {
                    layer: layer_of(&self.names[at]),
                    is_largest: self.largest == Some(at),
                })
            });
            self.tensor(at, packing)
        });
        let all = all.collect::<Result<Vec<Written>, Error>>()?;
        let views = all.iter().map(|tensor| {
            let view = TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes);
            view.map(|view| (&tensor.name[..], view))
        });
        let views = views.collect::<Result<Vec<_>, _>>();
        let file = views.and_then(|views| safetensors::serialize(views, None));
        file.map_err(|error| refuse(WEIGHTS, &error.to_string()))
    }

    /// Elements of a matrix; 0 of what is none, or would leave a block open, because another part of
    /// the same weight may follow.
    fn elements(&self, at: usize) -> usize {
        let name = &self.names[at];
        let Some(info) = self.file.header.info(name) else {
            return 0;
        };
        let is_known = matches!(info.dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16);
        // A bias for each distance is kept in 32 bits.
        let is_weight = name.ends_with(".weight") && !name.contains("relative_attention_bias");
        match info.shape[..] {
            [rows, columns] if is_known && is_weight => {
                let elements = rows * columns;
                let is_full = elements.is_multiple_of(BLOCK as usize);
                if is_full { elements } else { 0 }
            }
            _ => 0,
        }
    }

    fn tensor(&mut self, at: usize, packing: Option<Packing>) -> Result<Written, Error> {
        let name = self.names[at].clone();
        let (dtype, shape, bytes) = self.file.whole(&name)?;
        let Some(packing) = packing else {
            return Ok(Written {
                name,
                dtype,
                shape,
                bytes,
            });
        };
        let floats = floats(dtype, &bytes);
        let words = packing.pack(&floats).map_err(|error| match error {
            Error::InvalidInput(problem) => refuse(WEIGHTS, &[&name, ": ", &problem[..]].concat()),
            other => other,
        })?;
        let block = packing.words(BLOCK) as usize * 4;
        Ok(Written {
            name,
            dtype: Dtype::U8,
            shape: vec![floats.len() / BLOCK as usize, block],
            bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        })
    }
}

/// The bits of the 32-bit floats that the bytes of a file stand for.
fn floats(dtype: Dtype, bytes: &[u8]) -> Vec<u32> {
    let words = |of: &[u8]| -> Vec<u32> {
        let four = |bytes: &[u8]| {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            u32::from_le_bytes(word)
        };
        of.chunks(4).map(four).collect()
    };
    match dtype {
        Dtype::F16 => Packing::F16.unpack(&words(bytes)),
        Dtype::BF16 => Packing::Bf16.unpack(&words(bytes)),
        _ => words(bytes),
    }
}

/// The first number of a name, as in `encoder.layer.5.output.dense.weight`.
fn layer_of(name: &str) -> Option<u32> {
    let mut parts = name.split('.');
    parts.next_back();
    parts.find_map(|part| part.parse().ok())
}
