//! Matrix products as WGSL: what reads the factors, and what is made of each
//! element. The sums themselves are in the templates.

use super::super::expr;
use super::{coordinates, declare, map, scalars};
use crate::plan::fuse::{Layout, RowResult, Rows, Stage, Tile};

/// The hole of both templates.
pub(super) fn body(stage: &Stage, layout: &Layout, (rows, tile): (&Rows, Tile)) -> String {
    let mut text = declare(stage, layout, ("vec4<u32>", "u32"));
    map::readers(&mut text, stage);
    let rank = rows.outer;
    let [left, right] = tile.factors.map(|load| layout.strides[load as usize]);
    let words = [
        ("COUNT", layout.count),
        ("ROWS", layout.outer + rank - 3),
        ("COLUMNS", layout.outer + rank - 2),
        ("LEFT_ROW", left + rank - 2),
        ("LEFT_STEP", left + rank),
        ("RIGHT_COLUMN", right + rank - 1),
        ("RIGHT_STEP", right + rank),
    ];
    for (name, word) in words {
        put!(&mut text, "const {name} = {word}u;\n");
    }
    for (place, name) in ["left", "right"].iter().enumerate() {
        let load = tile.factors[place];
        let binding = stage.loads[load as usize].binding;
        let is_across = tile.is_across[place];
        let upper = ["LEFT", "RIGHT"][place];
        put!(&mut text, "const {upper}_ACROSS = {is_across};\n");
        put!(
            &mut text,
            "fn {name}(at: U) -> U {{ return read{binding}(at); }}\n"
        );
        put!(
            &mut text,
            "fn {name}_quad(i: u32) -> U {{ return in{binding}[i]; }}\n"
        );
        put!(
            &mut text,
            "fn {name}_start(entry: u32, stack: u32) -> u32 {{\n"
        );
        coordinates(&mut text, ("c", "stack"), (rank - 2, layout.outer));
        let start = along_stack(
            format!("operand(entry, {load}u)"),
            layout.strides[load as usize],
            rank,
        );
        put!(&mut text, "return {start};\n}}\n");
    }
    finish(&mut text, stage, layout, (rows, tile));
    text
}

/// Computes and stores four elements of a row: their sums are `r0`.
fn finish(text: &mut String, stage: &Stage, layout: &Layout, (rows, tile): (&Rows, Tile)) {
    let rank = rows.outer;
    *text += "fn finish(entry: u32, stack: u32, row: u32, column: u32, r0: F) {\n";
    coordinates(text, ("c", "stack"), (rank - 2, layout.outer));
    *text += "let columns = U(column) + LANE;\n";
    let place = |address: String, strides: u32| {
        let start = along_stack(address, strides, rank);
        let (row, column) = (strides + rank - 2, strides + rank - 1);
        format!("U({start} + row * operand(entry, {row}u)) + columns * operand(entry, {column}u)")
    };
    for load in (0..stage.loads.len()).filter(|load| !tile.factors.contains(&(*load as u32))) {
        let at = place(format!("operand(entry, {load}u)"), layout.strides[load]);
        let index = layout.strides[load] + rank + rows.inner;
        map::read(text, stage, (load, &at), index);
    }
    *text += &scalars(stage, layout);
    let (RowResult::Row(value) | RowResult::Element(value)) = &rows.result;
    let first = stage.loads.len() + stage.scalars.len();
    let value = expr::print(text, value, ("t", first));
    let at = place("result(entry)".to_owned(), layout.result);
    map::store_parts(text, (&value, &at), ("column", "COLUMNS"));
    *text += "}\n";
}

/// An address in the matrix of the stack that is worked on.
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

/// What follows the hole's beginning in the template for processors: a thread's
/// 8 rows of 8 columns, written out.
pub(super) fn direct(text: &mut String) {
    *text += "fn sum(entry: u32, at: Tile, row: u32, column: u32) {\n\
        let count = operand(entry, COUNT);\n\
        let b_at = at.right + (column - at.column) * at.right_step.x;\n\
        let left = at.size.y - column;\n";
    for row in 0..8 {
        put!(
            text,
            "let a_at{row} = at.left + (row - at.row + {row}u) * at.left_step.x;\n\
             var s{row} = F(); var u{row} = F();\n"
        );
    }
    *text += "for (var step = 0u; step < count; step += 4u) {\n";
    for row in 0..8 {
        put!(
            text,
            "let a{row} = left_values(a_at{row} + step * at.left_step.y, at.left_step.y, select(0u, count - step, row + {row}u < at.size.x));\n"
        );
    }
    for (k, lane) in ["x", "y", "z", "w"].iter().enumerate() {
        put!(
            text,
            "{{ let b = b_at + (step + {k}u) * at.right_step.y;\n\
             let n = select(0u, left, step + {k}u < count);\n\
             let p = right_values(b, at.right_step.x, n);\n\
             let q = right_values(b + 4u * at.right_step.x, at.right_step.x, select(0u, n - 4u, n > 4u));\n"
        );
        for row in 0..8 {
            put!(
                text,
                "s{row} = fma(F(a{row}.{lane}), p, s{row}); u{row} = fma(F(a{row}.{lane}), q, u{row});\n"
            );
        }
        *text += "}\n";
    }
    *text += "}\n";
    for row in 0..8 {
        put!(
            text,
            "if row + {row}u < at.size.x {{ finish(entry, at.stack, row + {row}u, column, s{row}); finish(entry, at.stack, row + {row}u, column + 4u, u{row}); }}\n"
        );
    }
    *text += "}\n";
}
