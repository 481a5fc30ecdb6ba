//! How much is computed, counted by kinds of operations for the cost model, and as plain
//! floating-point operations.
//!
//! How long an operation takes is measured elsewhere, and where a call goes is not decided
//! here.

use crate::graph::{BinaryFn, Expr, Term, UnaryFn};

/// A kind of operation that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Plain functions of elements, and reads of them.
    Term,
    /// Floats interpolated between two floats.
    Blend,
    /// Quaternions turned.
    Turn,
    /// Layers of states differentiated.
    Layer,
    /// Products summed in a product of matrices.
    Product,
}

/// How many kinds of operations there are.
pub const KINDS: usize = 5;

/// How many operations of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effort(pub [f64; KINDS]);

/// Terms that an exponential or a similar function counts for, measured in a browser.
pub(crate) const FUNCTION: f64 = 8.0;

/// Terms that a sine or a similar function counts for, measured in a browser.
const WAVE: f64 = 14.0;

/// Terms that a remainder or an angle counts for, measured in a browser.
const DIVISION: f64 = 25.0;

/// Terms that the error function counts for, measured in a browser.
const ERROR_FUNCTION: f64 = 48.0;

impl Effort {
    /// A number of operations of one kind.
    pub fn of(kind: Kind, count: f64) -> Effort {
        let mut effort = Effort::default();
        effort.0[kind as usize] = count;
        effort
    }

    /// Adds another effort so many times.
    pub fn add(&mut self, other: &Effort, times: f64) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more * times;
        }
    }
}

/// Floating-point operations of an expression, for one element: every function is one, whatever
/// it takes. Of a caller's function it is what the definition says, and NaN where that is silent.
pub(crate) fn operations(value: &Expr) -> f64 {
    let counts = value.terms().iter().map(|term| match term {
        Term::Const(_) | Term::Variable(_) | Term::Unary(UnaryFn::Stopped, _) => 0.0,
        Term::Call(function, _) => function.flops(),
        Term::Unary(..) | Term::Binary(..) | Term::Where(_) => 1.0,
    });
    counts.sum()
}

/// Terms that an expression counts for, for one element.
pub(crate) fn terms(value: &Expr) -> f64 {
    let costs = value.terms().iter().map(|term| match term {
        Term::Const(_) | Term::Variable(_) => 0.0,
        Term::Binary(BinaryFn::Mod | BinaryFn::Atan2, ..) => DIVISION,
        Term::Unary(UnaryFn::Sin | UnaryFn::Cos | UnaryFn::Tan | UnaryFn::Tanh, _) => WAVE,
        Term::Binary(..) | Term::Where(_) | Term::Unary(UnaryFn::Recip | UnaryFn::Sqrt, _) => 1.0,
        Term::Unary(function, _) if function.is_cheap() => 1.0,
        Term::Unary(UnaryFn::Gelu, _) => ERROR_FUNCTION,
        Term::Unary(..) | Term::Call(..) => FUNCTION,
    });
    costs.sum()
}
