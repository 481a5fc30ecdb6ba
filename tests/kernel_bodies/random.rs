//! Bodies and data made of random words. Fewer and smaller words make simpler ones, so that what
//! fails shrinks.

use crate::body::{Binary, Body, Expr, Form, Loop, PARAMS, Place, Statement, Style, Test, Unary};

/// Words, one after the other; zeros behind the last one.
pub(crate) struct Dice<'a> {
    words: &'a [u32],
    at: usize,
}

impl<'a> Dice<'a> {
    pub(crate) fn new(words: &'a [u32]) -> Dice<'a> {
        Dice { words, at: 0 }
    }

    /// A number below `sides`.
    fn below(&mut self, sides: usize) -> usize {
        let word = self.words.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        word as usize % sides
    }

    fn between(&mut self, least: i32, most: i32) -> i32 {
        least + self.below((most - least + 1) as usize) as i32
    }
}

/// What expressions may name at some place of a body.
#[derive(Clone, Copy)]
struct Scope {
    form: Form,
    inputs: usize,
    locals: usize,
    helpers: usize,
    is_helper: bool,
    is_loop: bool,
}

pub(crate) fn body(dice: &mut Dice<'_>, form: Form) -> Body {
    let inputs = 1 + dice.below(3);
    let mut scope = Scope {
        form,
        inputs,
        locals: 0,
        helpers: 0,
        is_helper: true,
        is_loop: false,
    };
    let mut helpers = Vec::new();
    for _ in 0..dice.below(3) {
        helpers.push(expr(dice, scope, 2));
        scope.helpers += 1;
    }
    scope.is_helper = false;
    let mut statements = Vec::new();
    for _ in 0..dice.below(4) {
        statements.push(statement(dice, scope));
        scope.locals += 1;
    }
    Body {
        form,
        inputs,
        helpers,
        statements,
        result: expr(dice, scope, 4),
    }
}

fn statement(dice: &mut Dice<'_>, scope: Scope) -> Statement {
    match dice.below(4) {
        0 | 1 => Statement::Let(expr(dice, scope, 3)),
        2 => Statement::If(test(dice, scope, 2), sides(dice, scope, 2)),
        _ => {
            let passes = 1 + dice.below(5);
            let skipped = dice.below(2 * passes);
            let start = expr(dice, scope, 2);
            Statement::Loop(Loop {
                style: [Style::For, Style::While, Style::Loop][dice.below(3)],
                passes: passes as u32,
                skipped: (skipped < passes).then_some(skipped as u32),
                start,
                step: expr(
                    dice,
                    Scope {
                        is_loop: true,
                        ..scope
                    },
                    2,
                ),
            })
        }
    }
}

fn sides(dice: &mut Dice<'_>, scope: Scope, depth: usize) -> Box<[Expr; 2]> {
    Box::new([expr(dice, scope, depth), expr(dice, scope, depth)])
}

fn test(dice: &mut Dice<'_>, scope: Scope, depth: usize) -> Test {
    Test {
        is_below: dice.below(2) == 0,
        sides: sides(dice, scope, depth),
    }
}

fn expr(dice: &mut Dice<'_>, scope: Scope, depth: usize) -> Expr {
    if depth == 0 {
        return leaf(dice, scope);
    }
    let next = depth - 1;
    match dice.below(12) {
        0 | 1 => leaf(dice, scope),
        2 | 3 => {
            let functions = [Unary::Negative, Unary::Abs, Unary::Sqrt, Unary::Exp];
            let function = functions[dice.below(functions.len())];
            Expr::Unary(function, Box::new(expr(dice, scope, next)))
        }
        4 => Expr::Select(test(dice, scope, next), sides(dice, scope, next)),
        5 | 6 if scope.helpers > 0 => {
            let helper = dice.below(scope.helpers);
            Expr::Helper(helper, sides(dice, scope, next))
        }
        _ => {
            let functions = [
                Binary::Add,
                Binary::Subtract,
                Binary::Multiply,
                Binary::Divide,
                Binary::Min,
                Binary::Max,
            ];
            let function = functions[dice.below(functions.len())];
            Expr::Binary(function, sides(dice, scope, next))
        }
    }
}

fn leaf(dice: &mut Dice<'_>, scope: Scope) -> Expr {
    match dice.below(10) {
        0 => Expr::Number(dice.between(-16, 16) as f32 / 4.0),
        1 => Expr::Param(dice.below(PARAMS.len())),
        2 | 3 if scope.is_loop => Expr::Carried,
        4 if scope.is_loop => Expr::Passes,
        5 | 6 if scope.locals > 0 => Expr::Local(dice.below(scope.locals)),
        7 | 8 if scope.is_helper => Expr::Value(dice.below(2)),
        _ => match scope.form {
            Form::Element if scope.is_helper => Expr::Value(dice.below(2)),
            Form::Element => Expr::Value(dice.below(scope.inputs)),
            Form::At => {
                let input = dice.below(scope.inputs);
                Expr::Look(input, place(dice))
            }
        },
    }
}

fn place(dice: &mut Dice<'_>) -> Place {
    match dice.below(6) {
        0 => Place::Along(1, 0),
        1 => Place::Along(1, dice.between(-3, 3)),
        2 => Place::Along(dice.between(-2, 3), dice.between(-100, 100)),
        3 => Place::ByParam,
        _ => Place::Cell(dice.between(-2, 2), dice.between(-2, 2)),
    }
}

/// Random floats, some of them quarters, so that equal ones occur.
pub(crate) fn floats(dice: &mut Dice<'_>, count: usize) -> Vec<f32> {
    let mut word = dice.below(1 << 30) as u32;
    let mut next = || {
        // The generator of Numerical Recipes.
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let drawn = (word >> 8) as f32 / (1 << 24) as f32 * 6.0 - 3.0;
        match word >> 30 {
            0 => (drawn * 4.0).round() / 4.0,
            _ => drawn,
        }
    };
    (0..count).map(|_| next()).collect()
}

/// The params of a call.
pub(crate) fn params(dice: &mut Dice<'_>) -> (f32, i32, u32) {
    let first = dice.between(-8, 8) as f32 / 3.0;
    (first, dice.between(-5, 5), dice.below(4) as u32)
}

/// Shapes of a few rows and columns, none of a single element, which would broadcast.
pub(crate) fn lengths(dice: &mut Dice<'_>, count: usize) -> impl Iterator<Item = [u32; 2]> + use<> {
    let shapes: Vec<[u32; 2]> = (0..count)
        .map(|_| [2 + dice.below(12) as u32, 1 + dice.below(9) as u32])
        .collect();
    shapes.into_iter()
}
