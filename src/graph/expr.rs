//! Expressions of 32-bit floats, as plain data.
//!
//! One type, printed to WGSL (`kernel`) and evaluated on the CPU (`device/cpu`).
//! It does not know where its variables come from, nor any grammar.

use std::sync::Arc;

/// A term of one expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(u32);

impl TermId {
    /// The term's place in [`Expr::terms`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A number, as its bits, so that equal terms are equal.
    Const(u32),
    /// The variable of this number.
    Variable(u32),
    /// A function of one earlier term.
    Unary(Unary, TermId),
    /// A function of two earlier terms.
    Binary(Binary, TermId, TermId),
}

/// Functions of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Unary {
    Neg,
    Recip,
    Abs,
    Sqrt,
    Exp,
    Log,
    Sin,
    Cos,
    Tan,
    Tanh,
}

/// Functions of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
    Pow,
}

impl Unary {
    /// Every one, with its name.
    pub const ALL: [(&'static str, Unary); 10] = [
        ("neg", Unary::Neg),
        ("recip", Unary::Recip),
        ("abs", Unary::Abs),
        ("sqrt", Unary::Sqrt),
        ("exp", Unary::Exp),
        ("log", Unary::Log),
        ("sin", Unary::Sin),
        ("cos", Unary::Cos),
        ("tan", Unary::Tan),
        ("tanh", Unary::Tanh),
    ];
}

impl Binary {
    /// Every one, with its name.
    pub const ALL: [(&'static str, Binary); 7] = [
        ("add", Binary::Add),
        ("sub", Binary::Sub),
        ("mul", Binary::Mul),
        ("div", Binary::Div),
        ("min", Binary::Min),
        ("max", Binary::Max),
        ("pow", Binary::Pow),
    ];
}

/// An expression: terms of which each uses earlier ones. The last is its value.
///
/// Invariant: no term stands twice; so expressions made the same way are equal,
/// and calls of them merge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expr {
    terms: Arc<[Term]>,
}

impl Expr {
    /// The terms, operands before users.
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
    /// Adds a term, or finds it.
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

    /// The number that a term is, if it is one.
    pub fn as_number(&self, id: TermId) -> Option<f32> {
        match self.terms[id.index()] {
            Term::Const(bits) => Some(f32::from_bits(bits)),
            Term::Variable(_) | Term::Unary(..) | Term::Binary(..) => None,
        }
    }

    /// Terms so far.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Forgets all terms but the first ones; nothing may use the others.
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
