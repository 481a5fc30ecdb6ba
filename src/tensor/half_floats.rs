//! Floats of 16 bits, and their conversion from and to 32 bits. Bits only: how tensors are packed
//! is the matter of `packing`.

/// The nearest 16-bit float; of two that are equally near, the even one.
pub(super) fn to_f16(bits: u32) -> u32 {
    let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
    let half = match magnitude {
        0x7f80_0001.. => 0x7e00,
        0x4780_0000.. => 0x7c00,
        // Changes the bias of the exponent, and rounds away the bits that do not fit.
        0x3880_0000.. => (magnitude - 0x3800_0000 + 0xfff + (magnitude >> 13 & 1)) >> 13,
        // Adding 0.5 rounds to the steps of the smallest 16-bit floats.
        _ => (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5_f32.to_bits(),
    };
    sign | half
}

/// The bits of the 32-bit float that equals a 16-bit one.
pub(super) fn from_f16(half: u32) -> u32 {
    let (sign, magnitude) = ((half & 0x8000) << 16, half & 0x7fff);
    let float = match magnitude {
        0x7c00.. => 0x7f80_0000 | magnitude << 13,
        0x0400.. => (magnitude << 13) + 0x3800_0000,
        _ => (f32::from_bits(magnitude | 0.5_f32.to_bits()) - 0.5).to_bits(),
    };
    sign | float
}

/// The nearest float whose lower 16 bits are 0; of two that are equally near, the even one.
pub(super) fn to_bf16(bits: u32) -> u32 {
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        return bits >> 16 | 0x40;
    }
    (bits + 0x7fff + (bits >> 16 & 1)) >> 16
}
