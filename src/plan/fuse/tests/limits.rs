//! Chains beyond what one kernel may hold, and tiles of products.

use super::*;

#[test]
fn more_tensors_than_bindings_are_split() {
    let record: Record = |g, x| {
        let mut sum = x[0];
        for next in &x[1..] {
            sum = g.binary(BinaryFn::Add, sum, *next)?;
        }
        Ok(vec![sum])
    };
    let shapes: [&[u32]; 9] = [&[8]; 9];
    let shared = program(&shapes, Home::Call, record);
    assert_eq!(shared.stages.len(), 1, "{shared}");
    let split = program(&shapes, Home::Resident, record);
    assert_eq!(
        split.to_string(),
        "dispatch map(((((tensor0 + tensor1) + tensor2) + tensor3) + tensor4) + tensor5) \
         tensor0, tensor1, tensor2, tensor3, tensor4, tensor5 -> b0\n\
         dispatch map(((b0 + tensor6) + tensor7) + tensor8) b0, tensor6, tensor7, tensor8 -> result"
    );
    assert!(
        split
            .stages
            .iter()
            .all(|stage| stage.bindings() <= MAX_OPERANDS)
    );
}

#[test]
fn long_chains_are_split() {
    let long = program(&[&[8]], Home::Call, |g, x| {
        let mut y = x[0];
        for _ in 0..900 {
            y = g.unary(UnaryFn::Exp, y)?;
        }
        Ok(vec![y])
    });
    assert!(
        (8..20).contains(&long.stages.len()),
        "{}",
        long.stages.len()
    );
}

#[test]
fn few_tiles_are_small() {
    let record: Record = |g, x| Ok(vec![g.matmul(x[0], x[1])?]);
    // The calls as (stack, rows, columns), whether tiles are small, and how many tiles there are.
    for (calls, expected) in [
        (&[(1, 0, 5)][..], (true, 0)),
        (&[(1, 1, 1)], (true, 1)),
        (&[(1, 8, 384)], (true, 12)),
        (&[(1, 17, 384)], (true, 24)),
        (&[(1, 64 * 48, 64)], (true, 192 * 2)),
        (&[(1, 64 * 48 + 1, 64)], (false, 49)),
        // Calls with few tiles together, and with many.
        (&[(1, 64, 64), (3, 64, 64)], (true, 4 * 8)),
        (&[(1, 64, 64), (48, 64, 64)], (false, 49)),
        (&[(1, 64 * 30, 64), (1, 64 * 30, 64)], (false, 60)),
        // Large tiles would be empty but for an eighth.
        (&[(500, 8, 10)], (true, 500)),
        (&[(500, 8, 64)], (true, 1000)),
        (&[(500, 40, 64)], (false, 500)),
    ] {
        let mut stage = None;
        let (mut threads, mut entries) = (Vec::new(), Vec::new());
        for (stack, rows, columns) in calls {
            let shapes = [[*stack, *rows, 16], [*stack, 16, *columns]];
            let (program, sizes) = sized(&[&shapes[0], &shapes[1]], Home::Call, record);
            let own = &sizes.stages[0];
            let addresses = program.stages[0].loads.len();
            threads.push(own.threads);
            entries.extend([0, 0, 0][..addresses].iter().chain(&own.words));
            stage = Some(program.stages[0].clone());
        }
        let products = stage.as_ref().and_then(Products::of).unwrap();
        let words = entries.len() / calls.len();
        let are_small = products.are_small(threads.iter().copied(), &entries);
        let own = threads.iter().zip(entries.chunks(words));
        let tiles = own.map(|(threads, words)| match are_small {
            true => products.small_threads(*threads, words) / LANES,
            false => threads / LANES,
        });
        assert_eq!((are_small, tiles.sum()), expected, "{calls:?}");
    }
    assert_eq!(tiles(u32::MAX, u32::MAX), u32::MAX);
}
