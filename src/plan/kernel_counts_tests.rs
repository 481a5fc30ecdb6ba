use crate::graph::chain::{Axes, Chain, Heads, Home, Reduction};
use crate::graph::sampling::Sampling;
use crate::graph::searching::{BLOCK_HEADER, DeviceBlocks, Mask, Scan, Searching};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, Measure, NodeId, Timing, UnaryFn};
use crate::ops;
use crate::plan::Recipe;
use crate::tensor::{DType, Packing};

type Record = fn(&mut Chain, &[NodeId]) -> NodeId;

/// A chain by its name, its inputs' shapes and what it records; and its operations and bytes.
type Counted = (&'static str, &'static [&'static [u32]], Record, [f64; 2]);

/// A chain with inputs of these shapes.
fn chain_of(shapes: &[&[u32]], home: Home, record: Record) -> Chain {
    let mut chain = Chain::default();
    let inputs = shapes.iter().map(|dims| {
        let shape = Shape::new(dims).expect("a shape");
        chain.input(shape, DType::F32, home).expect("room")
    });
    let inputs: Vec<NodeId> = inputs.collect();
    let result = record(&mut chain, &inputs);
    chain.output(result).expect("room");
    chain
}

/// Operations and bytes of a call of so many rows; of all rows where the structure fixes these.
fn counts(recipe: &Recipe, rows: u32) -> [f64; 2] {
    let counts = recipe.kernel_counts(recipe.rows().unwrap_or(rows));
    [counts.flops, counts.bytes]
}

fn add(chain: &mut Chain, x: &[NodeId]) -> NodeId {
    chain.binary(BinaryFn::Add, x[0], x[1]).expect("fits")
}

fn matmul(chain: &mut Chain, x: &[NodeId]) -> NodeId {
    chain.matmul(x[0], x[1]).expect("fits")
}

/// exp(a) · b + a.
fn with_exp(chain: &mut Chain, x: &[NodeId]) -> NodeId {
    let exp = chain.unary(UnaryFn::Exp, x[0]).expect("fits");
    let product = chain.binary(BinaryFn::Mul, exp, x[1]).expect("fits");
    chain.binary(BinaryFn::Add, product, x[0]).expect("fits")
}

fn sum_of_rows(chain: &mut Chain, x: &[NodeId]) -> NodeId {
    let axes = Axes::of(&[1]);
    chain.reduce(Reduction::Sum, x[0], axes).expect("fits")
}

fn relu_of_product(chain: &mut Chain, x: &[NodeId]) -> NodeId {
    let product = matmul(chain, x);
    let sum = chain.binary(BinaryFn::Add, product, x[2]).expect("fits");
    chain.unary(UnaryFn::Relu, sum).expect("fits")
}

const TWO_HEADS: Heads = Heads {
    count: 2,
    is_causal: false,
    window: None,
};

fn attention(chain: &mut Chain, x: &[NodeId], heads: Heads) -> NodeId {
    let scale = chain.constant().expect("room");
    let made = chain.attention(heads, [x[0], x[1], x[2]], scale);
    made.expect("fits")
}

fn gather(chain: &mut Chain, x: &[NodeId]) -> NodeId {
    let shape = Shape::new(&[3]).expect("a shape");
    let places = chain.input(shape, DType::U32, Home::Call).expect("room");
    chain.gather(x[0], places, 0).expect("fits")
}

#[test]
fn chains_are_counted_by_hand() {
    let whole = |chain: &mut Chain, x: &[NodeId]| attention(chain, x, TWO_HEADS);
    let causal = |chain: &mut Chain, x: &[NodeId]| {
        let is_causal = true;
        let heads = Heads {
            is_causal,
            ..TWO_HEADS
        };
        attention(chain, x, heads)
    };
    let biased = |chain: &mut Chain, x: &[NodeId]| {
        let scale = chain.constant().expect("room");
        let made = chain.biased_attention(TWO_HEADS, [x[0], x[1], x[2]], scale, x[3]);
        made.expect("fits")
    };
    let cases: [Counted; 12] = [
        // n sums; two operands and a result.
        ("add", &[&[1000], &[1000]], add, [1000.0, 12_000.0]),
        ("add of 3", &[&[3], &[3]], add, [3.0, 36.0]),
        // A row of 25 and a column of 40, each read once.
        (
            "broadcast",
            &[&[1, 25], &[40, 1]],
            add,
            [1000.0, 4.0 * (25.0 + 40.0 + 1000.0)],
        ),
        // An exponential, a product and a sum of each element.
        ("exp", &[&[500], &[500]], with_exp, [1500.0, 6000.0]),
        // 2·m·k·n, and m·k + k·n + m·n floats.
        (
            "matmul",
            &[&[5, 7], &[7, 9]],
            matmul,
            [630.0, 4.0 * (35.0 + 63.0 + 45.0)],
        ),
        // One matrix for a stack of four.
        (
            "stack",
            &[&[4, 65, 3], &[3, 130]],
            matmul,
            [202_800.0, 4.0 * (780.0 + 390.0 + 33_800.0)],
        ),
        // Another two operations an element of the product.
        (
            "layer",
            &[&[5, 7], &[7, 9], &[9]],
            relu_of_product,
            [720.0, 4.0 * (35.0 + 63.0 + 9.0 + 45.0)],
        ),
        ("sum", &[&[40, 25]], sum_of_rows, [1000.0, 4.0 * 1040.0]),
        // Two heads of 4 floats: 6 queries by 10 keys, two products of 4 pairs each.
        (
            "attention",
            &[&[6, 8], &[10, 8], &[10, 8]],
            whole,
            [2.0 * 60.0 * 16.0, 4.0 * (48.0 + 80.0 + 80.0 + 48.0)],
        ),
        // A bias of 15 distances for each head besides.
        (
            "biased attention",
            &[&[6, 8], &[10, 8], &[10, 8], &[2, 15]],
            biased,
            [2.0 * 60.0 * 16.0, 4.0 * (48.0 + 80.0 + 80.0 + 48.0 + 30.0)],
        ),
        // The queries see 5 to 10 keys, 45 in all.
        (
            "causal attention",
            &[&[6, 8], &[10, 8], &[10, 8]],
            causal,
            [2.0 * 45.0 * 16.0, 4.0 * (48.0 + 80.0 + 80.0 + 48.0)],
        ),
        // Three rows of 8, their places, and where they go.
        (
            "gather",
            &[&[10, 8]],
            gather,
            [0.0, 4.0 * (24.0 + 3.0 + 24.0)],
        ),
    ];
    for (name, shapes, record, expected) in cases {
        let recipe = Recipe::fuse(&chain_of(shapes, Home::Call, record), &[]);
        let found = counts(&recipe, 1);
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn packed_tensors_are_read_in_fewer_bytes() {
    for (packing, bytes) in [
        (Packing::F16, 2.0),
        (Packing::Bf16, 2.0),
        (Packing::Int8, 17.0 / 16.0),
        (Packing::Int4, 9.0 / 16.0),
    ] {
        let chain = chain_of(&[&[640], &[640]], Home::Packed(packing), add);
        let found = counts(&Recipe::fuse(&chain, &[]), 1);
        assert_eq!(found, [640.0, 640.0 * (2.0 * bytes + 4.0)], "{packing:?}");
    }
}

#[test]
fn long_rows_are_counted_in_all_their_strips() {
    let sum: Record = |chain, x| chain.reduce(Reduction::Sum, x[0], Axes::ALL).expect("fits");
    let recipe = Recipe::fuse(&chain_of(&[&[100_000]], Home::Call, sum), &[]);
    // 25 strips, whose sums are written, read and summed.
    assert_eq!(
        counts(&recipe, 1),
        [100_025.0, 4.0 * (100_000.0 + 25.0 + 25.0 + 1.0)]
    );
}

#[test]
fn a_slice_has_its_share() {
    let recipe = Recipe::fuse(&chain_of(&[&[8, 7], &[7, 9]], Home::Call, matmul), &[]);
    assert_eq!(recipe.rows(), Some(8));
    assert_eq!(recipe.kernel_counts(2).flops, 252.0);
}

#[test]
fn named_kernels_are_counted_by_the_row() {
    let floats = |count: f64| 4.0 * count;
    let field = "rho * sin(theta)".parse().expect("a formula");
    let cases = [
        // Four operations a float; two operands and a result.
        (ops::lerp(3, Timing::Call), [12.0, floats(9.0)]),
        // And a t for each row.
        (ops::lerp(3, Timing::Row), [12.0, floats(10.0)]),
        (ops::bezier(2, Timing::Call), [36.0, floats(10.0)]),
        (Ok(ops::slerp(Timing::Call)), [55.0, floats(12.0)]),
        (Ok(ops::nlerp(Timing::Call)), [32.0, floats(12.0)]),
        (Ok(ops::gradients()), [0.0, floats(4.0 + 32.0)]),
        // A sine and a product, four times, and eight more, for each of 16 layers.
        (Ok(ops::field_gradients(&field)), [256.0, floats(36.0)]),
        (Ok(ops::distance(Measure::Straight)), [176.0, floats(9.0)]),
        (Ok(ops::distance(Measure::Geodesic)), [32.0, floats(9.0)]),
    ];
    for (op, [flops, bytes]) in cases {
        let op = op.expect("a width");
        let found = counts(&Recipe::new(&op), 1000);
        assert_eq!(found, [1000.0 * flops, 1000.0 * bytes], "{op:?}");
    }
}

#[test]
fn a_search_compares_every_query_with_every_place() {
    let searching = |is_distance| Searching {
        scan: Scan {
            packing: None,
            is_distance,
            is_short: true,
        },
        quads: 2,
        count: 5,
        blocks: 3,
        page: 1 << 10,
        device: DeviceBlocks::default(),
        mask: Mask::default(),
    };
    // 192 places of 8 floats; 10 queries, and ids and scores of 5 results each.
    let words = 3.0 * (f64::from(BLOCK_HEADER) + 512.0) + 80.0 + 100.0;
    for (is_distance, operations) in [(false, 2.0), (true, 3.0)] {
        let recipe = Recipe::search(&searching(is_distance));
        let expected = [10.0 * 192.0 * 8.0 * operations, 4.0 * words];
        assert_eq!(counts(&recipe, 10), expected);
    }
}

#[test]
fn what_a_tensor_decides_is_unknown() {
    let sampling = Sampling {
        layers: 1,
        lanes: 4,
        width: 16,
        row: 1,
        is_stored: false,
    };
    let found = counts(&Recipe::sample(&sampling, &[]), 10);
    assert!(found.iter().all(|count| count.is_nan()), "{found:?}");
}
