//! Factors of products: neither how they lie in memory, how they are packed, nor what else is
//! multiplied changes a bit.

use std::ops::Range;

use framebatch::graph::NodeId;
use framebatch::graph::chain::{Chain, Home};
use framebatch::plan::fuse::fuse;
use framebatch::program::Tiles;
use framebatch::tensor::Packing;

use crate::cpu::Call;
use crate::gpu::{Harness, SIZES};
use crate::matmul::input;

/// How a matrix lies in memory.
#[derive(Clone, Copy, Debug)]
enum Lies {
    /// Row by row.
    Rows,
    /// Column by column.
    Columns,
    /// A part of a larger matrix, with no row at a multiple of four.
    Inside,
}

/// A factor of a product: its shape, where its words come from, and how they lie.
struct Factor {
    dims: [u32; 2],
    home: Home,
    lies: Lies,
}

/// A factor as an input of a chain, and its words as they lie; `words` are row by row.
fn laid(chain: &mut Chain, factor: Factor, words: &[u32]) -> (NodeId, Vec<u32>) {
    let Factor { dims, home, lies } = factor;
    let [rows, columns] = dims;
    let at = |row: u32, column: u32| words[(row * columns + column) as usize];
    match lies {
        Lies::Rows => (input(chain, &dims, home), words.to_vec()),
        Lies::Columns => {
            let x = input(chain, &[columns, rows], home);
            let turned = (0..columns).flat_map(|column| (0..rows).map(move |row| (row, column)));
            let words = turned.map(|(row, column)| at(row, column)).collect();
            (chain.transpose(x, &[1, 0]).unwrap(), words)
        }
        Lies::Inside => {
            let [outer, wide] = [rows + 1, columns + 3 - columns % 2];
            let x = input(chain, &[outer, wide], home);
            let all = (0..outer).flat_map(|row| (0..wide).map(move |column| (row, column)));
            let words = all.map(|(row, column)| match (row, column) {
                (0, _) | (_, 0) => 1e9_f32.to_bits(),
                (row, column) if column > columns => row,
                (row, column) => at(row - 1, column - 1),
            });
            let words = words.collect();
            let ranges = [(1, i32::MAX, 1), (1, columns as i32 + 1, 1)];
            (chain.slice(x, &ranges).unwrap(), words)
        }
    }
}

/// Whole numbers that some packings keep as they are.
struct Wholes {
    /// The number of largest magnitude.
    largest: f32,
    /// How many numbers there are, from minus the largest magnitude on.
    count: u32,
    ways: &'static [(Lies, Home)],
}

const RANGES: [Wholes; 2] = [
    Wholes {
        largest: 127.0,
        count: 255,
        ways: &[
            (Lies::Columns, Home::Call),
            (Lies::Inside, Home::Call),
            (Lies::Rows, Home::Packed(Packing::F16)),
            (Lies::Rows, Home::Packed(Packing::Bf16)),
            (Lies::Rows, Home::Packed(Packing::Int8)),
            (Lies::Columns, Home::Packed(Packing::Int8)),
        ],
    },
    Wholes {
        largest: -8.0,
        count: 16,
        ways: &[
            (Lies::Rows, Home::Packed(Packing::Int4)),
            (Lies::Columns, Home::Packed(Packing::Int4)),
        ],
    },
];

