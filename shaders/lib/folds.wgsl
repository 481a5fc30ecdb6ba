// Keys by which rows are folded: the largest and the smallest float are found among integers that have the order of the
// floats. NaN has the highest of `top_key` and the lowest of `bottom_key`.

fn key(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

fn from_key(key: u32) -> f32 { return bitcast<f32>(select(~key, key & 0x7fffffffu, key >= 0x80000000u)); }

fn top_key(x: f32) -> u32 { return select(key(x), 0xffffffffu, is_nan(x)); }

fn bottom_key(x: f32) -> u32 { return select(key(x), 0u, is_nan(x)); }
