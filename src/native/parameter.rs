//! What a call is told besides its operands: one number for all of it, or one for each item.

use crate::error::Error;
use crate::graph::Timing;

/// How far between the operands: one number for all of a call, or one for each item. Made
/// from an `f32`, or from a slice, a `Vec` or an array by reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parameter<'a> {
    /// One t for the whole call.
    Call(f32),
    /// One t for each item.
    Each(&'a [f32]),
}

impl From<f32> for Parameter<'_> {
    fn from(t: f32) -> Self {
        Parameter::Call(t)
    }
}

impl<'a, T: AsRef<[f32]> + ?Sized> From<&'a T> for Parameter<'a> {
    fn from(t: &'a T) -> Self {
        Parameter::Each(t.as_ref())
    }
}

/// A parameter in the form that a request needs.
pub(super) struct Checked<'a> {
    pub(super) timing: Timing,
    /// The bits of the number for all of the call; 0 where each item has one.
    pub(super) scalar: u32,
    /// The numbers of the items; none where there is one for all.
    pub(super) each: &'a [f32],
}

/// What a parameter belongs to, as errors name it.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) call: &'a str,
    pub(super) parameter: &'a str,
    /// The operand that says how many items there are.
    pub(super) operand: &'a str,
    pub(super) items: usize,
}

impl<'a> Parameter<'a> {
    /// Refuses a NaN for all of the call, and numbers that are not one for each item.
    pub(super) fn check(self, wanted: Wanted<'_>) -> Result<Checked<'a>, Error> {
        let Wanted {
            call,
            parameter,
            operand,
            items,
        } = wanted;
        match self {
            Parameter::Call(t) if t.is_nan() => {
                Err(invalid(call, &format!("{parameter} is NaN; give a number")))
            }
            Parameter::Call(t) => Ok(Checked {
                timing: Timing::Call,
                scalar: t.to_bits(),
                each: &[],
            }),
            Parameter::Each(each) if each.len() != items => Err(invalid(
                call,
                &format!(
                    "{parameter} has {} floats, but {operand} has {items} items; give one number for all, or one {parameter} an item",
                    each.len()
                ),
            )),
            Parameter::Each(each) => Ok(Checked {
                timing: Timing::Row,
                scalar: 0,
                each,
            }),
        }
    }
}

/// The error of a wrong argument of the call `name`.
pub(super) fn invalid(name: &str, problem: &str) -> Error {
    Error::InvalidInput(format!("{name}: {problem}"))
}
