//! Parses formulas, as people write them, to expressions.
//!
//! A formula has numbers, `pi` and the caller's names; `+ - * / ^`, unary minus, parentheses;
//! the functions of one and of two numbers by name. A message says where a formula is wrong.
//! Nothing is evaluated here, except that a whole exponent becomes products.

mod cursor;

use self::cursor::{Cursor, is_letter};
use crate::error::Error;
use crate::graph::{BinaryFn, Expr, ExprBuilder, Term, TermId, UnaryFn};

/// The most terms of an expression, for which a shader is compiled.
const MOST_TERMS: usize = 256;

/// The most parentheses, functions and signs within one another.
const MOST_DEPTH: u32 = 64;

/// The largest exponent that becomes products.
const MOST_FACTORS: f32 = 16.0;

/// The functions of one number.
const OF_ONE: [UnaryFn; 10] = [
    UnaryFn::Neg,
    UnaryFn::Recip,
    UnaryFn::Abs,
    UnaryFn::Sqrt,
    UnaryFn::Exp,
    UnaryFn::Log,
    UnaryFn::Sin,
    UnaryFn::Cos,
    UnaryFn::Tan,
    UnaryFn::Tanh,
];

/// The functions of two numbers, as formulas name them.
const OF_TWO: [(&str, BinaryFn); 7] = [
    ("add", BinaryFn::Add),
    ("sub", BinaryFn::Sub),
    ("mul", BinaryFn::Mul),
    ("div", BinaryFn::Div),
    ("min", BinaryFn::Minimum),
    ("max", BinaryFn::Maximum),
    ("pow", BinaryFn::Pow),
];

/// Parses a formula of the variables of these names, in the order of their numbers.
///
/// # Errors
///
/// [`Error::InvalidInput`] with what was expected, what was found and where.
pub(super) fn parse(about: &str, text: &str, names: &[&str]) -> Result<Expr, Error> {
    let mut parser = Parser {
        cursor: Cursor::new(text),
        depth: 0,
        names,
        builder: ExprBuilder::default(),
    };
    let parsed = parser.sum().and_then(|root| match parser.cursor.next() {
        None => Ok(root),
        Some(_) => Err(parser.cursor.expected("an operator or the end")),
    });
    match parsed {
        Ok(root) => Ok(parser.builder.finish(root)),
        Err(problem) => Err(Error::InvalidInput(
            [about, ": ", &problem, ", in '", text, "'"].concat(),
        )),
    }
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    /// How many parentheses, functions and signs are open.
    depth: u32,
    names: &'a [&'a str],
    builder: ExprBuilder,
}

/// The term of a part of a formula, or what is wrong with that part.
type Parsed = Result<TermId, String>;

