// Functions of expressions. The kernel declares F, U and B, of one value or of four; `exponential`, `logarithm` and
// `raised` come from `builtin.wgsl` or from `math.wgsl`, `sine` and `cosine` from `waves.wgsl` or from `math.wgsl`.
// A device may assume that no float is NaN, so NaN is recognized by its bits. src/kernel/generated/mod.rs says how exact
// each function is.

fn is_nan(x: F) -> B { return (bitcast<U>(x) & U(0x7fffffffu)) > U(0x7f800000u); }

// By their bits, negative values are those from -0 to -infinity. NaN stays NaN.
fn relu(x: F) -> F { return select(x, F(0.0), (bitcast<U>(x) - U(0x80000000u)) <= U(0x7f800000u)); }

fn minimum(a: F, b: F) -> F { return select(select(select(b, a, a < b), b, is_nan(b)), a, is_nan(a)); }

fn maximum(a: F, b: F) -> F { return select(select(select(b, a, a > b), b, is_nan(b)), a, is_nan(a)); }

fn same(a: F, b: F) -> F { return select(F(0.0), F(1.0), (a == b) | (is_nan(a) & is_nan(b))); }

// The argument of the exponential is never positive, so that nothing overflows.
fn sigmoid(x: F) -> F {
    let power = exponential(-abs(x));
    return select(power, F(1.0), x >= F(0.0)) / (F(1.0) + power);
}

fn silu(x: F) -> F { return select(x * sigmoid(x), F(0.0), x < F(-104.0)); }

// A polynomial near 0 (Cephes, tanhf), the exponential elsewhere, because `tanh` of some devices overflows.
fn hyperbolic_tangent(x: F) -> F {
    let z = x * x;
    let tail = (((F(-5.70498872745e-3) * z + F(2.06390887954e-2)) * z + F(-5.37397155531e-2)) * z + F(1.33314422036e-1)) * z + F(-3.33332819422e-1);
    let size = min(abs(x), F(10.0));
    let far = F(1.0) - F(2.0) / (exponential(F(2.0) * size) + F(1.0));
    let near = x + x * z * tail;
    return select(select(select(far, -far, x < F(0.0)), near, size < F(0.625)), x, is_nan(x));
}

// x times the normal distribution, by erfc (Numerical Recipes, erfcc), relatively exact in the tail.
fn gelu(x: F) -> F {
    let z = abs(x) * F(0.70710678);
    let t = F(1.0) / (F(1.0) + F(0.5) * z);
    let high = F(0.27886807) + t * (F(-1.13520398) + t * (F(1.48851587) + t * (F(-0.82215223) + t * F(0.17087277))));
    let low = F(-1.26551223) + t * (F(1.00002368) + t * (F(0.37409196) + t * (F(0.09678418) + t * (F(-0.18628806) + t * high))));
    let tail = F(0.5) * t * exponential(low - z * z);
    let whole = select(x * tail, x - x * tail, x >= F(0.0));
    return select(select(whole, F(0.0), x < F(-14.0)), x, x > F(14.0));
}

// x / (1 + exp(-2u)), which is x (1 + tanh u) / 2.
fn gelu_tanh(x: F) -> F {
    let c = clamp(x, F(-14.0), F(14.0));
    let whole = x * sigmoid(F(1.5957691216) * (c + F(0.044715) * c * c * c));
    return select(whole, F(0.0), x < F(-14.0));
}

// The power as IEEE 754's pow has it, except for infinite exponents. A negative base has a power only if the exponent is whole.
fn power(x: F, y: F) -> F {
    let whole = floor(y) == y;
    let odd = whole & (fract(y * F(0.5)) != F(0.0)) & (abs(y) < F(16777216.0));
    let size = abs(x);
    var p = raised(size, y);
    p = select(p, F(0.0), (size == F(0.0)) & (y > F(0.0)));
    p = select(p, F(1.0) / size, (size == F(0.0)) & (y < F(0.0)));
    p = select(p, -p, odd & (bitcast<U>(x) >= U(0x80000000u)));
    p = select(p, bitcast<F>(bitcast<U>(x) | U(0x7fc00000u)), (x < F(0.0)) & !whole);
    p = select(select(p, y, is_nan(y)), x, is_nan(x));
    return select(p, F(1.0), (y == F(0.0)) | (x == F(1.0)));
}

// Whole numbers in the order of floats, equal for both zeros.
fn ordinal(x: F) -> U {
    let bits = bitcast<U>(x);
    return select(U(0u) - bits, bits | U(0x80000000u), bits < U(0x80000000u));
}

// What is given where a is below b, where both are equal, where a is above, and where either is NaN. Bits are compared,
// because a device may take subnormal numbers for zero.
fn compared(a: F, b: F, below: f32, alike: f32, above: f32, apart: f32) -> F {
    let x = ordinal(a);
    let y = ordinal(b);
    let ordered = select(select(F(above), F(alike), x == y), F(below), x < y);
    return select(ordered, F(apart), is_nan(a) | is_nan(b));
}

