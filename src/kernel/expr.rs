//! Prints expressions as WGSL. `device/cpu/expr.rs` evaluates the same expressions.

use super::{BinaryFn, Expr, Term, UnaryFn, caller_fn};
use crate::program::Number;

/// The WGSL names of the functions in [`UnaryFn`], in that order.
const UNARY: [&str; 21] = [
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
    "sine",
    "cosine",
    "floor",
    "ceil",
    "round",
    "signum",
    "1.0 / ",
    "tangent",
    "stopped",
    "",
];

/// The WGSL names of the functions in [`BinaryFn`], in that order; a function with a sign has
/// no name.
const BINARY: [&str; 16] = [
    "",
    "",
    "",
    "",
    "minimum",
    "maximum",
    "power",
    "modulo",
    "angle",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "same",
];

/// Appends the terms of an expression in WGSL, one `let` for each, and returns the name of the
/// expression's value. Names of terms begin with `prefix`. Variables are `v0`, `v1` and so on;
/// from variable `first_row` on, which are values of rows, `r0`, `r1` and so on.
pub(super) fn print(text: &mut String, expr: &Expr, prefix: &str, first_row: usize) -> String {
    let mut names: Vec<String> = Vec::with_capacity(expr.terms().len());
    for (id, term) in expr.terms().iter().enumerate() {
        let value = match term {
            Term::Const(bits) => format!("F({})", Number(*bits)),
            Term::Variable(variable) => {
                let variable = *variable as usize;
                names.push(match variable.checked_sub(first_row) {
                    Some(row) => format!("r{row}"),
                    None => format!("v{variable}"),
                });
                continue;
            }
            Term::Unary(function, a) => format!("{}({})", unary(*function), names[a.index()]),
            Term::Binary(function, a, b) => {
                let (a, b) = (&names[a.index()], &names[b.index()]);
                match function.sign() {
                    Some(sign) => [a, sign, b].concat(),
                    None => format!("{}({a}, {b})", binary(*function)),
                }
            }
            Term::Where(operands) => {
                let [condition, a, b] = operands.map(|of| &names[of.index()]);
                format!("chosen({condition}, {a}, {b})")
            }
            Term::Call(function, operands) => {
                let skipped = match function.content.is_fused() {
                    true => 0,
                    false => function.content.inputs.len(), // It looks at them by itself.
                };
                let mut value = caller_fn::name(function) + "(";
                value += if skipped > 0 { "at, " } else { "" };
                for of in &operands[skipped..] {
                    value += &names[of.index()];
                    value += ", ";
                }
                value + ")"
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