impl Parser<'_> {
    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        loop {
            let function = match self.cursor.next() {
                Some(b'+') => BinaryFn::Add,
                Some(b'-') => BinaryFn::Sub,
                _ => return Ok(left),
            };
            self.cursor.skip();
            let right = self.product()?;
            left = self.push(Term::Binary(function, left, right))?;
        }
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.signed()?;
        loop {
            let function = match self.cursor.next() {
                Some(b'*') => BinaryFn::Mul,
                Some(b'/') => BinaryFn::Div,
                _ => return Ok(left),
            };
            self.cursor.skip();
            let right = self.signed()?;
            left = self.push(Term::Binary(function, left, right))?;
        }
    }

    /// Parses a sign and what follows. All nesting comes through here, and is counted.
    fn signed(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(self.cursor.placed("it is nested too deeply"));
        }
        let parsed = if self.cursor.next() == Some(b'-') {
            self.cursor.skip();
            let before = self.builder.len();
            let operand = self.signed()?;
            match self.builder.as_number(operand) {
                Some(number) => {
                    self.builder.truncate(before.max(operand.index()));
                    self.number(-number)
                }
                None => self.push(Term::Unary(UnaryFn::Neg, operand)),
            }
        } else {
            self.power()
        };
        self.depth -= 1;
        parsed
    }

    fn power(&mut self) -> Parsed {
        let start = self.builder.len();
        let base = self.atom()?;
        if self.cursor.next() != Some(b'^') {
            return Ok(base);
        }
        self.cursor.skip();
        let before = self.builder.len();
        let exponent = self.signed()?; // The exponent may have a sign, and 2^3^2 is 2^9.
        self.raise(base, exponent, start, before)
    }

    /// Raises a base to an exponent. `start` and `before` are how many terms there were before the
    /// base and before the exponent.
    fn raise(&mut self, base: TermId, exponent: TermId, start: usize, before: usize) -> Parsed {
        match self.builder.as_number(exponent) {
            Some(n) if n == n.trunc() && n.abs() <= MOST_FACTORS => {
                // Terms that nothing uses any more must not make equal formulas differ.
                self.builder.truncate(if n == 0.0 { start } else { before });
                let raised = self.factors(base, n.abs())?;
                if n < 0.0 {
                    self.push(Term::Unary(UnaryFn::Recip, raised))
                } else {
                    Ok(raised)
                }
            }
            _ => self.push(Term::Binary(BinaryFn::Pow, base, exponent)),
        }
    }

    /// The product of so many factors, by squaring.
    fn factors(&mut self, base: TermId, n: f32) -> Parsed {
        if n == 0.0 {
            return self.number(1.0);
        }
        if n == 1.0 {
            return Ok(base);
        }
        let half = self.factors(base, (n / 2.0).trunc())?;
        let square = self.push(Term::Binary(BinaryFn::Mul, half, half))?;
        if n % 2.0 == 0.0 {
            return Ok(square);
        }
        self.push(Term::Binary(BinaryFn::Mul, square, base))
    }

    fn atom(&mut self) -> Parsed {
        match self.cursor.next() {
            Some(b'(') => {
                self.cursor.skip();
                let inner = self.sum()?;
                self.cursor.take(b')', "')'")?;
                Ok(inner)
            }
            Some(b'0'..=b'9' | b'.') => {
                let number = self.cursor.number()?;
                self.number(number)
            }
            Some(byte) if is_letter(byte) => self.named(),
            _ => Err(self.cursor.expected("a number, a name or '('")),
        }
    }

    fn named(&mut self) -> Parsed {
        let start = self.cursor.at();
        let name = self.cursor.name();
        let is_name = |known: &&str| *known == name;
        if let Some(number) = self.names.iter().position(is_name) {
            return self.push(Term::Variable(u32::try_from(number).unwrap_or(u32::MAX)));
        }
        if name == "pi" {
            return self.number(std::f32::consts::PI);
        }
        if let Some(function) = OF_ONE.iter().find(|known| is_name(&known.name())) {
            self.cursor.take(b'(', "'('")?;
            let operand = self.sum()?;
            self.cursor.take(b')', "')'")?;
            return self.push(Term::Unary(*function, operand));
        }
        if let Some((_, function)) = OF_TWO.iter().find(|(known, _)| is_name(known)) {
            self.cursor.take(b'(', "'('")?;
            let start = self.builder.len();
            let a = self.sum()?;
            self.cursor.take(b',', "','")?;
            let before = self.builder.len();
            let b = self.sum()?;
            self.cursor.take(b')', "')'")?;
            return match function {
                BinaryFn::Pow => self.raise(a, b, start, before),
                _ => self.push(Term::Binary(*function, a, b)),
            };
        }
        self.cursor.go_back(start);
        let mut known = vec!["pi"];
        known.extend(self.names);
        known.extend(OF_ONE.iter().map(|known| known.name()));
        known.extend(OF_TWO.iter().map(|(name, _)| name));
        let problem = ["there is no '", name, "'; known are ", &known.join(", ")].concat();
        Err(self.cursor.placed(&problem))
    }

    fn number(&mut self, value: f32) -> Parsed {
        self.push(Term::Const(value.to_bits()))
    }

    fn push(&mut self, term: Term) -> Parsed {
        let id = self.builder.push(term);
        if self.builder.len() > MOST_TERMS {
            return Err(self.cursor.placed("it is too long"));
        }
        Ok(id)
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