#[test]
fn neither_how_factors_lie_nor_how_they_are_packed_changes_a_bit() {
    let mut harness = Harness::open();
    let number = |i: u32, seed: u32| i.wrapping_mul(seed) >> 8;
    let float = |i: u32| number(i, 2_654_435_761) as f32 / 8_388_608.0 - 1.0;
    // Whole tiles and the borders of them; whole steps, and less than that.
    for [m, k, n] in [[130, 36, 132], [64, 64, 64], [65, 7, 63], [580, 36, 516]] {
        let floats = |count: u32| (0..count).map(|i| float(i).to_bits()).collect();
        // Themselves in a packing: of any 32 neighbors the largest is that of the range.
        let whole = |[rows, columns]: [u32; 2], range: &Wholes| -> Vec<u32> {
            let value = |row, column| match (row + column) % 5 {
                0 => range.largest,
                _ => {
                    (number(row * columns + column, 2_246_822_519) % range.count) as f32
                        - range.largest.abs()
                }
            };
            let row = |row| (0..columns).map(move |column| value(row, column).to_bits());
            (0..rows).flat_map(row).collect()
        };
        for range in &RANGES {
            let values: [[Vec<u32>; 2]; 2] = [
                [whole([m, k], range), floats(k * n)],
                [floats(m * k), whole([k, n], range)],
            ];
            let mut product = |tiles: Tiles, packed: usize, (lies, home): (Lies, Home)| {
                let mut chain = Chain::default();
                let [(a, left), (b, right)] = [0, 1].map(|side| {
                    let dims = [[m, k], [k, n]][side];
                    let (home, lies) = if side == packed {
                        (home, lies)
                    } else {
                        (Home::Call, Lies::Rows)
                    };
                    laid(
                        &mut chain,
                        Factor { dims, home, lies },
                        &values[packed][side],
                    )
                });
                let y = chain.matmul(a, b).unwrap();
                chain.output(y).unwrap();
                let call = Call {
                    inputs: vec![left, right],
                    constants: vec![],
                };
                let (program, sizes) = fuse(&chain);
                harness.tiles = tiles;
                let mut results = harness.run(&program, &[(&sizes, &call)]);
                results.remove(0).remove(0)
            };
            for tiles in SIZES {
                for side in [0, 1] {
                    let expected = product(tiles, side, (Lies::Rows, Home::Call));
                    for way in range.ways {
                        let is_same = expected == product(tiles, side, *way);
                        assert!(is_same, "side {side}, {way:?} for {tiles:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn some_rows_have_the_bits_that_they_have_among_many() {
    let mut harness = Harness::open();
    let float = |i: u32| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0;
    let (m, n) = (700, 516);
    let ways = [
        (Lies::Rows, Home::Call),
        (Lies::Columns, Home::Call),
        (Lies::Inside, Home::Call),
        (Lies::Rows, Home::Packed(Packing::F16)),
        (Lies::Columns, Home::Packed(Packing::Int8)),
        (Lies::Rows, Home::Packed(Packing::Int4)),
    ];
    for (k, is_tiny) in [(80, false), (36, false), (7, false), (16, true)] {
        // Products of the tiny ones are zeros with a sign.
        let scale = if is_tiny { 1e-30 } else { 1.0 };
        let floats = |count: u32| (0..count).map(move |i| (float(i) * scale).to_bits());
        let [left, right]: [Vec<u32>; 2] = [m * k, k * n].map(|count| floats(count).collect());
        for ((lies, home), left_lies) in ways
            .map(|way| (way, Lies::Rows))
            .into_iter()
            .chain([(ways[0], Lies::Columns)])
        {
            let mut product = |rows: Range<u32>, tiles: Tiles| {
                let mut chain = Chain::default();
                let dims = [rows.len() as u32, k];
                let own = &left[(rows.start * k) as usize..(rows.end * k) as usize];
                let first = Factor {
                    dims,
                    home: Home::Call,
                    lies: left_lies,
                };
                let second = Factor {
                    dims: [k, n],
                    home,
                    lies,
                };
                let (a, own) = laid(&mut chain, first, own);
                let (b, right) = laid(&mut chain, second, &right);
                let y = chain.matmul(a, b).unwrap();
                chain.output(y).unwrap();
                let call = Call {
                    inputs: vec![own, right],
                    constants: vec![],
                };
                let (program, sizes) = fuse(&chain);
                harness.tiles = tiles;
                let mut results = harness.run(&program, &[(&sizes, &call)]);
                results.remove(0).remove(0)
            };
            let all = product(0..m, Tiles::Large);
            for rows in [0..1, 5..27, 640..700, 656..700] {
                let own = &all[(rows.start * n) as usize..(rows.end * n) as usize];
                for tiles in SIZES {
                    assert!(
                        product(rows.clone(), tiles) == own,
                        "{rows:?} of {k} steps, {lies:?}, {home:?}, {left_lies:?} in {tiles:?} tiles"
                    );
                }
            }
        }
    }
}
