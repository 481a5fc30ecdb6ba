//! Expressions as WGSL, which plans show as well.
//!
//! Floats are printed as bits or whole numbers: printing them as decimals would
//! cost the package more than this file.

use std::fmt::{self, Display, Formatter, Write};

use super::{Binary, Expr, Term, Unary};

/// A WGSL function `field` of an expression's three variables: one `let` a term.
pub(super) fn function(expr: &Expr) -> String {
    let mut text = String::from("fn field(v0: f32, v1: f32, v2: f32) -> f32 {\n");
    let terms = expr.terms();
    for (index, term) in terms.iter().enumerate() {
        let _ = writeln!(text, "let t{index} = {};", Wgsl(term)); // Text takes all.
    }
    let _ = write!(text, "return t{};\n}}", terms.len() - 1);
    text
}

/// A term in WGSL.
struct Wgsl<'a>(&'a Term);

impl Display for Wgsl<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self.0 {
            Term::Const(bits) if whole(bits).is_some() => {
                write!(f, "f32({})", whole(bits).unwrap_or_default())
            }
            // A compiler must refuse a constant that is not finite, so it may not know it
            // to be one.
            Term::Const(bits) if !f32::from_bits(bits).is_finite() => {
                write!(f, "bitcast<f32>({bits}u | (params.table & 0u))")
            }
            Term::Const(bits) => write!(f, "bitcast<f32>({bits}u)"),
            Term::Variable(number) => write!(f, "v{number}"),
            Term::Unary(function, a) => write!(f, "{}(t{})", unary(function), a.index()),
            Term::Binary(function, a, b) => {
                let (before, between) = binary(function);
                write!(f, "{before}(t{}{between}t{})", a.index(), b.index())
            }
        }
    }
}

/// What stands before the operand. WGSL's own `exp`, `log`, `sin` and `cos` may be
/// off by 2⁻¹¹ and more, so those are in `shaders/lib/math.wgsl`.
fn unary(function: Unary) -> &'static str {
    match function {
        Unary::Neg => "-",
        Unary::Recip => "1.0 / ",
        Unary::Abs => "abs",
        Unary::Sqrt => "sqrt",
        Unary::Exp => "exponential",
        Unary::Log => "logarithm",
        Unary::Sin => "sine",
        Unary::Cos => "cosine",
        Unary::Tan => "tangent",
        Unary::Tanh => "hyperbolic_tangent",
    }
}

/// What stands before the operands, and between them.
fn binary(function: Binary) -> (&'static str, &'static str) {
    match function {
        Binary::Add => ("", " + "),
        Binary::Sub => ("", " - "),
        Binary::Mul => ("", " * "),
        Binary::Div => ("", " / "),
        Binary::Min => ("min", ", "),
        Binary::Max => ("max", ", "),
        Binary::Pow => ("power", ", "),
    }
}

/// The terms as plans show them: the last is the value, and `t0` the first.
impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms().iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            Wgsl(term).fmt(f)?;
        }
        Ok(())
    }
}

/// The whole number that a float is, if it is one of 31 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast to an integer saturates, and the result is compared"
)]
fn whole(bits: u32) -> Option<i32> {
    let number = f32::from_bits(bits) as i32;
    ((number as f32).to_bits() == bits).then_some(number)
}
