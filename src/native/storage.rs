//! The formats in which a tensor's data may be given and kept. How a format is made is the matter
//! of `tensor::Packing`.

use std::sync::Arc;

use crate::device::{DeviceInfo, Engine};
use crate::error::Error;
use crate::tensor::Packing;

/// The format in which the device keeps a tensor's floats. Sums are in 32-bit floats whatever the
/// format is. [`Gpu::tensor_as`](super::Gpu::tensor_as) has an example.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// 32-bit floats, as they are given.
    #[default]
    F32,
    /// 16-bit IEEE floats, in half the memory: off by at most 2⁻¹¹ of magnitudes
    /// from 2⁻¹⁴ to 65,504 and by 2⁻²⁵ below, where a device may also give 0; from
    /// 65,520 on infinite.
    F16,
    /// The upper halves of 32-bit floats, rounded: off by at most 2⁻⁸ of the
    /// magnitude, in the whole range.
    Bf16,
    /// 8-bit numbers with a 16-bit scale for each 32 neighbors in row-major order,
    /// in 0.27 of the memory: off by at most 1/253 of the largest magnitude
    /// among the 32, or 2⁻²².
    Int8,
    /// 4-bit numbers with a 16-bit scale for each 32 neighbors in row-major order, in 0.14 of the
    /// memory: off by at most 1/5 of the largest magnitude among the 32, and by a tenth or less
    /// for nearly all of them, or 2⁻²².
    Int4,
    /// [`Storage::F16`] on a GPU that is none in software, for tensors of 16,384
    /// elements or more in which no finite value is too large for it; otherwise
    /// [`Storage::F32`]. A tensor keeps what it was made with.
    Auto,
}

/// Elements from which on [`Storage::Auto`] packs.
const LARGE: usize = 16_384;

/// Magnitudes from here on are infinite as 16-bit floats.
const TOO_LARGE: f32 = 65_520.0;

/// What a tensor is made of.
#[derive(Clone, Copy, Debug)]
pub enum TensorData<'a> {
    /// 32-bit floats.
    Floats(&'a [f32]),
    /// The bits of 16-bit floats, of [`Storage::F16`] or [`Storage::Bf16`].
    Halves(&'a [u16]),
}

impl<'a> From<&'a [f32]> for TensorData<'a> {
    fn from(floats: &'a [f32]) -> Self {
        TensorData::Floats(floats)
    }
}

impl<'a> From<&'a Vec<f32>> for TensorData<'a> {
    fn from(floats: &'a Vec<f32>) -> Self {
        TensorData::Floats(floats)
    }
}

impl<'a, const N: usize> From<&'a [f32; N]> for TensorData<'a> {
    fn from(floats: &'a [f32; N]) -> Self {
        TensorData::Floats(floats)
    }
}

impl<'a> From<&'a [u16]> for TensorData<'a> {
    fn from(halves: &'a [u16]) -> Self {
        TensorData::Halves(halves)
    }
}

impl<'a> From<&'a Vec<u16>> for TensorData<'a> {
    fn from(halves: &'a Vec<u16>) -> Self {
        TensorData::Halves(halves)
    }
}

impl<'a, const N: usize> From<&'a [u16; N]> for TensorData<'a> {
    fn from(halves: &'a [u16; N]) -> Self {
        TensorData::Halves(halves)
    }
}

/// Data in the format in which the device keeps it. Sessions with the same data share the memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    pub(super) words: Arc<Vec<u32>>,
    pub(super) packing: Option<Packing>,
    /// Words of a row along the first axis; 0 where all rows must lie in one buffer.
    pub(super) row: u32,
}

impl TensorData<'_> {
    /// Number of elements.
    pub(super) fn len(self) -> usize {
        match self {
            TensorData::Floats(floats) => floats.len(),
            TensorData::Halves(halves) => halves.len(),
        }
    }

    /// The data in the format that is asked for.
    pub(super) fn contents(self, storage: Storage, info: &DeviceInfo) -> Result<Contents, Error> {
        let packing = match storage {
            Storage::F32 => None,
            Storage::F16 => Some(Packing::F16),
            Storage::Bf16 => Some(Packing::Bf16),
            Storage::Int8 => Some(Packing::Int8),
            Storage::Int4 => Some(Packing::Int4),
            Storage::Auto => self.suits_f16(info).then_some(Packing::F16),
        };
        let words = match (self, packing) {
            (TensorData::Floats(floats), None) => bytemuck::cast_slice(floats).to_vec(),
            (TensorData::Floats(floats), Some(packing)) => {
                packing.pack(bytemuck::cast_slice(floats))?
            }
            (TensorData::Halves(halves), Some(Packing::F16 | Packing::Bf16))
                if storage != Storage::Auto =>
            {
                let pairs = halves.chunks(2);
                let word = |pair: &[u16]| {
                    let high = pair.get(1).copied().unwrap_or_default();
                    u32::from(pair[0]) | u32::from(high) << 16
                };
                pairs.map(word).collect()
            }
            (TensorData::Halves(_), _) => {
                return Err(refuse("16-bit data is f16 or bf16; say which"));
            }
        };
        Ok(Contents {
            words: Arc::new(words),
            packing,
            row: 0,
        })
    }

    fn suits_f16(self, info: &DeviceInfo) -> bool {
        let TensorData::Floats(floats) = self else {
            return false;
        };
        let fits = |x: &f32| x.abs() < TOO_LARGE || !x.is_finite();
        info.engine == Engine::Gpu
            && !info.software
            && floats.len() >= LARGE
            && floats.iter().all(fits)
    }
}

fn refuse(problem: &str) -> Error {
    Error::InvalidInput(format!("tensor: {problem}"))
}
