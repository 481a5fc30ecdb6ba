//! Expressions as WGSL.

use super::{BinaryFn, Expr, Term, UnaryFn};
use crate::program::Number;

/// The functions' names in WGSL, in the order of [`UnaryFn`].
const UNARY: [&str; 15] = [
    "relu",
    "sigmoid",
    "hyperbolic_tangent",
    "silu",
    "gelu",
    "gelu_tanh",
    "exponential",
    "logarithm",
    "sqrt",
    "abs",
    "-",
    "1.0 / ",
    "sine",
    "cosine",
    "tangent",
];

/// The same for [`BinaryFn`]; those with a sign are written with it.
const BINARY: [&str; 8] = ["", "", "", "", "minimum", "maximum", "power", "same"];

/// Appends the terms of an expression in WGSL, one `let` a term; the name of its
/// value. Terms are named after `prefix`, variables `v0`, `v1` and so on, and
/// those from `rows` on `r0`, `r1`.
pub(super) fn print(text: &mut String, expr: &Expr, (prefix, rows): (&str, usize)) -> String {
    let mut names: Vec<String> = Vec::with_capacity(expr.terms().len());
    for (id, term) in expr.terms().iter().enumerate() {
        let value = match *term {
            Term::Const(bits) => format!("F({})", Number(bits)),
            Term::Variable(variable) => {
                let variable = variable as usize;
                names.push(match variable.checked_sub(rows) {
                    Some(row) => format!("r{row}"),
                    None => format!("v{variable}"),
                });
                continue;
            }
            Term::Unary(function, a) => format!("{}({})", unary(function), names[a.index()]),
            Term::Binary(function, a, b) => {
                let (a, b) = (&names[a.index()], &names[b.index()]);
                match function.sign() {
                    Some(sign) => [a, sign, b].concat(),
                    None => format!("{}({a}, {b})", binary(function)),
                }
            }
        };
        let name = format!("{prefix}{id}");
        put!(text, "let {name} = {value};\n");
        names.push(name);
    }
    names.pop().unwrap_or_default()
}

fn unary(function: UnaryFn) -> &'static str {
    UNARY[function as usize]
}

fn binary(function: BinaryFn) -> &'static str {
    BINARY[function as usize]
}
