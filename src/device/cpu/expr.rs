//! Expressions on the processor: one pass over a block of values for each term.

use super::math;
use crate::kernel::{Binary, Expr, Term, Unary};

/// Values computed together; short enough that a block of each term stays close.
pub(super) const BLOCK: usize = 256;

/// One value of every term, for each of a block's rows.
pub(super) struct Values {
    terms: Vec<[f32; BLOCK]>,
}

impl Values {
    pub(super) fn new(expr: &Expr) -> Self {
        Values {
            terms: vec![[0.0; BLOCK]; expr.terms().len()],
        }
    }

    /// The expression's values, given a block of each of its variables.
    pub(super) fn evaluate(&mut self, expr: &Expr, variables: &[&[f32; BLOCK]]) -> &[f32; BLOCK] {
        for (index, term) in expr.terms().iter().enumerate() {
            // Terms use earlier ones only.
            let (earlier, rest) = self.terms.split_at_mut(index);
            let out = &mut rest[0];
            match *term {
                Term::Const(bits) => out.fill(f32::from_bits(bits)),
                Term::Variable(number) => *out = *variables[number as usize],
                Term::Unary(function, a) => {
                    let function = unary(function);
                    for (out, a) in out.iter_mut().zip(&earlier[a.index()]) {
                        *out = function(*a);
                    }
                }
                Term::Binary(function, a, b) => {
                    let function = binary(function);
                    let pairs = earlier[a.index()].iter().zip(&earlier[b.index()]);
                    for (out, (a, b)) in out.iter_mut().zip(pairs) {
                        *out = function(*a, *b);
                    }
                }
            }
        }
        &self.terms[self.terms.len() - 1]
    }
}

fn unary(function: Unary) -> fn(f32) -> f32 {
    match function {
        Unary::Neg => |a| -a,
        Unary::Recip => |a| 1.0 / a,
        Unary::Abs => f32::abs,
        Unary::Sqrt => f32::sqrt,
        Unary::Exp => math::exponential,
        Unary::Log => math::logarithm,
        Unary::Sin => math::sine,
        Unary::Cos => math::cosine,
        Unary::Tan => math::tangent,
        Unary::Tanh => math::hyperbolic_tangent,
    }
}

fn binary(function: Binary) -> fn(f32, f32) -> f32 {
    match function {
        Binary::Add => |a, b| a + b,
        Binary::Sub => |a, b| a - b,
        Binary::Mul => |a, b| a * b,
        Binary::Div => |a, b| a / b,
        Binary::Min => f32::min,
        Binary::Max => f32::max,
        Binary::Pow => math::power,
    }
}
