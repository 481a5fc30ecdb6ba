// Functions of expressions. The kernel declares F, U and B, of one value or of four; `exponential`, `logarithm` and
// `raised` come from `builtin.wgsl` or from `math.wgsl`.
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