fn less(a: F, b: F) -> F { return compared(a, b, 1.0, 0.0, 0.0, 0.0); }

fn less_equal(a: F, b: F) -> F { return compared(a, b, 1.0, 1.0, 0.0, 0.0); }

fn greater(a: F, b: F) -> F { return compared(a, b, 0.0, 0.0, 1.0, 0.0); }

fn greater_equal(a: F, b: F) -> F { return compared(a, b, 0.0, 1.0, 1.0, 0.0); }

fn equal(a: F, b: F) -> F { return compared(a, b, 0.0, 1.0, 0.0, 0.0); }

fn not_equal(a: F, b: F) -> F { return compared(a, b, 1.0, 0.0, 1.0, 1.0); }

// A condition is false where all bits but that of the sign are 0.
fn chosen(condition: F, a: F, b: F) -> F { return select(b, a, (bitcast<U>(condition) << U(1u)) != U(0u)); }

fn signum(x: F) -> F {
    let bits = bitcast<U>(x);
    let positive = select(x, F(1.0), (bits - U(1u)) < U(0x7f800000u));
    return select(positive, F(-1.0), (bits - U(0x80000001u)) < U(0x7f800000u));
}

// Whether a value is what a caller's function gives whose loops were stopped, which src/graph/expr.rs says.
fn stopped(x: F) -> F { return select(F(0.0), F(1.0), bitcast<U>(x) == U(0x7fd5c0deu)); }

// The digits in front of a float's exponent, as a whole number.
fn digits(size: U) -> U { return (size & U(0x7fffffu)) | select(U(0u), U(0x800000u), size >= U(0x800000u)); }

// Long division, eight bits at a time: the remainder is exact whatever the quotient. The result has the sign of y.
fn modulo(x: F, y: F) -> F {
    let a = bitcast<U>(x) & U(0x7fffffffu);
    let b = bitcast<U>(y) & U(0x7fffffffu);
    let divisor = max(digits(b), U(1u));
    let exponent = max(b >> U(23u), U(1u));
    var left = max(a >> U(23u), exponent) - exponent;
    var rest = digits(a) % divisor;
    for (var n = 0u; n < 32u && any(left > U(0u)); n++) {
        let step = min(left, U(8u));
        rest = (rest << step) % divisor;
        left -= step;
    }
    // The remainder times a power of two that may be too small for a float: in integers.
    let whole = bitcast<U>(F(rest));
    let scaled = select(whole + ((exponent - U(150u)) << U(23u)), U(0u), rest == U(0u));
    let tiny = rest << min(exponent - U(1u), U(31u));
    let bits = select(scaled, tiny, (whole >> U(23u)) + exponent <= U(150u));
    let size = bitcast<F>(select(bits, a, a < b));
    let is_other = (bitcast<U>(size) != U(0u)) & (((bitcast<U>(x) ^ bitcast<U>(y)) >> U(31u)) == U(1u));
    let moved = bitcast<U>(select(size, abs(y) - size, is_other));
    let signed = moved | (bitcast<U>(y) & U(0x80000000u));
    return bitcast<F>(select(signed, U(0x7fc00000u), (a >= U(0x7f800000u)) | (b > U(0x7f800000u)) | (b == U(0u))));
}

// The angle of the point (x, y), by the polynomial of Cephes (atanf). Slopes above tan(pi / 8) are turned back by pi / 4.
fn angle(y: F, x: F) -> F {
    let a = bitcast<U>(y) & U(0x7fffffffu);
    let b = bitcast<U>(x) & U(0x7fffffffu);
    let most = max(a, b);
    let least = min(a, b);
    // Beside an infinite coordinate a finite one is 0 and an infinite one as large. Subnormal points lie at 0.
    let is_plain = (most >= U(0x800000u)) & (most < U(0x7f800000u));
    // Neither the sum of both coordinates overflows, nor is their difference too small for a float.
    let scale = select(select(F(1.0), F(0.125), most > U(0x7e000000u)), F(18446744073709551616.0), most < U(0x20000000u));
    let high = select(F(1.0), bitcast<F>(most) * scale, is_plain);
    let low = select(select(F(0.0), F(1.0), least == U(0x7f800000u)), bitcast<F>(least) * scale, is_plain);
    let is_steep = low > high * F(0.41421356);
    let t = select(low, low - high, is_steep) / select(high, low + high, is_steep);
    let z = t * t;
    let near = (((F(8.0537445e-2) * z - F(0.138776856)) * z + F(0.199777106)) * z - F(0.333329492)) * z * t + t;
    let first = select(near, near + F(0.785398163), is_steep);
    let right = select(first, F(1.57079633) - first, a > b);
    let size = select(right, F(3.14159265) - right, bitcast<U>(x) >= U(0x80000000u));
    let signed = bitcast<U>(size) | (bitcast<U>(y) & U(0x80000000u));
    return bitcast<F>(select(signed, U(0x7fc00000u), most > U(0x7f800000u)));
}
