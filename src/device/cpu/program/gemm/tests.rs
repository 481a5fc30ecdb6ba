use super::*;

/// Floats that repeat late, of both signs.
fn values(count: usize, seed: usize) -> Vec<f32> {
    let value = |i: usize| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1000.0 - 1.0;
    (0..count).map(value).collect()
}

/// Ways that a matrix of so many rows and columns can lie in its words.
fn ways(words: &[f32], [rows, columns]: [usize; 2]) -> [Matrix<'_>; 4] {
    let (rows, columns) = (rows as u32, columns as u32);
    let of = |at, down, across| Matrix {
        words,
        at,
        down,
        across,
    };
    [
        of(0, columns, 1),
        of(2, 1, rows + 1),
        of(1, 2 * columns + 3, 2),
        // From the last row and column back.
        of(
            rows * columns - 1,
            columns.wrapping_neg(),
            1_u32.wrapping_neg(),
        ),
    ]
}

fn element(matrix: &Matrix<'_>, row: usize, column: usize) -> f64 {
    let at = matrix.from(row as u32, column as u32).at;
    f64::from(matrix.words[at as usize])
}

#[test]
fn every_way_to_lie_gives_the_sums_of_float64_and_the_same_bits() {
    let cases = [
        [1, 1, 1],
        [1, 32, 70],
        [3, 5, 9],
        [4, 8, 8],
        [9, 384, 7],
        [5, 385, 9],
        [2, 800, 3],
        [70, 9, 11],
    ];
    for sizes @ [rows, count, columns] in cases {
        let words = [1, 2].map(|seed| values(3 * (rows + columns) * (count + 9), seed));
        let before = values(rows * columns, 3);
        for left in ways(&words[0], [rows, count]) {
            for right in ways(&words[1], [count, columns]) {
                let mut sums = before.clone();
                panels::add(left, right, sizes, &mut sums);
                let mut native = before.clone();
                add_product(left, right, sizes, &mut native);
                for (i, before) in before.iter().enumerate() {
                    let (row, column) = (i / columns, i % columns);
                    let product = |k| element(&left, row, k) * element(&right, k, column);
                    let products = (0..count).map(product).chain([f64::from(*before)]);
                    let (sum, size) =
                        products.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
                    for of in [&sums, &native] {
                        let off = (f64::from(of[i]) - sum).abs();
                        // Half a unit in the last place for each rounding.
                        let bound = (count as f64 + 2.0) * 0.5_f64.powi(24) * size;
                        assert!(off <= bound, "{sizes:?}: {off} of {bound}");
                    }
                    // Alone, and with its factors changed over.
                    let mut alone = [*before, *before];
                    let (row, column) = (row as u32, column as u32);
                    let line = (left.from(row, 0), right.from(0, column));
                    panels::add(line.0, line.1, [1, count, 1], &mut alone[..1]);
                    let turned = (line.1.transposed(), line.0.transposed());
                    panels::add(turned.0, turned.1, [1, count, 1], &mut alone[1..]);
                    assert_eq!(alone.map(f32::to_bits), [sums[i].to_bits(); 2], "{sizes:?}");
                }
            }
        }
    }
}
