//! Expressions on the processor: one pass over a block of values for each term.

use super::functions::{binary, unary};
use crate::kernel::{Expr, Term, TermId};

/// Elements at once: a column of them is a kilobyte.
pub(super) const BLOCK: usize = 256;

type Column = [f32; BLOCK];

/// Blocks of values of an expression's variables and terms.
#[derive(Debug)]
pub(super) struct Columns {
    variables: Vec<Column>,
    terms: Vec<Column>,
}

impl Columns {
    pub(super) fn new(variables: usize) -> Columns {
        Columns {
            variables: vec![[0.0; BLOCK]; variables],
            terms: Vec::new(),
        }
    }

    /// Where a variable's values go.
    pub(super) fn column(&mut self, variable: usize) -> &mut Column {
        &mut self.variables[variable]
    }

    /// Gives a variable one value for so many elements at once.
    pub(super) fn fill(&mut self, variable: usize, value: f32, elements: usize) {
        self.variables[variable][..elements].fill(value);
    }

    /// A variable to read and a later one to write.
    pub(super) fn pair(&mut self, read: usize, write: usize) -> (&Column, &mut Column) {
        let (before, from) = self.variables.split_at_mut(write);
        (&before[read], &mut from[0])
    }

    /// The values of an expression of the first `elements` of the variables.
    pub(super) fn evaluate(&mut self, expr: &Expr, elements: usize) -> &[f32] {
        let terms = expr.terms();
        if self.terms.len() < terms.len() {
            self.terms.resize(terms.len(), [0.0; BLOCK]);
        }
        for (id, term) in terms.iter().enumerate() {
            let (before, from) = self.terms.split_at_mut(id);
            let column = |of: TermId| -> &[f32] {
                match terms[of.index()] {
                    Term::Variable(variable) => &self.variables[variable as usize][..elements],
                    _ => &before[of.index()][..elements],
                }
            };
            let to = &mut from[0][..elements];
            match *term {
                Term::Const(bits) => to.fill(f32::from_bits(bits)),
                Term::Variable(_) => {}
                Term::Unary(function, a) => unary(function, column(a), to),
                Term::Binary(function, a, b) => binary(function, (column(a), column(b)), to),
            }
        }
        let last = terms.len() - 1;
        match terms[last] {
            Term::Variable(variable) => &self.variables[variable as usize][..elements],
            _ => &self.terms[last][..elements],
        }
    }
}
