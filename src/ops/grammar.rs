//! Formulas as people write them, parsed to expressions.
//!
//! Numbers, `pi` and the caller's names; `+ - * / ^`, unary minus, parentheses;
//! the functions of one and of two numbers by name. What is wrong is said with
//! its place. Nothing is evaluated here, but for whole exponents, which become
//! products.

use crate::error::Error;
use crate::graph::{BinaryFn, Expr, ExprBuilder, Term, TermId, UnaryFn};

/// Terms that an expression may have: a shader is compiled for it.
const MOST_TERMS: usize = 256;

/// Parentheses, functions and signs within each other.
const MOST_DEPTH: u32 = 64;

/// Largest exponent that becomes products.
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
        text,
        at: 0,
        depth: 0,
        names,
        builder: ExprBuilder::default(),
    };
    let parsed = parser.sum().and_then(|root| match parser.next() {
        None => Ok(root),
        Some(_) => Err(parser.expected("an operator or the end")),
    });
    match parsed {
        Ok(root) => Ok(parser.builder.finish(root)),
        Err(problem) => Err(Error::InvalidInput(
            [about, ": ", &problem, ", in '", text, "'"].concat(),
        )),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// The byte that comes next.
    at: usize,
    depth: u32,
    names: &'a [&'a str],
    builder: ExprBuilder,
}

