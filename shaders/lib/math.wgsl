// Functions that are exact to the last bits of a float, for fields. WGSL's own may be off by 2^-11, and a field's
// derivative is a difference of values 2^-9 apart, which makes an error 512 times larger. The polynomials are those of
// Cephes (expf, logf, sinf, cosf, tanhf). The CPU twins are in src/device/cpu/math.rs.

fn two_to(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }

fn exponential(x: f32) -> f32 {
    let near = clamp(x, -104.0, 89.0);
    let n = round(near * 1.44269504);
    let r = (near - n * 0.693359375) + n * 2.12194440e-4;
    let tail = ((((1.9875691500e-4 * r + 1.3981999507e-3) * r + 8.3334519073e-3) * r + 4.1665795894e-2) * r + 1.6666665459e-1) * r + 0.5;
    let half = i32(n) / 2;
    return (tail * r * r + r + 1.0) * two_to(half) * two_to(i32(n) - half);
}

fn logarithm(x: f32) -> f32 {
    // Arguments without a logarithm, or without one here: zero, negative and subnormal numbers, infinity.
    if !(x >= 1.17549435e-38 && x <= 3.4e38) { return log(x); }
    let bits = bitcast<u32>(x);
    let half = bitcast<f32>((bits & 0x7fffffu) | 0x3f000000u);
    let low = half < 0.707106781;
    let n = f32(i32(bits >> 23u) - select(126, 127, low));
    let m = select(half, half + half, low) - 1.0;
    let z = m * m;
    let tail = ((((((((7.0376836292e-2 * m - 1.1514610310e-1) * m + 1.1676998740e-1) * m - 1.2420140846e-1) * m + 1.4249322787e-1) * m - 1.6668057665e-1) * m + 2.0000714765e-1) * m - 2.4999993993e-1) * m + 3.3333331174e-1) * m * z;
    return (m + ((tail - n * 2.12194440e-4) - 0.5 * z)) + n * 0.693359375;
}

// sin(x + quarters * pi / 2), exact for |x| up to some thousands.
fn wave(x: f32, quarters: i32) -> f32 {
    let n = round(x * 0.636619772);
    let r = ((x - n * 1.5703125) - n * 4.83751297e-4) - n * 7.54978995e-8;
    let z = r * r;
    let turn = i32(n) + quarters;
    let odd = ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * r + r;
    let even = ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - 0.5 * z + 1.0;
    let value = select(odd, even, (turn & 1) == 1);
    return select(value, -value, (turn & 2) == 2);
}

fn sine(x: f32) -> f32 { return wave(x, 0); }

fn cosine(x: f32) -> f32 { return wave(x, 1); }

fn tangent(x: f32) -> f32 { return wave(x, 0) / wave(x, 1); }

fn raised(x: f32, y: f32) -> f32 { return exponential(y * logarithm(x)); }
