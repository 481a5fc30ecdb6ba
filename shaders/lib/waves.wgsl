// Sine and cosine for every finite argument. WGSL's own are off by up to 2^-11, and only from -pi to pi. Turns are
// counted in whole numbers, so that no compiler's arithmetic of floats makes them less exact. The kernel declares F
// and U, of one value or of four. The polynomials are those of Cephes (sinf, cosf).

// The digits of 2 / pi, 32 bits at a time, of which the first word holds six.
fn quarters(word: U) -> U {
    let front = select(select(U(0x28u), U(0xbe60db93u), word == U(1u)), U(0x91054a7fu), word == U(2u));
    let back = select(select(U(0x9d5f47du), U(0x4d377036u), word == U(4u)), U(0xd8a5664fu), word == U(5u));
    return select(select(front, back, word > U(2u)), U(0u), word > U(5u));
}

// sin(x + quarter * pi / 2) of the magnitude of x.
fn wave(x: F, quarter: u32) -> F {
    let size = bitcast<U>(x) & U(0x7fffffffu);
    let digits = (size & U(0x7fffffu)) | U(0x800000u);
    // Of 2 / pi only those 64 bits matter whose products with x are neither whole turns nor tiny.
    let start = max(size >> U(23u), U(126u)) - U(126u);
    let word = start >> U(5u);
    let by = start & U(31u);
    var a = U(0x28u);
    var b = U(0xbe60db93u);
    var c = U(0x91054a7fu);
    if any(word > U(0u)) {
        a = quarters(word);
        b = quarters(word + U(1u));
        c = quarters(word + U(2u));
    }
    let high = (a << by) | ((b >> U(1u)) >> (U(31u) - by));
    let low = (b << by) | ((c >> U(1u)) >> (U(31u) - by));
    // Quarters of a turn with 30 bits behind the point, and half a quarter more.
    let upper = digits >> U(8u);
    let products = ((upper * (low >> U(16u))) >> U(8u)) + (((digits & U(255u)) * (low >> U(16u))) >> U(16u));
    let turn = digits * high + products + ((upper * (low & U(0xffffu))) >> U(24u)) + U(0x20000000u);
    let part = turn & U(0x3fffffffu);
    let is_below = part < U(0x20000000u);
    let units = F(select(part - U(0x20000000u), U(0x20000000u) - part, is_below));
    let rest = units * select(F(1.46291808e-9), F(-1.46291808e-9), is_below);
    let is_near = size < U(0x3f490fdbu);
    let r = select(rest, bitcast<F>(size), is_near);
    let z = r * r;
    let odd = ((F(-1.95152959e-4) * z + F(8.33216087e-3)) * z - F(0.166666546)) * z * r + r;
    let even = ((F(2.44331571e-5) * z - F(1.38873163e-3)) * z + F(4.16666457e-2)) * z * z - F(0.5) * z + F(1.0);
    let at = select(turn >> U(30u), U(0u), is_near) + U(quarter);
    let value = select(odd, even, (at & U(1u)) == U(1u));
    let signed = bitcast<U>(value) ^ ((at & U(2u)) << U(30u));
    return bitcast<F>(select(signed, U(0x7fc00000u), size >= U(0x7f800000u)));
}

fn sine(x: F) -> F { return bitcast<F>(bitcast<U>(wave(x, 0u)) ^ (bitcast<U>(x) & U(0x80000000u))); }

fn cosine(x: F) -> F { return wave(x, 1u); }
