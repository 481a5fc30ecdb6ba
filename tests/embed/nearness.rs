//! How near vectors are to those of a 64-bit oracle.

use framebatch::Storage;

pub(crate) fn cosine(a: &[f32], b: &[f64]) -> f64 {
    let dot = |a: &mut dyn Iterator<Item = (f64, f64)>| a.map(|(a, b)| a * b).sum::<f64>();
    let wide = || a.iter().map(|x| f64::from(*x));
    let length = dot(&mut wide().zip(wide())) * dot(&mut b.iter().copied().zip(b.iter().copied()));
    dot(&mut wide().zip(b.iter().copied())) / length.sqrt()
}

pub(crate) fn farthest(a: &[f32], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let apart = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - b).abs());
    apart.fold(0.0, f64::max)
}

/// Holds an embedding to the exact one.
pub(crate) fn hold(what: &str, dtype: Storage, given: &[f32], exact: &[f64]) {
    let (apart, cosine) = (farthest(given, exact), cosine(given, exact));
    let is_near = match dtype {
        Storage::F32 => apart <= 2e-6,
        Storage::F16 => cosine >= 0.99999,
        Storage::Bf16 | Storage::Int8 => cosine >= 0.999,
        Storage::Int4 => cosine >= 0.9,
        Storage::Auto => unreachable!("tests say what they want"),
    };
    assert!(
        is_near,
        "{what}, {dtype:?}: {apart:e} apart, cosine {cosine}"
    );
}
