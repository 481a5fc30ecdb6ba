//! The scores of a block's vectors in a page: the block is read from front to back,
//! some rows at once, and sums are in memory meanwhile. In WebAssembly LLVM finds
//! vectors in that, and none in sums that go round a loop.

use super::VECTORS;
use crate::kernel::searching::Scan;

/// Rows of a block, which are quads of its vectors, that are read at once.
const ROWS: usize = 4;

/// The scores of a block's vectors.
pub(super) fn compare(scan: &Scan, vectors: &[f32], query: &[f32]) -> [f32; VECTORS] {
    let mut sums = [[0.0; 4]; VECTORS];
    let (rows, _) = vectors.as_chunks::<4>().0.as_chunks::<VECTORS>();
    let queries = query.as_chunks::<4>().0;
    for (rows, queries) in rows.chunks(ROWS).zip(queries.chunks(ROWS)) {
        // Zeros behind the last row add nothing.
        let mut query = [[0.0; 4]; ROWS];
        query[..queries.len()].copy_from_slice(queries);
        let mut padded;
        let rows = match rows.try_into() {
            Ok(rows) => rows,
            Err(_) => {
                padded = [[[0.0; 4]; VECTORS]; ROWS];
                padded[..rows.len()].copy_from_slice(rows);
                &padded
            }
        };
        add(scan, &mut sums, rows, &query);
    }
    sums.map(|[a, b, c, d]| {
        let sum = (a + b) + (c + d);
        if scan.is_distance { -sum } else { sum }
    })
}

/// Adds the products, or squared distances, of some rows of a block and of a query, in order.
fn add(
    scan: &Scan,
    sums: &mut [[f32; 4]; VECTORS],
    rows: &[[[f32; 4]; VECTORS]; ROWS],
    query: &[[f32; 4]; ROWS],
) {
    for (vector, sums) in sums.iter_mut().enumerate() {
        for k in 0..4 {
            for row in 0..ROWS {
                let (v, q) = (rows[row][vector][k], query[row][k]);
                let apart = v - q;
                sums[k] += if scan.is_distance {
                    apart * apart
                } else {
                    v * q
                };
            }
        }
    }
}
