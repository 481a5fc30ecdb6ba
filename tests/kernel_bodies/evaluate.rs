//! What a body computes: in floats of 32 bits, as its function for the CPU, and in 64 bits with a
//! bound of how far a device may be off.

use crate::body::{Binary, Body, Expr, Loop, Place, Statement, Test, Unary};

/// What expressions are computed in.
pub(crate) trait Real: Copy {
    fn exactly(number: f32) -> Self;
    fn unary(self, function: Unary) -> Self;
    fn binary(self, other: Self, function: Binary) -> Self;
    /// The first side where the first of both numbers is below the second, and otherwise the other.
    fn below(of: [Self; 2], sides: [Self; 2]) -> Self;
}

impl Real for f32 {
    fn exactly(number: f32) -> f32 {
        number
    }

    fn unary(self, function: Unary) -> f32 {
        match function {
            Unary::Negative => -self,
            Unary::Abs => self.abs(),
            Unary::Sqrt => (self.abs() + 0.5).sqrt(),
            Unary::Exp => self.clamp(-4.0, 4.0).exp(),
        }
    }

    fn binary(self, other: f32, function: Binary) -> f32 {
        match function {
            Binary::Add => self + other,
            Binary::Subtract => self - other,
            Binary::Multiply => self * other,
            Binary::Divide => self / (other.abs() + 0.5),
            Binary::Min => self.min(other),
            Binary::Max => self.max(other),
        }
    }

    fn below([a, b]: [f32; 2], [then, other]: [f32; 2]) -> f32 {
        if a < b { then } else { other }
    }
}

/// A value, and how far from it what a device computes may be: by WGSL's table of accuracies.
///
/// Compilers of devices put sums and products in another order, so that a sum of numbers that
/// cancel one another is off by as much as the magnitudes of all that is summed allow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounded {
    pub(crate) value: f64,
    /// Infinite where nothing is known.
    pub(crate) error: f64,
    /// The same sums and products of magnitudes.
    size: f64,
}

/// Half a unit of the last place of 1: what one correctly rounded operation is off at most.
const ROUNDING: f64 = 1.0 / (1_u64 << 24) as f64;

/// How often a sum's or a product's rounding counts, because of the order that is not known.
const ORDERS: f64 = 4.0;

/// Beyond this magnitude nothing is said: it may be more than floats hold.
const LARGEST: f64 = 1e30;

impl Bounded {
    /// A result of operands that may be off, by so much together, computed with so many roundings.
    fn rounded(value: f64, error: f64, roundings: f64) -> Bounded {
        Bounded::of_size(value.abs() + error, value, error, roundings)
    }

    fn of_size(size: f64, value: f64, error: f64, roundings: f64) -> Bounded {
        // Numbers below the normal ones may be 0.
        let error = error + (size + error) * roundings * ROUNDING + f64::from(f32::MIN_POSITIVE);
        match size < LARGEST && error < LARGEST {
            true => Bounded { value, error, size },
            false => Bounded {
                value: 0.0,
                error: f64::INFINITY,
                size: LARGEST,
            },
        }
    }

    fn add(self, other: Bounded) -> Bounded {
        let (size, error) = (self.size + other.size, self.error + other.error);
        Bounded::of_size(size, self.value + other.value, error, ORDERS)
    }

    /// The magnitude and a half, and the least of it that a device may have.
    fn away(self) -> (Bounded, f64) {
        let by = self.unary(Unary::Abs).add(Bounded::exactly(0.5));
        (by, (by.value - by.error).max(0.49))
    }

    /// Whether a device may have another order of two numbers.
    fn is_open(self, other: Bounded) -> bool {
        let errors = self.error + other.error;
        errors > 0.0 && (self.value - other.value).abs() <= errors
    }

    /// This number, or the other one if the device takes that.
    fn or(self, other: Bounded) -> Bounded {
        let apart = (self.value - other.value).abs() + other.error;
        Bounded {
            value: self.value,
            error: self.error.max(apart),
            size: self.size.max(other.size),
        }
    }
}

impl Real for Bounded {
    fn exactly(number: f32) -> Bounded {
        Bounded {
            value: number.into(),
            error: 0.0,
            size: number.abs().into(),
        }
    }

    fn unary(self, function: Unary) -> Bounded {
        let Bounded { value, error, .. } = self;
        match function {
            Unary::Negative => Bounded {
                value: -value,
                ..self
            },
            Unary::Abs => Bounded {
                value: value.abs(),
                ..self
            },
            Unary::Sqrt => {
                let (by, least) = self.away();
                let root = by.value.sqrt();
                let (low, high) = (least.sqrt(), (by.value + by.error).sqrt());
                // 2 units for the inverse root, 2.5 for the division.
                Bounded::rounded(root, (root - low).max(high - root), 9.0)
            }
            Unary::Exp => {
                let of = value.clamp(-4.0, 4.0);
                // WGSL allows 3 units of the last place, and 2 for each of the argument. Mesa's
                // software adapter takes more: 14 at -4.
                let units = 2.0 * (3.0 + 2.0 * (of.abs() + error).min(4.0));
                Bounded::rounded(of.exp(), of.exp() * error.min(8.0).exp_m1(), 2.0 * units)
            }
        }
    }

