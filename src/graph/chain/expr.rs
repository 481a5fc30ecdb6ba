//! Expressions of one element: what a generated kernel computes.
//!
//! Plain data. `kernel` prints an expression as WGSL and `device/cpu`
//! evaluates it; neither the functions' code nor any memory is named here.

use std::sync::Arc;

/// A term's place in [`Expr::terms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(pub u32);

impl TermId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One value of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// What comes from outside, by its number.
    Variable(u32),
    /// A function of one earlier term.
    Unary(UnaryFn, TermId),
    /// A function of two earlier terms.
    Binary(BinaryFn, TermId, TermId),
}

/// An expression: terms in order of computation, the last one is its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expr {
    terms: Arc<[Term]>,
}

impl Expr {
    /// An expression of these terms.
    ///
    /// Invariant: there is a last one, and each names earlier ones only.
    pub fn new(terms: Vec<Term>) -> Expr {
        debug_assert!(!terms.is_empty());
        debug_assert!(
            (0_u32..)
                .zip(&terms)
                .all(|(id, term)| term.operands().all(|operand| operand.0 < id))
        );
        Expr {
            terms: terms.into(),
        }
    }

    /// The terms.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The variable that the expression is, where it is nothing more.
    pub fn as_variable(&self) -> Option<u32> {
        match *self.terms {
            [Term::Variable(variable)] => Some(variable),
            _ => None,
        }
    }
}

impl Term {
    /// The terms that this one names.
    pub fn operands(self) -> impl Iterator<Item = TermId> {
        let (first, second) = match self {
            Term::Variable(_) => (None, None),
            Term::Unary(_, a) => (Some(a), None),
            Term::Binary(_, a, b) => (Some(a), Some(b)),
        };
        first.into_iter().chain(second)
    }
}

/// A function of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryFn {
    /// 0 where the value is negative.
    Relu,
    /// 1 / (1 + e⁻ˣ).
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// x · sigmoid(x), also called swish.
    Silu,
    /// x · Φ(x), by the error function.
    Gelu,
    /// The approximation of gelu by tanh.
    GeluTanh,
    /// eˣ.
    Exp,
    /// Natural logarithm.
    Log,
    /// Square root.
    Sqrt,
    /// Absolute value.
    Abs,
    /// −x.
    Neg,
}

impl UnaryFn {
    /// Every function, in the order of their numbers on the wire.
    pub const ALL: [UnaryFn; 11] = [
        UnaryFn::Relu,
        UnaryFn::Sigmoid,
        UnaryFn::Tanh,
        UnaryFn::Silu,
        UnaryFn::Gelu,
        UnaryFn::GeluTanh,
        UnaryFn::Exp,
        UnaryFn::Log,
        UnaryFn::Sqrt,
        UnaryFn::Abs,
        UnaryFn::Neg,
    ];

    const NAMES: [&str; 11] = [
        "relu", "sigmoid", "tanh", "silu", "gelu", "geluTanh", "exp", "log", "sqrt", "abs", "neg",
    ];

    /// The name that people use.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether it costs about as much as an addition.
    pub const fn is_cheap(self) -> bool {
        matches!(self, UnaryFn::Relu | UnaryFn::Abs | UnaryFn::Neg)
    }
}

/// A function of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryFn {
    /// a + b.
    Add,
    /// a − b.
    Sub,
    /// a · b.
    Mul,
    /// a / b.
    Div,
    /// The smaller one; NaN if either is.
    Minimum,
    /// The larger one; NaN if either is.
    Maximum,
    /// a to the power of b.
    Pow,
    /// 1 where both are equal or both are NaN, else 0.
    Same,
}

impl BinaryFn {
    /// Every function, in the order of their numbers on the wire.
    pub const ALL: [BinaryFn; 8] = [
        BinaryFn::Add,
        BinaryFn::Sub,
        BinaryFn::Mul,
        BinaryFn::Div,
        BinaryFn::Minimum,
        BinaryFn::Maximum,
        BinaryFn::Pow,
        BinaryFn::Same,
    ];

    const NAMES: [&str; 8] = [
        "add", "sub", "mul", "div", "minimum", "maximum", "pow", "same",
    ];

    /// The name that people use.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Its sign, where it is written between its operands.
    pub const fn sign(self) -> Option<&'static str> {
        match self {
            BinaryFn::Add => Some(" + "),
            BinaryFn::Sub => Some(" - "),
            BinaryFn::Mul => Some(" * "),
            BinaryFn::Div => Some(" / "),
            BinaryFn::Minimum | BinaryFn::Maximum | BinaryFn::Pow | BinaryFn::Same => None,
        }
    }

    /// Whether it costs about as much as an addition.
    pub const fn is_cheap(self) -> bool {
        !matches!(self, BinaryFn::Div | BinaryFn::Pow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_the_wire_are_places_in_the_lists() {
        for (i, function) in UnaryFn::ALL.into_iter().enumerate() {
            assert_eq!(function as usize, i, "{}", function.name());
        }
        for (i, function) in BinaryFn::ALL.into_iter().enumerate() {
            assert_eq!(function as usize, i, "{}", function.name());
        }
    }
}
