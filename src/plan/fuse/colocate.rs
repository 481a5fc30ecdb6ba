//! Finds the values that are best computed in the stage of a product or of folds: values made
//! of a product, or of rows that were folded more than once, element by element.
//!
//! A stage that computes neither the product nor the rows reads each of these values from
//! memory. Computing the value there would leave the product, or each of the folds, to a stage of its
//! own.

use super::lower::{Lowered, Primitive, Value};
use crate::graph::shape::Shape;

/// Where a value is best computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Bound {
    /// Anywhere.
    #[default]
    Free,
    /// In the stage of a product of the value's shape.
    Product,
    /// In a stage that folds these rows.
    Rows {
        shape: Shape,
        axes: u8,
        /// How many folds follow one another, each of what the last one gave.
        folds: u32,
        /// Whether the value has an element for each of a row, and not one for the row.
        is_element: bool,
    },
}

impl Bound {
    /// Whether a stage that does not compute what the value is bound to reads the value.
    pub(super) fn is_tight(self) -> bool {
        match self {
            Bound::Free => false,
            Bound::Product => true,
            Bound::Rows {
                folds, is_element, ..
            } => folds > 1 && is_element,
        }
    }
}

/// For each value what it is bound to.
pub(super) fn bounds(lowered: &Lowered) -> Vec<Bound> {
    let mut users = vec![0_u32; lowered.values.len()];
    for value in &lowered.values {
        for (place, operand) in value.operands.iter().enumerate() {
            users[*operand] += u32::from(!value.operands[..place].contains(operand));
        }
    }
    for output in &lowered.outputs {
        users[*output] += 1;
    }
    let mut bounds: Vec<Bound> = Vec::with_capacity(lowered.values.len());
    for value in &lowered.values {
        let bound = match &value.primitive {
            Primitive::Product(..) => Bound::Product,
            Primitive::Reduce { over, .. } => of_fold(lowered, &bounds, value, over.axes),
            primitive if primitive.is_elementwise() => {
                let is_behind = |operand: &&usize| {
                    bounds[**operand] == Bound::Product
                        && users[**operand] == 1
                        && lowered.values[**operand].shape == value.shape
                };
                match value.operands.iter().find(is_behind) {
                    Some(_) => Bound::Product,
                    None => of_rows(lowered, &bounds, value),
                }
            }
            _ => Bound::Free,
        };
        bounds.push(bound);
    }
    bounds
}

/// What a reduction along these axes is bound to.
fn of_fold(lowered: &Lowered, bounds: &[Bound], value: &Value, axes: u8) -> Bound {
    let of = value.operands[0];
    let shape = lowered.values[of].shape;
    let before = match bounds[of] {
        Bound::Rows {
            shape: rows,
            axes: along,
            folds,
            ..
        } if (rows, along) == (shape, axes) => folds,
        _ => 0,
    };
    Bound::Rows {
        shape,
        axes,
        folds: before + 1,
        is_element: false,
    }
}

/// The rows that the operands of a value are bound to; of several, those of the most folds.
fn of_rows(lowered: &Lowered, bounds: &[Bound], value: &Value) -> Bound {
    let mut bound = Bound::Free;
    let mut is_beside = false;
    for operand in &value.operands {
        match (bounds[*operand], bound) {
            (Bound::Rows { folds, .. }, Bound::Rows { folds: known, .. }) if folds <= known => {}
            (Bound::Rows { .. }, _) => bound = bounds[*operand],
            _ => {}
        }
        is_beside |= match (bounds[*operand], &lowered.values[*operand].primitive) {
            (Bound::Rows { is_element, .. }, _) => is_element,
            (_, Primitive::Constant(_) | Primitive::Count(_)) => false,
            _ => true,
        };
    }
    match &mut bound {
        Bound::Rows {
            shape, is_element, ..
        } => *is_element = is_beside && *shape == value.shape,
        _ => return bound,
    }
    bound
}
