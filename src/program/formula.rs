//! Expressions as plans show them, and their numbers as WGSL has them too.
//!
//! Floats are printed as bits or whole numbers: printing them as decimals would
//! cost the package more than this file.

use std::fmt::{self, Display, Formatter};

use crate::graph::{Expr, Term};

/// A number in WGSL, by its bits.
pub(crate) struct Number(pub(crate) u32);

impl Display for Number {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let bits = self.0;
        match whole(bits) {
            Some(number) => write!(f, "f32({number})"),
            None if f32::from_bits(bits).is_finite() => write!(f, "bitcast<f32>({bits}u)"),
            // A compiler must refuse a constant that is not finite, so it may not know it
            // to be one.
            None => write!(f, "bitcast<f32>({bits}u | (params.table & 0u))"),
        }
    }
}

/// The whole number that a float is, if it is one of 31 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast to an integer saturates, and the result is compared"
)]
fn whole(bits: u32) -> Option<i32> {
    let number = f32::from_bits(bits) as i32;
    ((number as f32).to_bits() == bits).then_some(number)
}

/// Prints the variable of a number.
type Variable<'a> = &'a dyn Fn(&mut Formatter<'_>, usize) -> fmt::Result;

/// An expression as plans show it: one line, in which what is used twice has a
/// name.
pub(super) fn show(f: &mut Formatter<'_>, expr: &Expr, variable: Variable<'_>) -> fmt::Result {
    let terms = expr.terms();
    let mut uses = vec![0; terms.len()];
    for operand in terms.iter().flat_map(|term| term.operands()) {
        uses[operand.index()] += 1;
    }
    let line = Line {
        terms,
        uses: &uses,
        variable,
    };
    for id in (0..terms.len()).filter(|id| line.is_named(*id)) {
        write!(f, "t{id} = ")?;
        line.term(f, (id, true))?;
        f.write_str("; ")?;
    }
    line.term(f, (terms.len() - 1, true))
}

struct Line<'a> {
    terms: &'a [Term],
    /// How often each is an operand.
    uses: &'a [usize],
    variable: Variable<'a>,
}

impl Line<'_> {
    fn is_named(&self, id: usize) -> bool {
        self.uses[id] > 1 && self.terms[id].operands().next().is_some()
    }

    fn term(&self, f: &mut Formatter<'_>, (id, is_top): (usize, bool)) -> fmt::Result {
        if !is_top && self.is_named(id) {
            return write!(f, "t{id}");
        }
        let (name, separator, [a, b], inner) = match self.terms[id] {
            Term::Const(bits) => return Number(bits).fmt(f),
            Term::Variable(variable) => return (self.variable)(f, variable as usize),
            Term::Unary(function, a) => (function.name(), "", [Some(a), None], true),
            Term::Binary(function, a, b) => {
                let operands = [Some(a), Some(b)];
                match function.sign() {
                    Some(sign) => ("", sign, operands, false),
                    None => (function.name(), ", ", operands, false),
                }
            }
        };
        let is_bare = is_top && name.is_empty();
        f.write_str(name)?;
        f.write_str(if is_bare { "" } else { "(" })?;
        for (operand, separator) in [(a, ""), (b, separator)] {
            if let Some(operand) = operand {
                f.write_str(separator)?;
                self.term(f, (operand.index(), inner))?;
            }
        }
        f.write_str(if is_bare { "" } else { ")" })
    }
}

/// In one line, with variables `v0`, `v1` and so on.
impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        show(f, self, &|f, variable| write!(f, "v{variable}"))
    }
}
