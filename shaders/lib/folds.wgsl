// How rows are folded. Largest and smallest are found among integers in the order of the floats, where NaN has a place:
// at the top for the largest, at the bottom for the smallest.

fn key(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

fn from_key(key: u32) -> f32 { return bitcast<f32>(select(~key, key & 0x7fffffffu, key >= 0x80000000u)); }

fn top_key(x: f32) -> u32 { return select(key(x), 0xffffffffu, is_nan(x)); }

fn bottom_key(x: f32) -> u32 { return select(key(x), 0u, is_nan(x)); }
