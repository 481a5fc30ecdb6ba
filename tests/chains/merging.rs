//! A call gives the same bits alone and beside others of the same program.

use framebatch::Error;
use framebatch::graph::chain::{Axes, Chain, Home, Norm, Reduction};
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, NodeId, UnaryFn};
use framebatch::plan::fuse::fuse;
use framebatch::program::{Program, Sizes};
use framebatch::tensor::DType;

use crate::cpu::Call;
use crate::gpu::Harness;
use crate::random::values;
use crate::views::written_over;

/// Runs calls alone and all together, and compares.
fn check(harness: &mut Harness, program: &Program, calls: &[(Sizes, Call)]) {
    let all: Vec<(&Sizes, &Call)> = calls.iter().map(|(sizes, call)| (sizes, call)).collect();
    let together = harness.run(program, &all);
    for (i, call) in all.iter().enumerate() {
        let alone = harness.run(program, &[*call]);
        assert!(
            alone[0] == together[i],
            "call {i} of {}\n{program}",
            all.len()
        );
    }
}

/// softmax(gelu(x · scale + bias)) with rows of 37, and its largest place.
fn network(rows: u32) -> Chain {
    let mut chain = Chain::default();
    let f32 = DType::F32;
    let x = chain
        .input(Shape::new(&[rows, 37]).unwrap(), f32, Home::Call)
        .unwrap();
    let bias = chain
        .input(Shape::new(&[37]).unwrap(), f32, Home::Resident)
        .unwrap();
    let scale = chain.constant().unwrap();
    let x = chain.binary(BinaryFn::Mul, x, scale).unwrap();
    let x = chain.binary(BinaryFn::Add, x, bias).unwrap();
    let x = chain.unary(UnaryFn::Gelu, x).unwrap();
    let x = chain.norm(Norm::Softmax, x, -1, None).unwrap();
    let place = chain.reduce(Reduction::Argmax, x, Axes::of(&[-1])).unwrap();
    chain.output(x).unwrap();
    chain.output(place).unwrap();
    chain
}

#[test]
fn callers_with_any_number_of_rows_share_a_program() {
    let mut harness = Harness::open();
    let (program, _) = fuse(&network(7));
    let residents = values(&network(1), 5).inputs.remove(1);
    let calls: Vec<(Sizes, Call)> = (1..=40)
        .map(|rows| {
            let chain = network(rows);
            let (own, sizes) = fuse(&chain);
            assert!(own == program, "{rows} rows: {own}\ninstead of\n{program}");
            let mut call = values(&chain, u64::from(rows));
            call.inputs[1].clone_from(&residents);
            (sizes, call)
        })
        .collect();
    check(&mut harness, &program, &calls);
    assert_eq!(harness.compiled(), program.stages.len());
}

/// What callers compute over their own rows, of any number, is one program; in one
/// stage, even where a single row makes what is folded look like what it was.
#[test]
fn what_is_folded_over_a_calls_rows_is_one_program() {
    type Record = fn(&mut Chain, NodeId) -> Result<NodeId, Error>;
    let cases: [(&str, Record); 10] = [
        ("sum", |chain, x| {
            chain.reduce(Reduction::Sum, x, Axes::of(&[0]))
        }),
        ("mean", |chain, x| {
            chain.reduce(Reduction::Mean, x, Axes::of(&[0]).kept())
        }),
        ("max", |chain, x| {
            chain.reduce(Reduction::Max, x, Axes::of(&[0]))
        }),
        ("argmax", |chain, x| {
            chain.reduce(Reduction::Argmax, x, Axes::of(&[0]))
        }),
        ("softmax", |chain, x| chain.norm(Norm::Softmax, x, 0, None)),
        ("layerNorm", |chain, x| {
            let epsilon = chain.constant()?;
            chain.norm(Norm::Layer, x, 0, Some(epsilon))
        }),
        ("rmsNorm", |chain, x| {
            let epsilon = chain.constant()?;
            chain.norm(Norm::Rms, x, 0, Some(epsilon))
        }),
        ("normalize", |chain, x| {
            let epsilon = chain.constant()?;
            chain.norm(Norm::Normalize, x, 0, Some(epsilon))
        }),
        ("what is above the mean", |chain, x| {
            let mean = chain.reduce(Reduction::Mean, x, Axes::of(&[0]).kept())?;
            chain.binary(BinaryFn::Sub, x, mean)
        }),
        ("the mean, turned", |chain, x| {
            let mean = chain.reduce(Reduction::Mean, x, Axes::of(&[0]).kept())?;
            chain.unary(UnaryFn::Neg, mean)
        }),
    ];
    for (name, record) in cases {
        let program = |rows: u32, columns| {
            let mut chain = Chain::default();
            let shape = Shape::new(&[rows, columns]).unwrap();
            let x = chain.input(shape, DType::F32, Home::Call).unwrap();
            let y = record(&mut chain, x).unwrap();
            chain.output(y).unwrap();
            fuse(&chain).0
        };
        for columns in [1, 16] {
            let usual = program(7, columns);
            assert_eq!(usual.stages.len(), 1, "{name}: {usual}");
            for rows in [1, 2, 3, 31, 32, 33, 64, 65, 511, 512] {
                let own = program(rows, columns);
                assert!(
                    own == usual,
                    "{name} of {rows} rows: {own}\ninstead of\n{usual}"
                );
            }
        }
    }
}

#[test]
fn what_is_written_over_is_the_own_call_of_each() {
    let mut harness = Harness::open();
    let chain = |rows| {
        let mut chain = Chain::default();
        let shape = Shape::new(&[rows, 5]).unwrap();
        let x = chain.input(shape, DType::F32, Home::Call).unwrap();
        let y = written_over(&mut chain, x).unwrap();
        chain.output(y).unwrap();
        chain
    };
    let (program, _) = fuse(&chain(7));
    let loads = program.stages.iter().flat_map(|stage| &stage.loads);
    assert_eq!(loads.filter(|load| load.is_in_place()).count(), 1);
    let calls: Vec<(Sizes, Call)> = [7, 2, 31, 400, 3]
        .map(|rows| {
            let chain = chain(rows);
            let (own, sizes) = fuse(&chain);
            assert!(own == program, "{rows} rows: {own}\ninstead of\n{program}");
            (sizes, values(&chain, u64::from(rows)))
        })
        .into();
    check(&mut harness, &program, &calls);
}
