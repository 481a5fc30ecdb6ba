//! Expressions of 32-bit floats, as plain data.
//!
//! One type for callers' formulas and for what fusion makes of chains, printed
//! to WGSL (`kernel`) and evaluated on the CPU (`device/cpu`). It does not know
//! where its variables come from, nor any grammar, nor any function's code.

use std::sync::Arc;

/// A term of one expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(u32);

impl TermId {
    /// The term's place in [`Expr::terms`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A number, as its bits, so that equal terms are equal. Chains have none:
    /// their numbers come with the call.
    Const(u32),
    /// The variable of this number.
    Variable(u32),
    /// A function of one earlier term.
    Unary(UnaryFn, TermId),
    /// A function of two earlier terms.
    Binary(BinaryFn, TermId, TermId),
}

impl Term {
    /// The terms that this one names.
    pub fn operands(self) -> impl Iterator<Item = TermId> {
        let (first, second) = match self {
            Term::Const(_) | Term::Variable(_) => (None, None),
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
    /// 1 / x.
    Recip,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Tangent.
    Tan,
}

impl UnaryFn {
    /// The functions of tensors, in the order of their numbers on the wire.
    /// Formulas alone have the others.
    pub const OF_TENSORS: [UnaryFn; 11] = [
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

    const NAMES: [&str; 15] = [
        "relu", "sigmoid", "tanh", "silu", "gelu", "geluTanh", "exp", "log", "sqrt", "abs", "neg",
        "recip", "sin", "cos", "tan",
    ];

    /// The name that people use.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether tensors have it.
    pub const fn is_of_tensors(self) -> bool {
        (self as usize) < Self::OF_TENSORS.len()
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

/// An expression: terms of which each uses earlier ones. The last is its value.
///
/// Invariant: no term stands twice; so expressions made the same way are equal,
/// and calls of them merge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expr {
    terms: Arc<[Term]>,
}

impl Expr {
    /// The terms, operands before users.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }
}

/// Makes an expression, term by term.
#[derive(Clone, Debug, Default)]
pub struct ExprBuilder {
    terms: Vec<Term>,
}

impl ExprBuilder {
    /// Adds a term, or finds it.
    pub fn push(&mut self, term: Term) -> TermId {
        let known = self.terms.iter().position(|known| *known == term);
        let index = known.unwrap_or_else(|| {
            self.terms.push(term);
            self.terms.len() - 1
        });
        TermId(u32::try_from(index).expect("an expression has fewer than 2^32 terms"))
    }

    /// Adds a number.
    pub fn number(&mut self, value: f32) -> TermId {
        self.push(Term::Const(value.to_bits()))
    }

    /// The number that a term is, if it is one.
    pub fn as_number(&self, id: TermId) -> Option<f32> {
        match self.terms[id.index()] {
            Term::Const(bits) => Some(f32::from_bits(bits)),
            Term::Variable(_) | Term::Unary(..) | Term::Binary(..) => None,
        }
    }

    /// Terms so far.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Forgets all terms but the first ones; nothing may use the others.
    pub fn truncate(&mut self, terms: usize) {
        self.terms.truncate(terms);
    }

    /// The expression whose value is `root`.
    pub fn finish(mut self, root: TermId) -> Expr {
        self.truncate(root.index() + 1);
        let terms = self.terms.into();
        Expr { terms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_the_wire_are_places_in_the_lists() {
        for (i, function) in UnaryFn::OF_TENSORS.into_iter().enumerate() {
            assert_eq!(function as usize, i, "{}", function.name());
        }
        for (i, function) in BinaryFn::ALL.into_iter().enumerate() {
            assert_eq!(function as usize, i, "{}", function.name());
        }
    }
}
