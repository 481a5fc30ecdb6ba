//! The kernel that a call of a chain gets, of those that are compiled for the chain.

use crate::graph::chain::{Chain, Home};
use crate::graph::shape::Shape;
use crate::kernel::Kernel;
use crate::plan::{Call, Chunk, NamedTensors, NumbersId, Recipe, RecipeId, SetId, Table, assemble};
use crate::program::Tiles;
use crate::tensor::{DType, Span};

/// The recipe of a product of so many rows of 32 floats with a resident matrix.
fn product(rows: u32) -> Recipe {
    let mut chain = Chain::default();
    let mut input = |dims: &[u32], home| {
        let shape = Shape::new(dims).expect("a small shape");
        chain.input(shape, DType::F32, home).expect("room")
    };
    let (x, w) = (
        input(&[rows, 32], Home::Call),
        input(&[32, 32], Home::Resident),
    );
    let y = chain.matmul(x, w).expect("they fit");
    chain.output(y).expect("its own");
    Recipe::fuse(&chain, &[])
}

#[test]
fn calls_of_products_have_one_of_the_kernels_that_were_compiled() {
    // Calls, rows of each call, whether tiles are small, and threads.
    for (calls, rows, is_small, threads) in [
        (1, 8, true, 64),
        (3, 8, true, 2 * 64),
        (1, 64 * 48, true, 192 * 64),
        (500, 20, false, 157 * 64),
    ] {
        let recipes = [product(rows)];
        let call = |number: u32| Call {
            recipe: RecipeId(0),
            rows,
            inputs: Span {
                at: number * rows * 32,
                words: rows * 32,
            },
            scalar: 0,
            set: SetId::default(),
            tensors: Span::default(),
            stored: Span::default(),
            numbers: NumbersId::default(),
        };
        let of_batch: Vec<Call> = (0..calls).map(call).collect();
        let tensors = NamedTensors {
            sets: &[[0].into()],
            ..NamedTensors::default()
        };
        let plan = assemble(&recipes, &of_batch, tensors, &Chunk::all(&of_batch));
        let [work] = &plan.dispatches().collect::<Vec<_>>()[..] else {
            panic!("{plan}");
        };
        let what = format!("{calls} calls of {rows} rows: {plan}");
        assert_eq!(
            matches!(work.kernel, Kernel::Product(.., Tiles::Small)),
            is_small,
            "{what}"
        );
        assert!(
            recipes[0].kernels().any(|kernel| *kernel == work.kernel),
            "{what}"
        );
        assert_eq!(
            recipes[0].kernels().count(),
            2,
            "a new length compiles nothing"
        );
        // The last block of threads may go on behind the last thread.
        let table = Table::of(work);
        let behind = table.threads - threads;
        assert!(behind < 1 << table.params.shift, "{what}");
        assert_eq!(
            plan.to_string().contains("dispatch small tiles("),
            is_small,
            "{what}"
        );
    }
}
