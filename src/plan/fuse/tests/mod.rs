//! Programs as text: which operations share a stage, and what a stage reads.

mod buffers;
mod limits;
mod stored;

use super::fuse;
use crate::error::Error;
use crate::graph::NodeId;
use crate::graph::chain::{Axes, Chain, Heads, Home, Norm, Reduction};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, UnaryFn};
use crate::program::{LANES, MAX_OPERANDS, Products, Program, Sizes, tiles};
use crate::tensor::{DType, Packing};

/// Nodes of a chain.
type Nodes = Vec<NodeId>;
/// Records a chain of inputs, and returns the results.
type Record = fn(&mut Chain, &[NodeId]) -> Result<Nodes, Error>;

/// The program of a chain over inputs of these shapes, whose results `record` returns.
fn program(shapes: &[&[u32]], home: Home, record: Record) -> Program {
    sized(shapes, home, record).0
}

/// The program of such a chain, and the sizes of inputs of these shapes.
fn sized(shapes: &[&[u32]], home: Home, record: Record) -> (Program, Sizes) {
    let mut chain = Chain::default();
    let inputs = shapes.iter().map(|dims| {
        let shape = Shape::new(dims)?;
        chain.input(shape, DType::F32, home)
    });
    let inputs: Nodes = inputs.collect::<Result<_, _>>().expect("good shapes");
    for output in record(&mut chain, &inputs).expect("a good chain") {
        chain.output(output).expect("a node of the chain");
    }
    fuse(&chain)
}

/// Compares the program of a chain, whose inputs come with the call, with its text.
fn check(shapes: &[&[u32]], record: Record, expected: &str) {
    let text = program(shapes, Home::Call, record).to_string();
    let lines: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(text, lines.join("\n"));
}

#[test]
fn elementwise_chains_are_one_kernel() {
    check(
        &[&[100], &[100]],
        |g, x| {
            let c = g.constant()?;
            let y = g.unary(UnaryFn::Relu, x[0])?;
            let y = g.binary(BinaryFn::Mul, y, c)?;
            Ok(vec![g.binary(BinaryFn::Add, y, x[1])?])
        },
        "dispatch map((relu(in0) * c0) + in1) in0, in1 -> result",
    );
    check(
        &[&[100], &[100]],
        |g, x| {
            let c = g.constant()?;
            let is_less = g.binary(BinaryFn::LessEqual, x[0], c)?;
            let wave = g.unary(UnaryFn::Sin, x[1])?;
            Ok(vec![g.select(is_less, wave, c)?])
        },
        "dispatch map(where(lessEqual(in0, c0), sin(in1), c0)) in0, in1 -> result",
    );
    // Equal operations are computed once, and operations that no result needs never.
    check(
        &[&[100]],
        |g, x| {
            g.unary(UnaryFn::Log, x[0])?;
            let a = g.unary(UnaryFn::Exp, x[0])?;
            let b = g.unary(UnaryFn::Exp, x[0])?;
            Ok(vec![g.binary(BinaryFn::Add, a, b)?])
        },
        "dispatch map(t1 = exp(in0); t1 + t1) in0 -> result",
    );
}

#[test]
fn a_shared_term_is_printed_once() {
    check(
        &[&[100]],
        |g, x| {
            let shared = g.binary(BinaryFn::Add, x[0], x[0])?;
            let power = g.unary(UnaryFn::Exp, shared)?;
            Ok(vec![g.binary(BinaryFn::Mul, power, shared)?])
        },
        "dispatch map(t1 = in0 + in0; exp(t1) * t1) in0 -> result",
    );
}