type Parsed = Result<TermId, String>;

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        loop {
            let function = match self.next() {
                Some(b'+') => BinaryFn::Add,
                Some(b'-') => BinaryFn::Sub,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.product()?;
            left = self.push(Term::Binary(function, left, right))?;
        }
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.signed()?;
        loop {
            let function = match self.next() {
                Some(b'*') => BinaryFn::Mul,
                Some(b'/') => BinaryFn::Div,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.signed()?;
            left = self.push(Term::Binary(function, left, right))?;
        }
    }

    /// Everything that nests comes through here.
    fn signed(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(self.placed("it is nested too deeply"));
        }
        let parsed = if self.next() == Some(b'-') {
            self.at += 1;
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
        if self.next() != Some(b'^') {
            return Ok(base);
        }
        self.at += 1;
        let before = self.builder.len();
        let exponent = self.signed()?; // So 2^-1 is a number, and 2^3^2 is 2^9.
        self.raise(base, exponent, [start, before])
    }

    /// The builder had as many terms before the base, and before the exponent.
    fn raise(&mut self, base: TermId, exponent: TermId, [start, before]: [usize; 2]) -> Parsed {
        match self.builder.as_number(exponent) {
            Some(n) if n == n.trunc() && n.abs() <= MOST_FACTORS => {
                // What is not used any more must not make equal formulas differ.
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
        match self.next() {
            Some(b'(') => {
                self.at += 1;
                let inner = self.sum()?;
                self.take(b')', "')'")?;
                Ok(inner)
            }
            Some(b'0'..=b'9' | b'.') => self.literal(),
            Some(byte) if is_letter(byte) => self.named(),
            _ => Err(self.expected("a number, a name or '('")),
        }
    }

    fn named(&mut self) -> Parsed {
        let start = self.at;
        while self
            .byte()
            .is_some_and(|byte| is_letter(byte) || byte.is_ascii_digit())
        {
            self.at += 1;
        }
        let name = self.slice(start, self.at);
        let is_name = |known: &&str| *known == name;
        if let Some(number) = self.names.iter().position(is_name) {
            return self.push(Term::Variable(u32::try_from(number).unwrap_or(u32::MAX)));
        }
        if name == "pi" {
            return self.number(std::f32::consts::PI);
        }
        if let Some(function) = OF_ONE.iter().find(|known| is_name(&known.name())) {
            self.take(b'(', "'('")?;
            let operand = self.sum()?;
            self.take(b')', "')'")?;
            return self.push(Term::Unary(*function, operand));
        }
        if let Some((_, function)) = OF_TWO.iter().find(|(known, _)| is_name(known)) {
            self.take(b'(', "'('")?;
            let start = self.builder.len();
            let a = self.sum()?;
            self.take(b',', "','")?;
            let before = self.builder.len();
            let b = self.sum()?;
            self.take(b')', "')'")?;
            return match function {
                BinaryFn::Pow => self.raise(a, b, [start, before]),
                _ => self.push(Term::Binary(*function, a, b)),
            };
        }
        self.at = start;
        let mut known = vec!["pi"];
        known.extend(self.names);
        known.extend(OF_ONE.iter().map(|known| known.name()));
        known.extend(OF_TWO.iter().map(|(name, _)| name));
        let problem = ["there is no '", name, "'; known are ", &known.join(", ")].concat();
        Err(self.placed(&problem))
    }

    /// Digits, a point, an exponent. Summed up in float64, which has digits to
    /// spare: the standard library's parser would cost the package too much.
    fn literal(&mut self) -> Parsed {
        let start = self.at;
        let (mut value, mut digits, mut scale) = (0.0_f64, 0, 0_i32);
        let mut is_fraction = false;
        while let Some(byte) = self.byte() {
            match byte {
                b'0'..=b'9' => {
                    value = value * 10.0 + f64::from(byte - b'0');
                    digits += 1;
                    scale -= i32::from(is_fraction);
                }
                b'.' if !is_fraction => is_fraction = true,
                _ => break,
            }
            self.at += 1;
        }
        if digits == 0 {
            return Err(self.expected("a digit"));
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            scale = scale.saturating_add(self.exponent()?);
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "rounded once, to the type of the expression"
        )]
        let value = scaled(value, scale) as f32;
        if value.is_finite() {
            return self.number(value);
        }
        self.at = start;
        Err(self.placed("the number is too large for 32 bits"))
    }

    fn exponent(&mut self) -> Result<i32, String> {
        self.at += 1;
        let sign = self.byte();
        self.at += usize::from(matches!(sign, Some(b'+' | b'-')));
        if !self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.expected("a digit"));
        }
        let mut exponent = 0_i32;
        while let Some(byte @ b'0'..=b'9') = self.byte() {
            exponent = (exponent * 10 + i32::from(byte - b'0')).min(9999);
            self.at += 1;
        }
        Ok(if sign == Some(b'-') {
            -exponent
        } else {
            exponent
        })
    }

    fn number(&mut self, value: f32) -> Parsed {
        self.push(Term::Const(value.to_bits()))
    }

    fn push(&mut self, term: Term) -> Parsed {
        let id = self.builder.push(term);
        if self.builder.len() > MOST_TERMS {
            return Err(self.placed("it is too long"));
        }
        Ok(id)
    }

    /// The next byte that is not a space.
    fn next(&mut self) -> Option<u8> {
        while self.byte().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
        self.byte()
    }

    /// A part of the text. Indexing it would bring the package a panic that
    /// prints strings; both ends are between characters, so there is none.
    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8, name: &str) -> Result<(), String> {
        if self.next() != Some(byte) {
            return Err(self.expected(name));
        }
        self.at += 1;
        Ok(())
    }

    fn expected(&self, what: &str) -> String {
        let mut end = self.at + usize::from(self.at < self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        let found = self.slice(self.at, end);
        self.placed(&if found.is_empty() {
            ["expected ", what, ", but it ends"].concat()
        } else {
            ["expected ", what, ", but found '", found, "'"].concat()
        })
    }

    fn placed(&self, problem: &str) -> String {
        // Every character before has one byte, or it would not have been passed over.
        format!("{problem} at character {}", self.at + 1)
    }
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// value·10^scale, with at most two roundings for every exponent in use.
fn scaled(mut value: f64, scale: i32) -> f64 {
    let step = |exponent: u32| (0..exponent).fold(1.0_f64, |power, _| power * 10.0);
    let mut left = scale.unsigned_abs().min(400);
    while left > 0 {
        let exponent = left.min(22); // Powers that float64 holds exactly.
        if scale < 0 {
            value /= step(exponent);
        } else {
            value *= step(exponent);
        }
        left -= exponent;
    }
    value
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "grammar_tests.rs"]
mod tests;
