//! Prints matrix products: what reads the factors, and what is computed of each element. The
//! sums themselves are in the templates.

use super::super::expr;
use super::operands::{Reads, quad, quads};
use super::{coordinates, declare, map, scalars};
use crate::program::{Layout, RowResult, Rows, SMALL_TILE, Stage, TILE, Tile};

/// The text of the first hole of the templates.
pub(super) fn body(stage: &Stage, layout: &Layout, rows: &Rows, tile: Tile) -> String {
    let mut text = declare(stage, layout, Reads::Four, "u32");
    let rank = rows.outer;
    let [left, right] = tile.factors.map(|load| layout.strides[load as usize]);
    let words = [
        ("TILE", TILE),
        ("SMALL_ROWS", SMALL_TILE[0]),
        ("SMALL_COLUMNS", SMALL_TILE[1]),
        ("COUNT", layout.count),
        ("ROWS", layout.matrix(rank)),
        ("COLUMNS", layout.matrix(rank) + 1),
        ("LEFT_ROW", left + rank - 2),
        ("LEFT_STEP", left + rank),
        ("RIGHT_COLUMN", right + rank - 1),
        ("RIGHT_STEP", right + rank),
    ];
    for (name, word) in words {
        put!(&mut text, "const {name} = {word}u;\n");
    }
    let factors = tile.factors.map(|load| &stage.loads[load as usize]);
    text += &quads("quads_of_factors", factors);
    for (place, name) in ["left", "right"].iter().enumerate() {
        let load = tile.factors[place];
        let of = &stage.loads[load as usize];
        let (binding, quad) = (of.binding, quad(of, "i"));
        let is_across = tile.is_across[place];
        let upper = ["LEFT", "RIGHT"][place];
        put!(&mut text, "const {upper}_ACROSS = {is_across};\n");
        put!(
            &mut text,
            "fn {name}(at: U) -> U {{ return read{binding}(at); }}\n"
        );
        put!(
            &mut text,
            "fn {name}_quad(i: u32) -> U {{ return {quad}; }}\n"
        );
        put!(
            &mut text,
            "fn {name}_start(entry: u32, stack: u32) -> u32 {{\n"
        );
        coordinates(&mut text, "c", "stack", rank - 2, layout.outer);
        let start = along_stack(
            format!("operand(entry, {load}u)"),
            layout.strides[load as usize],
            rank,
        );
        put!(&mut text, "return {start};\n}}\n");
    }
    finish(&mut text, stage, layout, rows, tile);
    text
}

/// Prints the function that computes and stores four elements of a row, whose sums are `r0`.
fn finish(text: &mut String, stage: &Stage, layout: &Layout, rows: &Rows, tile: Tile) {
    let rank = rows.outer;
    *text += "fn finish(entry: u32, stack: u32, row: u32, column: u32, r0: F) {\n";
    coordinates(text, "c", "stack", rank - 2, layout.outer);
    *text += "let columns = U(column) + LANE;\n";
    let place = |address: String, strides: u32| {
        let start = along_stack(address, strides, rank);
        let (row, column) = (strides + rank - 2, strides + rank - 1);
        format!("U({start} + row * operand(entry, {row}u)) + columns * operand(entry, {column}u)")
    };
    for load in (0..stage.loads.len()).filter(|load| !tile.factors.contains(&(*load as u32))) {
        let at = place(format!("operand(entry, {load}u)"), layout.strides[load]);
        let index = layout.strides[load] + rank + rows.inner;
        map::read(text, stage, load, &at, index);
    }
    *text += &scalars(stage, layout);
    let (RowResult::Row(value) | RowResult::Element(value)) = &rows.result;
    let first = stage.loads.len() + stage.scalars.len();
    let value = expr::print(text, value, "t", first);
    let at = place("result(entry)".to_owned(), layout.result);
    map::store_some(text, &value, &at, "column", "COLUMNS");
    *text += "}\n";
}

/// An expression of an address in one matrix of the stack.
fn along_stack(mut address: String, strides: u32, rank: u32) -> String {
    for axis in 0..rank - 2 {
        put!(
            &mut address,
            " + c{axis} * operand(entry, {}u)",
            strides + axis
        );
    }
    address
}

/// The text of the second hole of large tiles: 16 steps of a thread.
pub(super) fn products() -> String {
    let mut text = String::new();
    for k in 0..16 {
        put!(
            &mut text,
            "let b{k} = steps[{}][tx]; let a{k} = steps[{k}][ty]; let c{k} = steps[{k}][ty + 8u];\n",
            k + 16
        );
        for i in 0..8 {
            let (half, lane) = (["a", "c"][i / 4], ["x", "y", "z", "w"][i % 4]);
            put!(&mut text, "s{i} = fma(F({half}{k}.{lane}), b{k}, s{i});\n");
        }
    }
    text
}

/// The text of the second hole of small tiles: 16 steps of a thread, from step `k` on.
pub(super) fn small_products() -> String {
    let mut text = String::new();
    for quad in 0..4 {
        for row in 0..4 {
            put!(
                &mut text,
                "let a{quad}{row} = rows[ty + {row}u][k / 4u + {quad}u];\n"
            );
        }
        for (lane, name) in ["x", "y", "z", "w"].iter().enumerate() {
            put!(
                &mut text,
                "let b{quad}{lane} = steps[k + {}u][tx][lane];\n",
                quad * 4 + lane
            );
            for row in 0..4 {
                put!(
                    &mut text,
                    "s{row} = fma(a{quad}{row}.{name}, b{quad}{lane}, s{row});\n"
                );
            }
        }
    }
    text
}
