//! Expressions of 32-bit floats, as plain data.
//!
//! Callers' formulas and the values of stages are both expressions, which `kernel` prints as
//! WGSL and `device/cpu` evaluates. Where variables come from, how formulas are written and
//! how functions are computed is not known here.

use std::sync::Arc;

use super::CallerFn;

/// The number of a term in its expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(u32);

impl TermId {
    /// The term's place in [`Expr::terms`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One value of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A float, as its bits, so that equal numbers are equal terms. Expressions of chains have
    /// none, because their numbers come with the call.
    Const(u32),
    /// The variable of this number.
    Variable(u32),
    /// A function of one earlier term.
    Unary(UnaryFn, TermId),
    /// A function of two earlier terms.
    Binary(BinaryFn, TermId, TermId),
    /// The second term where the first, a condition, is true, and the third elsewhere. A
    /// condition is false where it is a zero of either sign, and true for all else, NaN included.
    Where([TermId; 3]),
    /// A function of the caller's own, applied to earlier terms.
    Call(Arc<CallerFn>, Box<[TermId]>),
}

impl Term {
    /// The operands of the term.
    pub fn operands(&self) -> impl Iterator<Item = TermId> {
        let (few, many): (_, &[TermId]) = match self {
            Term::Const(_) | Term::Variable(_) => ([None; 3], &[]),
            Term::Unary(_, a) => ([Some(*a), None, None], &[]),
            Term::Binary(_, a, b) => ([Some(*a), Some(*b), None], &[]),
            Term::Where(operands) => ([None; 3], operands),
            Term::Call(_, operands) => ([None; 3], operands),
        };
        few.into_iter().flatten().chain(many.iter().copied())
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
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// The largest whole number that is not above the value.
    Floor,
    /// The smallest whole number that is not below the value.
    Ceil,
    /// The nearest whole number; of two that are as near the even one.
    Round,
    /// −1 where the value is negative, 1 where it is positive, otherwise the value: zero or NaN.
    Sign,
    /// 1 / x.
    Recip,
    /// Tangent.
    Tan,
    /// 1 where the value is what a caller's function gives whose loops were stopped, else 0.
    Stopped,
    /// The value itself, bit for bit, whatever its type.
    Copy,
}

impl UnaryFn {
    /// The functions of tensors, in the order of their numbers on the wire. All other functions
    /// are of formulas only, or of what is lowered.
    pub const OF_TENSORS: [UnaryFn; 17] = [
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
        UnaryFn::Sin,
        UnaryFn::Cos,
        UnaryFn::Floor,
        UnaryFn::Ceil,
        UnaryFn::Round,
        UnaryFn::Sign,
    ];

    /// The bits of the value of an element whose loops were stopped: a NaN that nothing computes.
    pub const STOPPED: u32 = 0x7fd5_c0de;

    const NAMES: [&str; 21] = [
        "relu", "sigmoid", "tanh", "silu", "gelu", "geluTanh", "exp", "log", "sqrt", "abs", "neg",
        "sin", "cos", "floor", "ceil", "round", "sign", "recip", "tan", "stopped", "copy",
    ];

    /// The name in formulas, messages and plans.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether the function is one of tensors.
    pub const fn is_of_tensors(self) -> bool {
        (self as usize) < Self::OF_TENSORS.len()
    }

    /// Whether the function takes about as long as an addition.
    pub const fn is_cheap(self) -> bool {
        use UnaryFn::{Abs, Ceil, Copy, Floor, Neg, Relu, Round, Sign};
        matches!(self, Relu | Abs | Neg | Floor | Ceil | Round | Sign | Copy)
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
    /// What is left of a after whole multiples of b, with the sign of b.
    Mod,
    /// The angle of the point whose height is a and whose distance to the right is b.
    Atan2,
    /// 1 where a < b, else 0; comparisons with NaN are 0, but for `NotEqual`.
    Less,
    /// 1 where a ≤ b, else 0.
    LessEqual,
    /// 1 where a > b, else 0.
    Greater,
    /// 1 where a ≥ b, else 0.
    GreaterEqual,
    /// 1 where both are equal, else 0.
    Equal,
    /// 0 where both are equal, else 1, also where either is NaN.
    NotEqual,
    /// 1 where both are equal or both are NaN, else 0.
    Same,
}

impl BinaryFn {
    /// The functions of tensors, in the order of their numbers on the wire. `Same` is only a part
    /// of what is lowered.
    pub const OF_TENSORS: [BinaryFn; 15] = [
        BinaryFn::Add,
        BinaryFn::Sub,
        BinaryFn::Mul,
        BinaryFn::Div,
        BinaryFn::Minimum,
        BinaryFn::Maximum,
        BinaryFn::Pow,
        BinaryFn::Mod,
        BinaryFn::Atan2,
        BinaryFn::Less,
        BinaryFn::LessEqual,
        BinaryFn::Greater,
        BinaryFn::GreaterEqual,
        BinaryFn::Equal,
        BinaryFn::NotEqual,
    ];

    const NAMES: [&str; 16] = [
        "add",
        "sub",
        "mul",
        "div",
        "minimum",
        "maximum",
        "pow",
        "mod",
        "atan2",
        "less",
        "lessEqual",
        "greater",
        "greaterEqual",
        "equal",
        "notEqual",
        "same",
    ];

    /// The name in formulas, messages and plans.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The sign between the operands, if the function is written with one.
    pub const fn sign(self) -> Option<&'static str> {
        match self {
            BinaryFn::Add => Some(" + "),
            BinaryFn::Sub => Some(" - "),
            BinaryFn::Mul => Some(" * "),
            BinaryFn::Div => Some(" / "),
            _ => None,
        }
    }

    /// Whether the function takes about as long as an addition.
    pub const fn is_cheap(self) -> bool {
        use BinaryFn::{Atan2, Div, Mod, Pow};
        !matches!(self, Div | Pow | Mod | Atan2)
    }
}

/// An expression: terms that each use earlier terms. The last term is the expression's value.
///
/// Invariant: no two terms are equal, so that expressions made in the same way are equal and
/// calls merge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expr {
    terms: Arc<[Term]>,
}

impl Expr {
    /// The terms; operands come before the terms that use them.
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
    /// Adds a term, unless an equal one is there, and returns its number.
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

    /// The float that a term is, if it is a constant.
    pub fn as_number(&self, id: TermId) -> Option<f32> {
        match self.terms[id.index()] {
            Term::Const(bits) => Some(f32::from_bits(bits)),
            _ => None,
        }
    }

    /// How many terms there are so far.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether there are no terms yet.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Forgets all but the first `terms` terms.
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
        for (i, function) in BinaryFn::OF_TENSORS.into_iter().enumerate() {
            assert_eq!(function as usize, i, "{}", function.name());
        }
    }
}
