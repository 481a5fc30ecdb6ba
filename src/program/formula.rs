//! Expressions as text in plans, and numbers as text in plans and in WGSL.
//!
//! Floats are printed as bits or whole numbers: the code that prints decimals would add more
//! to the package than this file.

use std::fmt::{self, Display, Formatter};

use crate::graph::{Expr, Term};

/// A float as WGSL, given by its bits.
pub(crate) struct Number(pub(crate) u32);

impl Display for Number {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let bits = self.0;
        match whole(bits) {
            Some(number) => write!(f, "f32({number})"),
            None if f32::from_bits(bits).is_finite() => write!(f, "bitcast<f32>({bits}u)"),
            // A compiler must refuse a constant that is not finite, so the text must not be a
            // constant to the compiler.
            None => write!(f, "bitcast<f32>({bits}u | (params.table & 0u))"),
        }
    }
}

/// The whole number that a float is, if it is a whole number of at most 31 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast to an integer saturates, and the result is compared"
)]
fn whole(bits: u32) -> Option<i32> {
    let number = f32::from_bits(bits) as i32;
    ((number as f32).to_bits() == bits).then_some(number)
}

/// Prints the variable of this number.
type Variable<'a> = &'a dyn Fn(&mut Formatter<'_>, usize) -> fmt::Result;

/// Prints an expression as plans show it: one line, in which a term that is used twice is
/// printed once, under a name.
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
        line.value(f, id, Parentheses::Without)?;
        f.write_str("; ")?;
    }
    line.value(f, terms.len() - 1, Parentheses::Without)
}

/// Whether a term with a sign stands in parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parentheses {
    With,
    Without,
}

/// An expression that is printed in one line.
struct Line<'a> {
    terms: &'a [Term],
    /// How often each term is an operand.
    uses: &'a [usize],
    variable: Variable<'a>,
}

impl Line<'_> {
    fn is_named(&self, id: usize) -> bool {
        self.uses[id] > 1 && self.terms[id].operands().next().is_some()
    }

    /// Prints an operand: a term that has a name as its name.
    fn operand(&self, f: &mut Formatter<'_>, id: usize, around: Parentheses) -> fmt::Result {
        if self.is_named(id) {
            return write!(f, "t{id}");
        }
        self.value(f, id, around)
    }

    /// Prints what a term computes.
    fn value(&self, f: &mut Formatter<'_>, id: usize, around: Parentheses) -> fmt::Result {
        let term = &self.terms[id];
        let (name, separator, inner) = match term {
            Term::Const(bits) => return Number(*bits).fmt(f),
            Term::Variable(variable) => return (self.variable)(f, *variable as usize),
            Term::Unary(function, _) => (function.name(), "", Parentheses::Without),
            Term::Binary(function, ..) => match function.sign() {
                Some(sign) => ("", sign, Parentheses::With),
                None => (function.name(), ", ", Parentheses::With),
            },
            Term::Where(_) => ("where", ", ", Parentheses::With),
            Term::Call(function, _) => (&*function.content.name, ", ", Parentheses::With),
        };
        let is_bare = around == Parentheses::Without && name.is_empty();
        f.write_str(name)?;
        f.write_str(if is_bare { "" } else { "(" })?;
        for (place, operand) in term.operands().enumerate() {
            f.write_str(if place > 0 { separator } else { "" })?;
            self.operand(f, operand.index(), inner)?;
        }
        f.write_str(if is_bare { "" } else { ")" })
    }
}

/// Prints the expression in one line, with variables `v0`, `v1` and so on.
impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        show(f, self, &|f, variable| write!(f, "v{variable}"))
    }
}
