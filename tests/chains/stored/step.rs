//! Random steps on square tensors of one side: what is computed of which, where it is stored, what
//! is written, and what is read.
//!
//! A step is data: the oracle and the sessions each take it in their own way.

use framebatch::graph::NodeId;
use framebatch::graph::chain::{Axes, Chain, Home, Norm, Reduction};
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, UnaryFn};
use framebatch::tensor::DType;
use framebatch::{Batch, Error, Part, Value};

use crate::oracle::{Tensor, evaluate};
use crate::random::Words;

/// The most tensors of one caller.
const MOST: usize = 6;

/// What is computed of a value, or of it and another one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    Negate,
    Squash,
    Halve,
    Add,
    Multiply,
    /// Rows become columns.
    Turn,
    /// The last row comes first.
    Reverse,
    /// The mean of each row is taken from the row.
    Center,
    /// The largest of each column, in all of its rows, and the other value where that is less.
    Cap,
    Soften,
    /// The product of both as matrices.
    Product,
}

const RULES: [Rule; 11] = [
    Rule::Negate,
    Rule::Squash,
    Rule::Halve,
    Rule::Add,
    Rule::Multiply,
    Rule::Turn,
    Rule::Reverse,
    Rule::Center,
    Rule::Cap,
    Rule::Soften,
    Rule::Product,
];

/// A value: rules applied to a tensor one after the other, with another tensor.
#[derive(Clone, Debug)]
pub(crate) struct Formula {
    pub(crate) x: usize,
    pub(crate) y: usize,
    rules: Vec<Rule>,
}

/// Where a value goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// A new tensor.
    New,
    /// A tensor that exists.
    Into(usize),
    /// Back to the caller.
    Read,
}

/// What one caller asks for at once.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One batch.
    Batch(Vec<(Formula, Goal)>),
    /// Floats for a tensor, from a place on.
    Write {
        tensor: usize,
        at: u32,
        floats: Vec<f32>,
    },
    Read {
        tensor: usize,
    },
    /// Everything so far is sent.
    Flush,
}

/// The steps that some words stand for, on `count` tensors of so many elements.
pub(crate) fn steps(words: &mut Words<'_>, count: usize, elements: u32) -> Vec<Step> {
    let mut count = count;
    let steps = (0..3 + words.below(12)).map(|_| match words.below(8) {
        0 => Step::Flush,
        1 => Step::Read {
            tensor: words.below(count),
        },
        2 | 3 => {
            let tensor = words.below(count);
            let at = words.below(elements as usize + 1) as u32;
            let at = words.pick(&[0, at]);
            let most = (elements - at) as usize;
            let length = words.pick(&[most, most.min(1), most / 2, most.min(7)]);
            let first = words.below(100) as f32 / 64.0;
            let floats = (0..length).map(|i| (first + i as f32 * 0.37).sin());
            Step::Write {
                tensor,
                at,
                floats: floats.collect(),
            }
        }
        _ => batch(words, &mut count),
    });
    steps.collect()
}

fn batch(words: &mut Words<'_>, count: &mut usize) -> Step {
    let mut values: Vec<(Formula, Goal)> = Vec::new();
    let known = *count;
    // Two tensors change places.
    if words.below(6) == 0 {
        let (a, b) = (words.below(known), words.below(known));
        let copy = |x, target| {
            let rules = Vec::new();
            (Formula { x, y: x, rules }, Goal::Into(target))
        };
        if a != b {
            return Step::Batch(vec![copy(a, b), copy(b, a)]);
        }
    }
    for _ in 0..1 + words.below(3) {
        let rules = (0..words.below(4)).map(|_| words.pick(&RULES));
        let formula = Formula {
            rules: rules.collect(),
            x: words.below(known),
            y: words.below(known),
        };
        let any = words.below(known);
        let target = Goal::Into(words.pick(&[formula.x, formula.y, any]));
        let goal = match words.below(6) {
            0 => Goal::Read,
            1 if *count < MOST => {
                *count += 1;
                Goal::New
            }
            _ => target,
        };
        let is_taken = |(_, known): &(Formula, Goal)| *known == goal && goal == target;
        if !values.iter().any(is_taken) {
            values.push((formula, goal));
        }
    }
    Step::Batch(values)
}

