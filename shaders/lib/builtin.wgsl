// WGSL's own functions: quick, and exact enough for values that no difference is taken of. `math.wgsl` has functions of
// the same names that are more exact.

fn exponential(x: F) -> F { return exp(x); }

fn logarithm(x: F) -> F { return log(x); }

fn raised(x: F, y: F) -> F { return exp2(y * log2(x)); }
