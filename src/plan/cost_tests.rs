use crate::graph::chain::{Axes, Chain, Home, Reduction};
use crate::graph::sampling::Sampling;
use crate::graph::searching::{DeviceBlocks, Mask, Scan, Searching};
use crate::graph::shape::Shape;
use crate::graph::{NodeId, Timing, UnaryFn};
use crate::ops;
use crate::plan::Recipe;
use crate::program::{Effort, KINDS, Kind, RowOp};
use crate::tensor::DType;

/// The effort of a call of a chain with inputs of these shapes.
fn of_chain(shapes: &[&[u32]], record: impl Fn(&mut Chain, &[NodeId]) -> NodeId) -> [f64; KINDS] {
    let mut chain = Chain::default();
    let inputs = shapes.iter().map(|dims| {
        let shape = Shape::new(dims).expect("a shape");
        chain.input(shape, DType::F32, Home::Call).expect("room")
    });
    let inputs: Vec<NodeId> = inputs.collect();
    let result = record(&mut chain, &inputs);
    chain.output(result).expect("room");
    let recipe = Recipe::fuse(&chain, &[]);
    let mut all = Effort::default();
    all.add(&recipe.effort(), recipe.rows().expect("a chain's").into());
    all.0
}

#[test]
fn products_are_counted_one_by_one() {
    let cases: [(&[u32], &[u32], f64); 4] = [
        (&[5, 7], &[7, 9], 315.0),
        (&[4, 5, 7], &[7, 9], 1260.0),
        (&[65, 3], &[3, 130], 25_350.0),
        (&[2, 3, 64, 16], &[2, 3, 16, 64], 393_216.0),
    ];
    for (a, b, products) in cases {
        let effort = of_chain(&[a, b], |chain, x| chain.matmul(x[0], x[1]).expect("fits"));
        let found = effort[Kind::Product as usize];
        assert!((found - products).abs() < 1e-6, "{a:?} {b:?}: {found}");
    }
}

#[test]
fn elements_are_counted_with_what_is_done_to_each() {
    // Two loads and a sum; a load and an exponential; a load and an addition to the sum.
    let add = |chain: &mut Chain, x: &[NodeId]| {
        chain
            .binary(crate::graph::BinaryFn::Add, x[0], x[1])
            .expect("fits")
    };
    let exp = |chain: &mut Chain, x: &[NodeId]| chain.unary(UnaryFn::Exp, x[0]).expect("fits");
    let sum = |chain: &mut Chain, x: &[NodeId]| {
        chain
            .reduce(Reduction::Sum, x[0], Axes::of(&[1]))
            .expect("fits")
    };
    let found = [
        of_chain(&[&[40, 25], &[40, 25]], add),
        of_chain(&[&[1000]], exp),
        of_chain(&[&[40, 25]], sum),
        of_chain(&[&[1, 25], &[40, 1]], add),
    ];
    let terms = found.map(|effort| effort[Kind::Term as usize]);
    assert_eq!(terms, [3000.0, 9000.0, 2000.0, 3000.0]);
}

#[test]
fn long_rows_cost_what_they_hold() {
    let sum = |chain: &mut Chain, x: &[NodeId]| {
        chain.reduce(Reduction::Sum, x[0], Axes::ALL).expect("fits")
    };
    for length in [1_000, 100_000, 1_000_000] {
        let terms = of_chain(&[&[length]], sum)[Kind::Term as usize];
        let share = terms / f64::from(length);
        assert!((2.0..2.2).contains(&share), "{length}: {share} an element");
    }
}

#[test]
fn what_32_bits_do_not_count_is_counted() {
    let searching = Searching {
        scan: Scan {
            packing: None,
            is_distance: false,
            is_short: true,
        },
        quads: 1,
        count: 1,
        blocks: 1 << 26,
        page: 1 << 10,
        device: DeviceBlocks::default(),
        mask: Mask::default(),
    };
    let found = Recipe::search(&searching).effort().0[Kind::Product as usize];
    assert_eq!(found, 2_f64.powi(34), "2^32 vectors of 4 floats");
    let sampling = Sampling {
        layers: 1 << 8,
        lanes: 1 << 24,
        width: 1 << 26,
        row: 1,
        is_stored: true,
    };
    let found = Recipe::sample(&sampling, &[]).effort().0[Kind::Blend as usize];
    assert_eq!(found, 2_f64.powi(35), "8 for each of 2^32 lanes");
}

#[test]
fn ops_are_counted_by_the_row() {
    let of = |op: &RowOp| Recipe::new(op).effort().0;
    let lerp = of(&ops::lerp(3, Timing::Row).expect("a width"));
    assert_eq!(lerp[Kind::Blend as usize], 3.0);
    assert_eq!(of(&ops::slerp(Timing::Call))[Kind::Turn as usize], 1.0);
    let field = "rho * sin(theta)".parse().expect("a formula");
    let field = of(&ops::field_gradients(&field));
    assert_eq!(field[Kind::Term as usize], 16.0 * 4.0 * 15.0);
    assert_eq!(of(&ops::gradients())[Kind::Layer as usize], 16.0);
}