    fn binary(self, other: Bounded, function: Binary) -> Bounded {
        let (a, b) = (self, other);
        match function {
            Binary::Add => a.add(b),
            Binary::Subtract => a.add(b.unary(Unary::Negative)),
            Binary::Multiply => {
                let error = a.value.abs() * b.error + (b.value.abs() + b.error) * a.error;
                Bounded::of_size(a.size * b.size, a.value * b.value, error, ORDERS)
            }
            Binary::Divide => {
                let (by, least) = b.away();
                let quotient = a.value / by.value;
                let error = (a.error + quotient.abs() * by.error) / least;
                // 2.5 units for the division.
                Bounded::of_size(a.size / least, quotient, error, ORDERS + 5.0)
            }
            Binary::Min | Binary::Max => {
                let is_first = (a.value < b.value) == matches!(function, Binary::Min);
                let (chosen, rest) = if is_first { (a, b) } else { (b, a) };
                match a.is_open(b) {
                    true => chosen.or(rest),
                    false => chosen,
                }
            }
        }
    }

    fn below([a, b]: [Bounded; 2], [then, other]: [Bounded; 2]) -> Bounded {
        let (chosen, rest) = match a.value < b.value {
            true => (then, other),
            false => (other, then),
        };
        match a.is_open(b) {
            true => chosen.or(rest),
            false => chosen,
        }
    }
}

/// What a body reads at one element.
pub(crate) struct Leaves<'a> {
    /// The values of the element by number, or the inputs that a body of a place looks at.
    pub(crate) read: &'a dyn Fn(usize, Option<Place>) -> f32,
    pub(crate) params: [f32; 3],
}

/// What expressions see beside their leaves.
struct Scope<'a, R> {
    body: &'a Body,
    leaves: &'a Leaves<'a>,
    locals: &'a [R],
    /// In a helper its arguments.
    arguments: Option<[R; 2]>,
    /// In a loop the number of the pass, and what the pass before gave.
    carried: Option<(f32, R)>,
}

impl Body {
    pub(crate) fn evaluate<R: Real>(&self, leaves: &Leaves<'_>) -> R {
        let mut locals: Vec<R> = Vec::new();
        for statement in &self.statements {
            let scope = |carried| Scope {
                body: self,
                leaves,
                locals: &locals,
                arguments: None,
                carried,
            };
            let value = match statement {
                Statement::Let(expr) => scope(None).value(expr),
                Statement::If(test, sides) => {
                    let scope = scope(None);
                    scope.choose(test, sides)
                }
                Statement::Loop(of) => {
                    let Loop { start, step, .. } = of;
                    let passes = (0..of.passes).filter(|pass| Some(*pass) != of.skipped);
                    passes.fold(scope(None).value(start), |carried, pass| {
                        scope(Some((pass as f32, carried))).value(step)
                    })
                }
            };
            locals.push(value);
        }
        let scope = Scope {
            body: self,
            leaves,
            locals: &locals,
            arguments: None,
            carried: None,
        };
        scope.value(&self.result)
    }
}

impl<R: Real> Scope<'_, R> {
    fn value(&self, expr: &Expr) -> R {
        let both = |sides: &[Expr; 2]| [0, 1].map(|side| self.value(&sides[side]));
        match expr {
            Expr::Number(number) => R::exactly(*number),
            Expr::Param(at) => R::exactly(self.leaves.params[*at]),
            Expr::Value(at) => match self.arguments {
                Some(arguments) => arguments[*at],
                None => R::exactly((self.leaves.read)(*at, None)),
            },
            Expr::Look(input, place) => R::exactly((self.leaves.read)(*input, Some(*place))),
            Expr::Local(at) => self.locals[*at],
            Expr::Passes => R::exactly(self.carried.expect("in a loop").0),
            Expr::Carried => self.carried.expect("in a loop").1,
            Expr::Unary(function, of) => self.value(of).unary(*function),
            Expr::Binary(function, sides) => {
                let [a, b] = both(sides);
                a.binary(b, *function)
            }
            Expr::Select(test, sides) => self.choose(test, sides),
            Expr::Helper(at, sides) => {
                let scope = Scope {
                    arguments: Some(both(sides)),
                    carried: None,
                    ..*self
                };
                scope.value(&self.body.helpers[*at])
            }
        }
    }

    fn choose(
        &self,
        Test {
            is_below,
            sides: of,
        }: &Test,
        sides: &[Expr; 2],
    ) -> R {
        let [then, other] = [0, 1].map(|side| self.value(&sides[side]));
        let sides = if *is_below {
            [then, other]
        } else {
            [other, then]
        };
        R::below([0, 1].map(|side| self.value(&of[side])), sides)
    }
}
