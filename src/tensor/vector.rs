//! Packs vectors of an index, with a scale for each whole vector.
//!
//! Tensors have scales for groups of elements: `Packing`. How the vectors of an index lie in its
//! pages is not said here.

use super::Packing;

/// A vector at length 1; one of length 0 stays as it is.
pub fn unit_vector(vector: &[f32]) -> Vec<f32> {
    let squares = vector.iter().map(|x| f64::from(*x) * f64::from(*x));
    let length = squares.sum::<f64>().sqrt();
    let scaled = |x: &f32| match length {
        0.0 => 0.0,
        #[expect(clippy::cast_possible_truncation, reason = "rounded to a float")]
        length => (f64::from(*x) / length) as f32,
    };
    vector.iter().map(scaled).collect()
}

/// The scale of a vector, and its words: those of so many elements, with 0 behind the end of the
/// vector.
pub fn pack_vector(packing: Option<Packing>, floats: &[f32], elements: u32) -> (u32, Vec<u32>) {
    let mut padded: Vec<u32> = floats.iter().map(|x| x.to_bits()).collect();
    padded.resize(elements as usize, 0);
    match packing {
        None => (0, padded),
        Some(Packing::Int8 | Packing::Int4) => {
            let largest = floats.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
            let scale = vector_scale(largest);
            let words = padded.chunks_exact(4).map(|four| {
                let bytes = [0, 1, 2, 3].map(|k| whole(f32::from_bits(four[k]), scale));
                u32::from_le_bytes(bytes)
            });
            (scale.to_bits(), words.collect())
        }
        // 16-bit floats hold every float.
        Some(halves) => (0, halves.pack(&padded).unwrap_or_default()),
    }
}

/// The scale of an Int8 vector whose largest magnitude is this.
#[expect(clippy::cast_possible_truncation, reason = "rounded to a float")]
pub fn vector_scale(largest: f32) -> f32 {
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
