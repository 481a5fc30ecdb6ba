//! Packs vectors of an index, with a scale for each whole vector.
//!
//! Tensors have scales for groups of elements: `tensor::Packing`.

use super::IndexConfig;
use crate::graph::searching::elements;
use crate::tensor::Packing;

/// The scale of a vector, and its words.
pub(super) fn pack(config: &IndexConfig, floats: &[f32]) -> (u32, Vec<u32>) {
    let mut padded: Vec<u32> = floats.iter().map(|x| x.to_bits()).collect();
    let elements = config.quads() * elements(config.packing);
    padded.resize(elements as usize, 0);
    match config.packing {
        None => (0, padded),
        Some(Packing::Int8) => {
            let largest = floats.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
            let scale = scale_of(largest);
            let words = padded.chunks_exact(4).map(|four| {
                let bytes = [0, 1, 2, 3].map(|k| whole(f32::from_bits(four[k]), scale));
                u32::from_le_bytes(bytes)
            });
            (scale.to_bits(), words.collect())
        }
        // No float is refused: `IndexConfig::check` bounds them all.
        Some(halves) => (0, halves.pack(&padded).unwrap_or_default()),
    }
}

/// The scale of an Int8 vector whose largest magnitude is this.
#[expect(clippy::cast_possible_truncation, reason = "rounded to a float")]
pub(super) fn scale_of(largest: f32) -> f32 {
    (f64::from(largest) / 127.0) as f32
}

/// The whole number that stands for a float, as a byte.
#[expect(clippy::cast_possible_truncation, reason = "at most 127 either way")]
fn whole(x: f32, scale: f32) -> u8 {
    if scale == 0.0 {
        return 0;
    }
    let q = (f64::from(x) / f64::from(scale)).round_ties_even();
    (q.clamp(-127.0, 127.0) as i8).cast_unsigned()
}
