//! In which stages calls are coalesced, as the text of plans says.

use crate::error::Error;
use crate::graph::chain::{Axes, Chain, Home, Norm, Reduction};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, NodeId, UnaryFn};
use crate::plan::{Call, Chunk, NamedTensors, NumbersId, Recipe, RecipeId, SetId, assemble};
use crate::tensor::{DType, Span};

/// Records a chain of `x`, the call's rows, and of a resident matrix and a resident vector.
type Record = fn(&mut Chain, [NodeId; 3]) -> Result<NodeId, Error>;

/// How many segments each stage has, of four calls with 5, 1, 63 and 2 rows of so many floats.
fn calls_of_stages(width: u32, record: Record) -> Vec<usize> {
    let mut recipes = Vec::new();
    let mut calls = Vec::new();
    let mut at = 0;
    for (number, rows) in (0..).zip([5, 1, 63, 2]) {
        let mut chain = Chain::default();
        let mut input = |dims: &[u32], home| {
            let shape = Shape::new(dims).expect("a small shape");
            chain.input(shape, DType::F32, home).expect("room")
        };
        let inputs = [
            input(&[rows, width], Home::Call),
            input(&[width, 12], Home::Resident),
            input(&[width], Home::Resident),
        ];
        let y = record(&mut chain, inputs).expect("operands that suit");
        chain.output(y).expect("a node of it");
        let recipe = Recipe::fuse(&chain, &recipes);
        let rows = recipe.rows().unwrap_or(1);
        let words = u32::try_from(recipe.input_words(rows)).expect("few");
        let inputs = Span { at, words };
        at += words;
        calls.push(Call {
            recipe: RecipeId(number),
            rows,
            inputs,
            scalar: 0,
            set: SetId::default(),
            tensors: Span::default(),
            // The first two calls have the same numbers, and the last two have the same.
            stored: Span::default(),
            numbers: NumbersId(number / 2),
        });
        recipes.push(recipe);
    }
    let tensors = NamedTensors {
        sets: &[[7, 8].into()],
        ..NamedTensors::default()
    };
    let plan = assemble(&recipes, &calls, tensors, &Chunk::all(&calls));
    let stages = plan.dispatches().inspect(|work| assert_eq!(work.calls, 4));
    stages.map(|work| work.segments.len()).collect()
}

fn check(what: &str, width: u32, record: Record, expected: &[usize]) {
    assert_eq!(
        calls_of_stages(width, record),
        expected,
        "{what}, rows of {width}"
    );
}

#[test]
fn rows_that_lie_end_to_end_are_one_calls() {
    let network: Record = |g, [x, w, _]| {
        let y = g.matmul(x, w)?;
        let y = g.unary(UnaryFn::Gelu, y)?;
        let y = g.norm(Norm::Softmax, y, -1, None)?;
        let turned = g.transpose(w, &[])?;
        g.matmul(y, turned)
    };
    check("a network", 8, network, &[1, 1, 1]);
    // The rows of 12 floats between the stages lie end to end all the same.
    check("a network", 6, network, &[4, 1, 4]);
    let residual: Record = |g, [x, w, _]| {
        let y = g.matmul(x, w)?;
        let turned = g.transpose(w, &[])?;
        let y = g.matmul(y, turned)?;
        g.binary(BinaryFn::Add, y, x)
    };
    check("what is added where it lies", 8, residual, &[1, 1]);
    let bias: Record = |g, [x, _, b]| {
        let y = g.unary(UnaryFn::Gelu, x)?;
        g.binary(BinaryFn::Add, y, b)
    };
    check("a map of columns", 8, bias, &[1]);
    check("a map of columns", 6, bias, &[4]);
    check("a map", 8, |g, [x, ..]| g.unary(UnaryFn::Gelu, x), &[1]);
    let parts: Record = |g, [x, w, _]| {
        let y = g.matmul(x, w)?;
        let z = g.unary(UnaryFn::Exp, x)?;
        g.concat(&[y, z], 1)
    };
    check("parts of a row", 8, parts, &[1, 1]);
    let sums: Record = |g, [x, ..]| {
        let y = g.reduce(Reduction::Sum, x, Axes::of(&[1]).kept())?;
        g.binary(BinaryFn::Div, x, y)
    };
    check("short rows", 8, sums, &[1]);
    check("long rows", 64, sums, &[1]);
}

#[test]
fn what_is_a_calls_own_stays_so() {
    let mean: Record = |g, [x, ..]| g.reduce(Reduction::Mean, x, Axes::of(&[0]));
    check("a mean over the rows", 8, mean, &[4]);
    // A call's numbers lie between its rows and the next call's. The first two calls have the
    // same numbers, and the last two have the same.
    let scaled: Record = |g, [x, w, _]| {
        let epsilon = g.constant()?;
        let y = g.matmul(x, w)?;
        g.norm(Norm::Layer, y, -1, Some(epsilon))
    };
    check("numbers of the calls", 8, scaled, &[4, 2]);
    let apart: Record = |g, [x, ..]| {
        let turned = g.transpose(x, &[])?;
        g.unary(UnaryFn::Gelu, turned)
    };
    check("columns as rows", 8, apart, &[4]);
    let own: Record = |g, [x, ..]| {
        let turned = g.transpose(x, &[])?;
        g.matmul(x, turned)
    };
    check("products of the calls' own", 8, own, &[4]);
    let stacked: Record = |g, [x, w, _]| {
        let rank = g.node(x).shape.dims()[0];
        let x = g.reshape(x, Shape::new(&[rank, 1, 8])?)?;
        g.matmul(x, w)
    };
    check("stacks of matrices", 8, stacked, &[4]);
}
