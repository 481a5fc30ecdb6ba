//! Chunks whose plans no device holds: these are recognized, and halved.

use super::*;
use crate::graph::chain::{Axes, Chain, Home, Reduction};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, NodeId};
use crate::kernel::{Kernel, Named, Settings};
use crate::ops;
use crate::plan::{Call, Dispatch, NamedTensors, Operand, Recipe, Segment};
use crate::plan::{NumbersId, RecipeId, SetId, assemble, most_threads};
use crate::tensor::{DType, Span};

/// The limits of a GPU.
fn limits() -> ChunkLimits {
    ChunkLimits {
        slot_bytes: (1 << 31) - 4,
        bytes: 1 << 33,
        copies: 6,
        threads: most_threads(65535),
    }
}

/// The recipe of a product of two tensors of these shapes, and so many calls.
fn products(
    shapes: [&[u32]; 2],
    record: impl Fn(&mut Chain, NodeId),
    count: u32,
) -> (Recipe, Vec<Call>) {
    let mut chain = Chain::default();
    let inputs = shapes.map(|dims| {
        let shape = Shape::new(dims).expect("a shape");
        chain.input(shape, DType::F32, Home::Call).expect("room")
    });
    let product = chain.matmul(inputs[0], inputs[1]).expect("they fit");
    record(&mut chain, product);
    let recipe = Recipe::fuse(&chain, &[]);
    let rows = recipe.rows().expect("a chain knows them");
    let words = u32::try_from(recipe.input_words(rows)).expect("few");
    let calls = (0..count).map(|call| Call {
        recipe: RecipeId(0),
        rows,
        inputs: Span {
            at: call * words,
            words,
        },
        scalar: 0,
        set: SetId::default(),
        tensors: Span::default(),
        stored: Span::default(),
        numbers: NumbersId::default(),
    });
    (recipe, calls.collect())
}

fn result(chain: &mut Chain, value: NodeId) {
    chain.output(value).expect("a node");
}

fn largest(chain: &mut Chain, value: NodeId) {
    let most = chain.reduce(Reduction::Max, value, Axes::of(&[0, 1]));
    result(chain, most.expect("not empty"));
}

fn largest_of_all(chain: &mut Chain, value: NodeId) {
    let most = chain.reduce(Reduction::Max, value, Axes::of(&[0, 1, 2, 3]));
    result(chain, most.expect("not empty"));
}

/// How many calls each chunk has that these calls go in.
fn chunks((recipe, calls): &(Recipe, Vec<Call>)) -> Vec<usize> {
    let source = PlanSource {
        recipes: std::slice::from_ref(recipe),
        calls,
        tensors: NamedTensors::default(),
        sharded: &[],
    };
    let mut rest = vec![Chunk::all(calls)];
    let next = || assemble_next(source, &mut rest, &limits());
    let chunks = std::iter::from_fn(next).map(|(chunk, plan)| {
        assert!(plan.fits(&limits()));
        chunk.end - chunk.first
    });
    chunks.collect()
}

#[test]
fn intermediates_of_more_words_than_there_are_addresses_are_halved() {
    // Intermediates of 2^22 words each are 2^32 words together, and a few more.
    for count in [1024, 1029] {
        let sent = chunks(&products([&[2048, 16], &[16, 2048]], largest, count));
        assert_eq!(sent.iter().sum::<usize>(), count as usize);
        assert!(sent.iter().all(|calls| *calls <= 128), "{sent:?}");
    }
}

#[test]
fn dispatches_of_more_threads_than_kernels_count_are_halved() {
    // Each of 33,553,056 matrices of one element takes a workgroup.
    let one = [&[5792, 1, 1, 1][..], &[1, 5793, 1, 1]];
    let (recipe, calls) = products(one, result, 2);
    assert_eq!(chunks(&(recipe, calls)), [1, 1]);
}

#[test]
fn threads_that_no_number_counts_do_not_wrap() {
    // 2^26 matrices of one element, with 64 threads each, take 2^32 threads, and some more.
    for shapes in [
        [&[8192, 1, 1, 1][..], &[1, 8192, 1, 1]],
        [&[8192, 1, 1, 1], &[1, 8193, 1, 1]],
    ] {
        let (recipe, calls) = products(shapes, largest_of_all, 1);
        let plan = assemble(
            &[recipe],
            &calls,
            NamedTensors::default(),
            &Chunk::all(&calls),
        );
        let product = plan.dispatches().next().expect("the first of two");
        let threads = Table::of(product).threads;
        assert!(threads > most_threads(65535), "{threads} threads");
    }
}

