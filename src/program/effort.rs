//! How much is computed, counted by what limits a processor.
//!
//! Counts only. What a count costs is measured, and where a call goes is not
//! decided here.

use crate::graph::{Expr, Term, UnaryFn};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Plain functions of elements, and reads of them.
    Term,
    /// Floats interpolated between two.
    Blend,
    /// Quaternions turned.
    Turn,
    /// Layers of states differentiated.
    Layer,
    /// Products summed in a product of matrices.
    Product,
}

/// How many kinds there are.
pub const KINDS: usize = 5;

/// So much of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effort(pub [f64; KINDS]);

/// Terms that an exponential or the like takes, a sine or the like, and the error
/// function; what these and the ops of states count for was measured in a browser.
pub(crate) const FUNCTION: f64 = 8.0;
const WAVE: f64 = 14.0;
const ERROR_FUNCTION: f64 = 48.0;

impl Effort {
    /// So many of one kind.
    pub fn of(kind: Kind, count: f64) -> Effort {
        let mut effort = Effort::default();
        effort.0[kind as usize] = count;
        effort
    }

    /// Adds so many times another's.
    pub fn add(&mut self, other: &Effort, times: f64) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more * times;
        }
    }
}

/// Terms that an expression takes for one element.
pub(crate) fn terms(value: &Expr) -> f64 {
    let costs = value.terms().iter().map(|term| match term {
        Term::Const(_) | Term::Variable(_) => 0.0,
        Term::Binary(..)
        | Term::Unary(
            UnaryFn::Relu | UnaryFn::Abs | UnaryFn::Neg | UnaryFn::Recip | UnaryFn::Sqrt,
            _,
        ) => 1.0,
        Term::Unary(UnaryFn::Sin | UnaryFn::Cos | UnaryFn::Tan | UnaryFn::Tanh, _) => WAVE,
        Term::Unary(UnaryFn::Gelu, _) => ERROR_FUNCTION,
        Term::Unary(..) => FUNCTION,
    });
    costs.sum()
}