#[test]
fn views_are_strides() {
    check(
        &[&[30, 40], &[40]],
        |g, x| {
            let y = g.binary(BinaryFn::Add, x[0], x[1])?;
            let y = g.transpose(y, &[])?;
            let y = g.slice(y, &[(1, 30, 2)])?;
            Ok(vec![g.unary(UnaryFn::Exp, y)?])
        },
        "dispatch map(exp(in0~ + in1~)) in0, in1 -> result",
    );
    check(
        &[&[30, 40], &[40]],
        |g, x| {
            let y = g.unary(UnaryFn::Exp, x[0])?;
            let y = g.reshape(y, Shape::new(&[1200])?)?;
            Ok(vec![g.unary(UnaryFn::Abs, y)?])
        },
        "dispatch map(abs(exp(in0))) in0 -> result",
    );
    // A broadcast cannot be seen as of another shape, so it is computed first.
    check(
        &[&[30, 40], &[40]],
        |g, x| {
            let y = g.binary(BinaryFn::Add, x[0], x[1])?;
            let y = g.reshape(y, Shape::new(&[1200])?)?;
            Ok(vec![g.unary(UnaryFn::Abs, y)?])
        },
        "dispatch map(in0 + in1~) in0, in1 -> b0
         dispatch map(abs(b0)) b0 -> result",
    );
}

#[test]
fn attention_reads_parts_of_a_product_where_they_lie() {
    check(
        &[&[20, 24], &[24, 72], &[72]],
        |g, x| {
            let y = g.matmul(x[0], x[1])?;
            let y = g.binary(BinaryFn::Add, y, x[2])?;
            let part = |g: &mut Chain, at| g.slice(y, &[(0, i32::MAX, 1), (at, at + 24, 1)]);
            let operands = [part(g, 0)?, part(g, 24)?, part(g, 48)?];
            let scale = g.constant()?;
            let heads = Heads {
                count: 3,
                is_causal: false,
                window: None,
            };
            let y = g.attention(heads, operands, scale)?;
            Ok(vec![g.unary(UnaryFn::Abs, y)?])
        },
        "dispatch tiles(r0 = sum(in0 * in1); r0 + in2) in0, in1, in2 -> b0
         dispatch attention(b0, b0, b0; 3 x 8) b0 -> b1
         dispatch map(abs(b1)) b1 -> result",
    );
}

#[test]
fn rows_take_what_is_before_and_behind_them() {
    check(
        &[&[500, 384]],
        |g, x| {
            let y = g.unary(UnaryFn::Gelu, x[0])?;
            let y = g.norm(Norm::Softmax, y, -1, None)?;
            let c = g.constant()?;
            Ok(vec![g.binary(BinaryFn::Mul, y, c)?])
        },
        "dispatch wide rows(r0 = max(gelu(in0)); r1 = sum(exp(gelu(in0) - r0)); \
         each (exp(gelu(in0) - r0) / r1) * c0) in0 -> result",
    );
    check(
        &[&[500, 16]],
        |g, x| {
            let epsilon = g.constant()?;
            Ok(vec![g.norm(Norm::Layer, x[0], -1, Some(epsilon))?])
        },
        "dispatch rows(r0 = sum(in0); r1 = r0 / count; r2 = sum(t2 = in0 - r1; t2 * t2); \
         r3 = sqrt((r2 / count) + c0); each (in0 - r1) / r3) in0 -> result",
    );
    check(
        &[&[500, 16], &[16]],
        |g, x| {
            let y = g.dot(x[0], x[1])?;
            let c = g.constant()?;
            Ok(vec![g.binary(BinaryFn::Add, y, c)?])
        },
        "dispatch rows(r0 = sum(in0 * in1); r0 + c0) in0, in1 -> result",
    );
    check(
        &[&[500, 384]],
        |g, x| Ok(vec![g.reduce(Reduction::Argmax, x[0], Axes::of(&[0]))?]),
        "dispatch rows(r0 = max(in0); r1 = first(same(in0, r0)); r1) in0 -> result",
    );
    check(
        &[&[513, 384]],
        |g, x| Ok(vec![g.reduce(Reduction::Argmax, x[0], Axes::of(&[0]))?]),
        "dispatch wide rows(r0 = max(in0); r1 = first(same(in0, r0)); r1) in0 -> result",
    );
    check(
        &[&[1_000_000]],
        |g, x| Ok(vec![g.reduce(Reduction::Mean, x[0], Axes::ALL)?]),
        "dispatch wide rows(r0 = sum(in0); r0) of chunks in0 -> b0
         dispatch wide rows(r0 = sum(b0); r0 / count) b0 -> result",
    );
}