/// A dispatch of calls of so many rows each.
fn dispatch(kernel: Kernel, width: u32, rows: u32, calls: usize) -> Dispatch {
    let segment = Segment { rows, result: 0 };
    Dispatch {
        kernel,
        settings: Settings {
            width,
            ..Settings::default()
        },
        operands: vec![Operand::Scalar; 2],
        output: Slot::RESULTS,
        row_words: 1,
        calls: u32::try_from(calls).expect("few"),
        segments: vec![segment; calls],
        entries: vec![0; 2 * calls],
    }
}

#[test]
fn threads_of_ops_that_no_number_counts_do_not_wrap() {
    let field = "rho".parse().expect("a formula");
    let field = Recipe::new(&ops::field_gradients(&field));
    let field = field.kernels().next().expect("one").clone();
    for (kernel, width, rows) in [
        (Kernel::Named(Named::Lerp), 1 << 16, 1 << 16),
        (Kernel::Named(Named::Bezier), 1 << 31, 2),
        (Kernel::Named(Named::StateSequence), 3, 1 << 31),
        (Kernel::Named(Named::StateGradients), 1, 1 << 29),
        (field, 1, 1 << 28),
    ] {
        let work = dispatch(kernel, width, rows, 1);
        let Table { threads, words, .. } = Table::of(&work);
        let floats = matches!(
            work.kernel,
            Kernel::Named(Named::Lerp) | Kernel::Named(Named::Bezier)
        );
        let least = if floats { 1 << 30 } else { MOST_THREADS + 1 };
        assert!(
            threads >= least,
            "{}: {threads} threads",
            work.kernel.name()
        );
        assert!(words > 0);
    }
}

#[test]
fn entries_of_more_words_than_32_bits_count_are_counted() {
    // Each call takes 2^16 blocks of 2^16 threads, with an entry of 5 words for each block.
    let table = Table::of(&dispatch(Kernel::Named(Named::Slerp), 4, u32::MAX, 14_000));
    assert_eq!(table.words, 14_000 * (1 << 16) * 5);
    assert_eq!(table.threads, 14_000 << 32);
}

/// The recipe of a chain of a column and a row, with so many results of 2^30 elements, and calls.
fn sums(results: usize, count: u32) -> (Recipe, Vec<Call>) {
    let mut chain = Chain::default();
    let [column, row] = [[1 << 15, 1], [1, 1 << 15]].map(|dims| {
        let shape = Shape::new(&dims).expect("a shape");
        chain.input(shape, DType::F32, Home::Call).expect("room")
    });
    for _ in 0..results {
        let sum = chain.binary(BinaryFn::Add, column, row);
        result(&mut chain, sum.expect("they broadcast"));
    }
    let recipe = Recipe::fuse(&chain, &[]);
    let rows = recipe.rows().expect("a chain knows them");
    let words = u32::try_from(recipe.input_words(rows)).expect("few");
    let call = |call| Call {
        recipe: RecipeId(0),
        rows,
        inputs: Span {
            at: call * words,
            words,
        },
        scalar: 0,
        set: SetId::default(),
        tensors: Span::default(),
        stored: Span::default(),
        numbers: NumbersId::default(),
    };
    (recipe, (0..count).map(call).collect())
}

#[test]
fn results_of_more_words_than_there_are_addresses_are_halved() {
    // Each result has 4 GiB, and 32 bits have no addresses for the words of four.
    for count in [4, 5] {
        let (recipe, calls) = sums(1, count);
        let whole = assemble(
            std::slice::from_ref(&recipe),
            &calls,
            NamedTensors::default(),
            &Chunk::all(&calls),
        );
        let large = ChunkLimits {
            slot_bytes: (1 << 34) - 32,
            bytes: u64::MAX / 8,
            ..limits()
        };
        assert!(!whole.fits(&large), "{} words", whole.words(Slot::RESULTS));
        assert!(chunks(&(recipe, calls)).len() >= count as usize);
    }
}

#[test]
fn results_of_one_call_are_counted_beyond_32_bits() {
    let (recipe, calls) = sums(5, 1);
    assert_eq!(recipe.result_words(calls[0].rows), 5 << 30);
}
