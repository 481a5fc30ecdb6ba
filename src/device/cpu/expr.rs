//! Expressions on the CPU: one pass over a block of values for each term.

use super::functions::{binary, choose, unary};
use crate::error::Error;
use crate::kernel::{Elements, Expr, Term, TermId};

/// Elements that are computed at once. A column of 256 floats is a kilobyte, so the columns of
/// a usual expression stay in the nearest cache.
pub(super) const BLOCK: usize = 256;

pub(super) type Column = [f32; BLOCK];

/// Where a variable lies in its source that a function of a caller's looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub(super) at: usize,
    pub(super) count: usize,
    /// Elements along the last axis.
    pub(super) width: u32,
}

/// Blocks of values of an expression's variables and terms.
#[derive(Debug)]
pub(super) struct Columns {
    variables: Vec<Column>,
    /// Where each variable's values begin in its source, if the source is read in place.
    places: Vec<Option<usize>>,
    /// Where variables lie that are read whole.
    wholes: Vec<Option<Whole>>,
    /// The place of the first element.
    pub(super) first: usize,
    terms: Vec<Column>,
    result: Vec<f32>,
    /// Why a function of a caller's did not compute, once one did not.
    pub(super) failure: Option<Error>,
}

impl Columns {
    pub(super) fn new(variables: usize) -> Columns {
        Columns {
            variables: vec![[0.0; BLOCK]; variables],
            places: vec![None; variables],
            wholes: vec![None; variables],
            first: 0,
            terms: Vec::new(),
            result: vec![0.0; BLOCK],
            failure: None,
        }
    }

    /// The column that a variable's values are to be written to.
    pub(super) fn column(&mut self, variable: usize) -> &mut Column {
        self.places[variable] = None;
        &mut self.variables[variable]
    }

    /// Has a variable's values read in place, from `place` of its source on.
    pub(super) fn refer(&mut self, variable: usize, place: usize) {
        self.places[variable] = Some(place);
    }

    /// Has a variable read whole.
    pub(super) fn refer_whole(&mut self, variable: usize, whole: Whole) {
        self.wholes[variable] = Some(whole);
    }

    /// Gives a variable the same value for the first `elements`.
    pub(super) fn fill(&mut self, variable: usize, value: f32, elements: usize) {
        self.column(variable)[..elements].fill(value);
    }

    /// The columns of a variable to be read and of a later one to be written.
    pub(super) fn pair(&mut self, read: usize, write: usize) -> (&Column, &mut Column) {
        self.places[write] = None;
        let (before, from) = self.variables.split_at_mut(write);
        (&before[read], &mut from[0])
    }

    /// The first `elements` values of an expression. `sources` has the words of each variable
    /// that may be read in place; these are the first variables.
    pub(super) fn evaluate(&mut self, expr: &Expr, sources: &[&[u32]], elements: usize) -> &[f32] {
        let mut result = std::mem::take(&mut self.result);
        self.evaluate_to(expr, sources, &mut result[..elements]);
        self.result = result;
        &self.result[..elements]
    }

    /// Evaluates an expression to `to`, for as many elements as `to` has.
    pub(super) fn evaluate_to(&mut self, expr: &Expr, sources: &[&[u32]], to: &mut [f32]) {
        let terms = expr.terms();
        let (last, elements) = (terms.len() - 1, to.len());
        if self.terms.len() < last {
            self.terms.resize(last, [0.0; BLOCK]);
        }
        for (id, term) in terms.iter().enumerate() {
            let (before, from) = self.terms.split_at_mut(id.min(last));
            let values = |variable: u32| -> &[f32] {
                let variable = variable as usize;
                match self.places[variable] {
                    Some(at) => bytemuck::cast_slice(&sources[variable][at..at + elements]),
                    None => &self.variables[variable][..elements],
                }
            };
            let column = |of: TermId| match terms[of.index()] {
                Term::Variable(variable) => values(variable),
                _ => &before[of.index()][..elements],
            };
            let to = match from.first_mut() {
                Some(column) if id < last => &mut column[..elements],
                _ => &mut *to,
            };
            match term {
                Term::Const(bits) => to.fill(f32::from_bits(*bits)),
                Term::Variable(variable) if id == last => to.copy_from_slice(values(*variable)),
                Term::Variable(_) => {}
                Term::Unary(function, a) => unary(*function, column(*a), to),
                Term::Binary(function, a, b) => binary(*function, [column(*a), column(*b)], to),
                Term::Where(operands) => choose(operands.map(column), to),
                Term::Call(function, operands) => {
                    let whole = |of: &TermId| match terms[of.index()] {
                        Term::Variable(variable) => self.wholes[variable as usize],
                        _ => None,
                    };
                    let inputs = &function.content.inputs;
                    let column =
                        |(place, of): (usize, &TermId)| match (whole(of), &terms[of.index()]) {
                            (Some(Whole { at, count, .. }), Term::Variable(variable)) => {
                                let words = count * inputs[place].of.lanes as usize;
                                bytemuck::cast_slice(&sources[*variable as usize][at..at + words])
                            }
                            _ => column(*of),
                        };
                    let columns: Vec<&[f32]> = operands.iter().enumerate().map(column).collect();
                    let widths: Vec<u32> = operands
                        .iter()
                        .filter_map(whole)
                        .map(|of| of.width)
                        .collect();
                    let elements = Elements {
                        first: self.first,
                        columns: &columns,
                        widths: &widths,
                    };
                    let outcome = match function.twin() {
                        Some(twin) => twin(&elements, to),
                        None => Err(Error::NoCpuFunction(function.content.name.clone())),
                    };
                    if let Err(error) = outcome {
                        self.failure.get_or_insert(error);
                    }
                }
            }
        }
    }
}