impl Formula {
    /// What the value is, by the oracle.
    pub(crate) fn expected(&self, tensors: &[Tensor]) -> Tensor {
        let mut chain = Chain::default();
        let operands = [self.x, self.y].map(|at| &tensors[at]);
        let inputs = operands.map(|tensor| {
            let input = chain.input(tensor.shape, DType::F32, Home::Resident);
            input.unwrap()
        });
        let half = chain.constant().unwrap();
        let value = self.rules.iter().fold(inputs[0], |value, rule| {
            on_chain(*rule, &mut chain, [value, inputs[1], half]).unwrap()
        });
        chain.output(value).unwrap();
        let operands = operands.map(Tensor::clone);
        evaluate(&chain, &operands, &[0.5]).remove(0)
    }

    /// Records the value.
    pub(crate) fn record(
        &self,
        batch: &mut Batch<'_>,
        tensors: &[framebatch::Tensor],
    ) -> Result<Value, Error> {
        let x = batch.tensor(&tensors[self.x])?;
        if self.rules.is_empty() {
            return Ok(x);
        }
        let y = batch.tensor(&tensors[self.y])?;
        let mut rules = self.rules.iter();
        rules.try_fold(x, |value, rule| on_batch(*rule, batch, [value, y]))
    }
}

fn on_chain(rule: Rule, g: &mut Chain, [x, y, half]: [NodeId; 3]) -> Result<NodeId, Error> {
    match rule {
        Rule::Negate => g.unary(UnaryFn::Neg, x),
        Rule::Squash => g.unary(UnaryFn::Tanh, x),
        Rule::Halve => g.binary(BinaryFn::Mul, x, half),
        Rule::Add => g.binary(BinaryFn::Add, x, y),
        Rule::Multiply => g.binary(BinaryFn::Mul, x, y),
        Rule::Turn => g.transpose(x, &[]),
        Rule::Reverse => g.slice(x, &[(-1, i32::MIN, -1)]),
        Rule::Center => {
            let mean = g.reduce(Reduction::Mean, x, Axes::of(&[1]).kept())?;
            g.binary(BinaryFn::Sub, x, mean)
        }
        Rule::Cap => {
            let most = g.reduce(Reduction::Max, x, Axes::of(&[0]).kept())?;
            g.binary(BinaryFn::Minimum, most, y)
        }
        Rule::Soften => g.norm(Norm::Softmax, x, -1, None),
        Rule::Product => g.matmul(x, y),
    }
}

fn on_batch(rule: Rule, g: &mut Batch<'_>, [x, y]: [Value; 2]) -> Result<Value, Error> {
    match rule {
        Rule::Negate => g.neg(x),
        Rule::Squash => g.tanh(x),
        Rule::Halve => g.scale(x, 0.5),
        Rule::Add => g.add(x, y),
        Rule::Multiply => g.mul(x, y),
        Rule::Turn => g.transpose(x, &[]),
        Rule::Reverse => g.slice(x, &[Part::ALL.by(-1)]),
        Rule::Center => {
            let mean = g.mean(x, Axes::of(&[1]).kept())?;
            g.sub(x, mean)
        }
        Rule::Cap => {
            let most = g.max(x, Axes::of(&[0]).kept())?;
            g.minimum(most, y)
        }
        Rule::Soften => g.softmax(x, -1),
        Rule::Product => g.matmul(x, y),
    }
}

/// The shape of a square.
pub(crate) fn square(side: u32) -> Shape {
    Shape::new(&[side, side]).unwrap()
}
