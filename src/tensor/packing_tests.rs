//! How far off packed floats are, by the definition of each format.

use super::*;

/// The value of a 16-bit float, by the definition of the format.
fn half_value(half: u32) -> f64 {
    let exponent = (half >> 10 & 31).cast_signed();
    let fraction = f64::from(half & 1023) / 1024.0;
    let magnitude = match exponent {
        0 => fraction * 2_f64.powi(-14),
        31 if fraction > 0.0 => f64::NAN,
        31 => f64::INFINITY,
        _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    };
    if half >> 15 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

fn same(a: f64, b: f64) -> bool {
    a == b && a.is_sign_negative() == b.is_sign_negative() || a.is_nan() && b.is_nan()
}

#[test]
fn every_16_bit_float_is_its_own() {
    for half in 0..1 << 16 {
        let float = f64::from(f32::from_bits(from_f16(half)));
        assert!(same(float, half_value(half)), "{half:#x} is {float}");
        if !float.is_nan() {
            assert_eq!(to_f16(from_f16(half)), half);
        }
    }
    assert!(half_value(to_f16(f32::NAN.to_bits())).is_nan());
}

#[test]
fn between_16_bit_floats_the_nearest_and_of_two_the_even_one_is_taken() {
    for half in 0..0x7bff_u32 {
        let (low, high) = (half_value(half), half_value(half + 1));
        let even = half + (half & 1);
        let middle = ((low + high) / 2.0) as f32;
        assert_eq!(to_f16(middle.to_bits()), even, "{middle}");
        assert_eq!(to_f16(middle.to_bits() - 1), half, "below {middle}");
        assert_eq!(to_f16(middle.to_bits() + 1), half + 1, "above {middle}");
        assert_eq!(to_f16((-middle).to_bits()), 0x8000 | even, "-{middle}");
    }
    for (float, half) in [
        (65_519.99, 0x7bff),
        (65_520.0, 0x7c00),
        (1e30, 0x7c00),
        (f32::INFINITY, 0x7c00),
        (1e-30, 0),
    ] {
        assert_eq!(to_f16(float.to_bits()), half, "{float}");
    }
}

#[test]
fn bf16_rounds_to_the_nearest_and_of_two_to_the_even_one() {
    for (bits, half) in [
        (0x3f80_0000, 0x3f80),
        (0x3f80_7fff, 0x3f80),
        (0x3f80_8000, 0x3f80),
        (0x3f80_8001, 0x3f81),
        (0x3f81_8000, 0x3f82),
        (0xbf81_8000, 0xbf82),
        (0x7f7f_ffff, 0x7f80),
        (0x7f80_0000, 0x7f80),
        (0xff80_0000, 0xff80),
        (0x7f80_0001, 0x7fc0),
        (0xffff_ffff, 0xffff),
    ] {
        assert_eq!(to_bf16(bits), half, "{bits:#x}");
    }
}

/// Floats of all magnitudes from 2^-20 to 2^12, and zeros.
fn floats(count: u32) -> Vec<f32> {
    let value = |i: u32| {
        let mixed = i.wrapping_mul(2_654_435_761);
        let fraction = f64::from(mixed >> 8) / f64::from(1 << 23) - 1.0;
        (fraction * 2_f64.powi((i / 64 % 32).cast_signed() - 20)) as f32
    };
    (0..count)
        .map(|i| if i % 97 == 0 { 0.0 } else { value(i) })
        .collect()
}

#[test]
fn each_format_is_as_far_off_as_it_says_and_no_further() {
    for count in [1, 2, 3, 31, 32, 33, 63, 64, 65, 5000] {
        let given = floats(count);
        let bits: Vec<u32> = given.iter().map(|x| x.to_bits()).collect();
        for packing in Packing::ALL {
            let words = packing.pack(&bits).expect("all are small");
            assert_eq!(words.len(), packing.words(count) as usize);
            let kept = packing.unpack(&words);
            assert!(kept.len() >= given.len());
            for (i, (x, kept)) in given.iter().zip(&kept).enumerate() {
                let x = f64::from(*x);
                let group = &given[i / 32 * 32..given.len().min(i / 32 * 32 + 32)];
                let largest = group
                    .iter()
                    .fold(0.0, |most: f64, x| most.max(x.abs().into()));
                let bound = match packing {
                    Packing::F16 => (x.abs() / 2048.0).max(2_f64.powi(-25)),
                    Packing::Bf16 => x.abs() / 256.0,
                    Packing::Int8 => (largest / 253.0).max(2_f64.powi(-22)),
                    Packing::Int4 => (largest / 5.0).max(2_f64.powi(-22)),
                };
                let kept = f64::from(f32::from_bits(*kept));
                assert!(
                    (x - kept).abs() <= bound,
                    "{x} became {kept} as {packing:?}"
                );
            }
        }
    }
}

#[test]
fn blocks_keep_what_they_made_and_refuse_what_they_cannot_hold() {
    let given: Vec<u32> = floats(640).iter().map(|x| x.to_bits()).collect();
    for (packing, held, refused) in [
        (Packing::Int8, 65_008.0, 65_009.0),
        (Packing::Int4, 4_094.9, 4_095.0),
    ] {
        let words = packing.pack(&given).expect("all are small");
        let once = packing.unpack(&words);
        let again = packing.pack(&once).expect("as small");
        assert!(same_floats(&packing.unpack(&again), &once), "{packing:?}");
        for (value, is_held) in [
            (held, true),
            (-held, true),
            (refused, false),
            (-refused, false),
            (f32::INFINITY, false),
            (f32::NAN, false),
        ] {
            let found = packing.pack(&[0, value.to_bits()]);
            assert_eq!(found.is_ok(), is_held, "{value} as {packing:?}");
        }
    }
}

/// Zeros are the same with either sign.
fn same_floats(a: &[u32], b: &[u32]) -> bool {
    a.iter()
        .map(|x| f32::from_bits(*x))
        .eq(b.iter().map(|x| f32::from_bits(*x)))
}

#[test]
fn four_bits_are_nearer_than_by_the_largest_alone() {
    let given = floats(6400);
    let bits: Vec<u32> = given.iter().map(|x| x.to_bits()).collect();
    let kept = Packing::Int4.unpack(&Packing::Int4.pack(&bits).expect("all are small"));
    let (mut of_kept, mut of_largest) = (0.0, 0.0);
    for (group, kept) in given.chunks(32).zip(kept.chunks(32)) {
        let larger = |most: f64, x: &f32| match f64::from(x.abs()) > most.abs() {
            true => f64::from(*x),
            false => most,
        };
        let largest = group.iter().fold(0.0, larger);
        // A scale as GGML's Q4_0 has it, without rounding to 16 bits.
        let scale = (largest / -8.0)
            .abs()
            .max(2_f64.powi(-21))
            .copysign(largest / -8.0);
        let error = |x: &f32, kept: f64| (f64::from(*x) - kept).powi(2);
        let by_largest = |x: &f32| (f64::from(*x) / scale).round().clamp(-8.0, 7.0) * scale;
        let squares = |kept: &dyn Fn(usize) -> f64| -> f64 {
            let each = group.iter().enumerate();
            each.map(|(i, x)| error(x, kept(i))).sum()
        };
        let found = squares(&|i| f64::from(f32::from_bits(kept[i])));
        let expected = squares(&|i| by_largest(&group[i]));
        // The scale that is kept is rounded.
        assert!(found <= expected * 1.02 + 1e-12, "{group:?}");
        (of_kept, of_largest) = (of_kept + found, of_largest + expected);
    }
    assert!(of_kept < 0.95 * of_largest, "{of_kept} and {of_largest}");
}

#[test]
fn blocks_of_q4_0_are_held_as_they_are() {
    // Scales of either sign, the smallest and the largest that a device has exactly among them.
    for half in [0x0010, 0x8010, 0x211f, 0xa3ff, 0x3c00, 0xdfff, 0x5ff1] {
        let scale = f32::from_bits(from_f16(half));
        let whole = |i: u32| (i * i * 7 + i) % 16;
        let mut given: Vec<f32> = (0..64).map(|i| (whole(i) as f32 - 8.0) * scale).collect();
        (given[5], given[40]) = (-8.0 * scale, -8.0 * scale);
        let bits: Vec<u32> = given.iter().map(|x| x.to_bits()).collect();
        let words = Packing::Int4.pack(&bits).expect("below 4,095");
        assert!(
            same_floats(&Packing::Int4.unpack(&words), &bits),
            "{half:#x}"
        );
    }
}

/// The layout, written out: the first number in the lowest bits, and scales behind the numbers.
#[test]
fn a_block_of_four_bits_lies_as_it_says() {
    let mut given = vec![0.0_f32; 64];
    (given[0], given[1], given[31]) = (-8.0, 7.0, 3.0);
    (given[32], given[33], given[63]) = (4.0, -3.5, 1.0);
    let bits: Vec<u32> = given.iter().map(|x| x.to_bits()).collect();
    let words = Packing::Int4.pack(&bits).expect("all are small");
    let half = |float: f32| to_f16((float * 128.0).to_bits());
    let expected = [
        0x8888_88f0,
        0x8888_8888,
        0x8888_8888,
        0xb888_8888, //
        0x8888_88f0,
        0x8888_8888,
        0x8888_8888,
        0x6888_8888, //
        half(1.0) | half(-0.5) << 16,
    ];
    assert_eq!(words, expected);
}
