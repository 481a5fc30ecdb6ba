//! What a kernel's function for the CPU gives for whole arrays, without a session or a device.
//!
//! Arrays are broadcast here by plain arithmetic on places, and not by the planner: the results
//! are what those of devices are compared with.

use std::borrow::Cow;

use crate::error::Error;
use crate::graph::shape::Shape;
use crate::graph::{CallerFn, Elements, FnForm, FnInput, Twin, ValueType};

/// An array that a kernel is applied to.
#[derive(Clone, Copy, Debug)]
pub(in crate::native) struct Array<'a> {
    /// The elements as words, of whatever type these are.
    pub(in crate::native) words: &'a [f32],
    pub(in crate::native) shape: Shape,
}

/// The elements of a result of this shape, of a call with these values and params.
///
/// # Errors
///
/// [`Error::InvalidInput`] for a kernel without a function for the CPU, and where the function
/// panics.
pub(in crate::native) fn expected(
    function: &CallerFn,
    values: &[Array<'_>],
    params: &[f32],
    shape: Shape,
) -> Result<Vec<f32>, Error> {
    let content = &function.content;
    let twin = twin_of(function)?;
    let places = content.result.places(shape).unwrap_or(shape);
    let inputs = values.iter().zip(&content.inputs);
    let columns = inputs.clone().map(|(array, FnInput { of, is_whole })| {
        match content.form == FnForm::At || *is_whole {
            true => array.words.into(),
            false => array.broadcast(*of, places),
        }
    });
    let columns: Vec<Cow<'_, [f32]>> = columns.collect();
    let widths = inputs.map(|(array, input)| array.width(input.of));
    let widths: Vec<u32> = widths.collect();
    let params = params.iter().map(std::slice::from_ref);
    let columns: Vec<&[f32]> = columns.iter().map(|of| &**of).chain(params).collect();
    let elements = Elements {
        first: 0,
        columns: &columns,
        widths: &widths,
    };
    let mut results = vec![0.0; shape.count() as usize];
    twin(&elements, &mut results)?;
    Ok(results)
}

/// The function for the CPU.
///
/// # Errors
///
/// [`Error::InvalidInput`] where the kernel has none.
pub(in crate::native) fn twin_of(function: &CallerFn) -> Result<Twin, Error> {
    function.twin().ok_or_else(|| {
        Error::InvalidInput(format!(
            "{}: there is no function for the CPU to compare with; give the definition `cpu`, \
             `cpu_into`, `cpu_at` or `cpu_numbers`",
            function.content.name
        ))
    })
}

impl<'a> Array<'a> {
    /// How many values of a type there are along the last axis of these.
    fn width(&self, of: ValueType) -> u32 {
        let own = of.places(self.shape).unwrap_or(self.shape);
        own.dims().last().copied().unwrap_or(1)
    }

    /// A value of a type for each place of a shape that the values broadcast to.
    fn broadcast(&self, of: ValueType, to: Shape) -> Cow<'a, [f32]> {
        let own = of.places(self.shape).unwrap_or(self.shape);
        if own == to {
            return self.words.into();
        }
        let lanes = of.lanes as usize;
        let places = (0..to.count()).map(|at| place_of(at, to, own) as usize * lanes);
        let values = places.flat_map(|place| &self.words[place..place + lanes]);
        values.copied().collect()
    }
}

/// The place in an array of the shape `own` of what stands at `at` in the shape that it broadcasts
/// to.
fn place_of(at: u32, to: Shape, own: Shape) -> u32 {
    let (mut rest, mut place, mut step) = (at, 0, 1);
    for (dim, whole) in own.dims().iter().rev().zip(to.dims().iter().rev()) {
        if *dim > 1 {
            place += rest % whole * step;
        }
        step *= dim;
        rest /= whole;
    }
    place
}