#[test]
fn what_is_made_of_a_product_or_of_folds_is_computed_beside_them() {
    check(
        &[&[20, 24], &[24, 24], &[24]],
        |g, x| {
            let y = g.matmul(x[0], x[1])?;
            let y = g.binary(BinaryFn::Add, y, x[2])?;
            let y = g.binary(BinaryFn::Add, y, x[0])?;
            Ok(vec![g.norm(Norm::Softmax, y, -1, None)?])
        },
        "dispatch tiles(r0 = sum(in0 * in1); (r0 + in2) + in0) in0, in1, in2, in0 -> b0
         dispatch rows(r0 = max(b0); r1 = sum(exp(b0 - r0)); each exp(b0 - r0) / r1) b0 -> result",
    );
    // A value that is folded along other axes, or moved, is read from memory.
    check(
        &[&[20, 24], &[24]],
        |g, x| {
            let y = g.norm(Norm::Softmax, x[0], -1, None)?;
            let y = g.binary(BinaryFn::Mul, y, x[1])?;
            let first = g.slice(y, &[(0, 1, 1)])?;
            let mean = g.reduce(Reduction::Mean, y, Axes::of(&[0]))?;
            Ok(vec![first, mean])
        },
        "dispatch rows(r0 = max(in0); r1 = sum(exp(in0 - r0)); \
         each (exp(in0 - r0) / r1) * in1) in0, in1 -> b0
         dispatch map(b0) b0 -> result
         dispatch rows(r0 = sum(b0); r0 / count) b0 -> result1",
    );
}

#[test]
fn gathers_read_by_index() {
    check(
        &[&[30, 40], &[30, 7]],
        |g, x| {
            let places = g.reduce(Reduction::Argmax, x[1], Axes::of(&[1]))?;
            let y = g.gather(x[0], places, 1)?;
            Ok(vec![g.unary(UnaryFn::Neg, y)?])
        },
        "dispatch rows(r0 = max(in1); r1 = first(same(in1, r0)); r1) in1 -> b0
         dispatch map(neg(in0[b0~])) b0, in0 -> result",
    );
}

#[test]
fn how_tensors_are_packed_is_part_of_the_program_and_shown() {
    let record: Record = |g, x| Ok(vec![g.binary(BinaryFn::Add, x[0], x[1])?]);
    let shapes: [&[u32]; 2] = [&[8], &[8]];
    let plain = program(&shapes, Home::Resident, record);
    for packing in Packing::ALL {
        let packed = program(&shapes, Home::Packed(packing), record);
        assert_ne!(packed, plain);
        let name = packing.name();
        assert_eq!(
            packed.to_string(),
            format!(
                "dispatch map(tensor0:{name} + tensor1:{name}) tensor0:{name}, tensor1:{name} -> result"
            )
        );
    }
}

#[test]
fn programs_hold_no_sizes() {
    let record: Record = |g, x| {
        let y = g.binary(BinaryFn::Add, x[0], x[1])?;
        let y = g.norm(Norm::Softmax, y, -1, None)?;
        let y = g.transpose(y, &[])?;
        Ok(vec![
            y,
            g.reduce(Reduction::Mean, x[0], Axes::of(&[0]).kept())?,
        ])
    };
    let of = |rows: u32| program(&[&[rows, 12], &[12]], Home::Call, record);
    for rows in 1..=32 {
        assert!(of(rows) == of(7), "{rows} rows:\n{}\n{}", of(rows), of(7));
    }
}
