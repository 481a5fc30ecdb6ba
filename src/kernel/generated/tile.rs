//! Prints matrix products: what reads the factors, and what is computed of each element. The
//! sums themselves are in the templates.

use super::super::expr;
use super::operands::{Reads, quad, quads};
use super::{coordinates, declare, map, scalars};
use crate::graph::Precision;
use crate::program::{Layout, RowResult, Rows, SMALL_TILE, Stage, TILE, Tile};

/// The text of the first hole of the templates.
pub(super) fn body(stage: &Stage, layout: &Layout, rows: &Rows, tile: Tile) -> String {
    let result = match tile.vectors {
        Some(_) => "vec4<u32>",
        None => "u32",
    };
    let mut text = declare(stage, layout, Reads::Four, result);
    let float = match tile.precision {
        Precision::F32 => "f32",
        Precision::F16 => "f16",
    };
    put!(&mut text, "alias Q = vec4<{float}>;\nalias H = {float};\n");
    let written = steps(tile.precision);
    put!(&mut text, "const WRITTEN = {written}u;\n");
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
    let row = |address: String, strides: u32| {
        let start = along_stack(address, strides, rank);
        format!("{start} + row * operand(entry, {}u)", strides + rank - 2)
    };
    let place = |address: String, strides: u32| {
        let column = strides + rank - 1;
        let row = row(address, strides);
        format!("U({row}) + columns * operand(entry, {column}u)")
    };
    for load in (0..stage.loads.len()).filter(|load| !tile.factors.contains(&(*load as u32))) {
        let (address, strides) = (format!("operand(entry, {load}u)"), layout.strides[load]);
        if tile
            .vectors
            .is_some_and(|loads| loads.unbounded_shr(load as u32) & 1 == 1)
        {
            let row = row(address, strides);
            let bits = quad(&stage.loads[load], &format!("({row} + column) / 4u"));
            put!(text, "let v{load} = bitcast<F>({bits});\n");
            continue;
        }
        let index = strides + rank + rows.inner;
        map::read(text, stage, load, &place(address, strides), index);
    }
    *text += &scalars(stage, layout);
    let (RowResult::Row(value) | RowResult::Element(value)) = &rows.result;
    let first = stage.loads.len() + stage.scalars.len();
    let value = expr::print(text, value, "t", first);
    let result = "result(entry)".to_owned();
    if tile.vectors.is_some() {
        // As many columns as whole vectors have.
        let row = row(result, layout.result);
        put!(
            text,
            "if column < operand(entry, COLUMNS) {{ output[({row} + column) / 4u] = bitcast<U>({value}); }}\n}}\n"
        );
        return;
    }
    map::store_some(
        text,
        &value,
        &place(result, layout.result),
        "column",
        "COLUMNS",
    );
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

/// Steps that the second holes write out: in 16 bits as many as are summed in these.
fn steps(precision: Precision) -> usize {
    match precision {
        Precision::F32 => 16,
        Precision::F16 => 32,
    }
}

const LANES: [&str; 4] = ["x", "y", "z", "w"];

/// The text of the second hole of large tiles in 32 bits: some steps of a thread.
pub(super) fn products() -> String {
    let mut text = String::new();
    let steps = steps(Precision::F32);
    for k in 0..steps {
        put!(
            &mut text,
            "let b{k} = steps[{}][tx]; let a{k} = steps[{k}][ty]; let c{k} = steps[{k}][ty + 8u];\n",
            k + steps
        );
        for i in 0..8 {
            let (half, lane) = (["a", "c"][i / 4], LANES[i % 4]);
            put!(&mut text, "s{i} = fma(F({half}{k}.{lane}), b{k}, s{i});\n");
        }
    }
    text
}

/// The same of large tiles in 16 bits.
pub(super) fn half_products() -> String {
    written_out(Precision::F16, 8, ["F", "Q"], |text, sum| {
        for quad in 0..steps(Precision::F16) / 4 {
            for row in 0..8 {
                let line = row % 4 + row / 4 * 32;
                put!(text, "let a{quad}{row} = rows[ty + {line}u][{quad}];\n");
            }
            for column in 0..4 {
                put!(
                    text,
                    "let c{quad}{column} = columns[tx + {column}u * APART][{quad}];\n"
                );
            }
            for lane in LANES {
                let values = [0, 1, 2, 3].map(|column| format!("c{quad}{column}.{lane}"));
                put!(text, "let b{quad}{lane} = Q({});\n", values.join(", "));
                for row in 0..8 {
                    put!(
                        text,
                        "{sum}{row} = fma(Q(a{quad}{row}.{lane}), b{quad}{lane}, {sum}{row});\n"
                    );
                }
            }
        }
    })
}

/// The text of the second hole of small tiles: some steps of a thread, from step `k` on.
pub(super) fn small_products(precision: Precision) -> String {
    written_out(precision, 4, ["f32", "H"], |text, sum| {
        for quad in 0..steps(precision) / 4 {
            for row in 0..4 {
                put!(
                    text,
                    "let a{quad}{row} = rows[ty + {row}u][k / 4u + {quad}u];\n"
                );
            }
            for (lane, name) in LANES.iter().enumerate() {
                put!(
                    text,
                    "let b{quad}{lane} = steps[k + {}u][tx][lane];\n",
                    quad * 4 + lane
                );
                for row in 0..4 {
                    put!(
                        text,
                        "{sum}{row} = fma(a{quad}{row}.{name}, b{quad}{lane}, {sum}{row});\n"
                    );
                }
            }
        }
    })
}

/// Steps that `print` writes out for so many sums, whose names begin with a letter. In 32 bits
/// these are the sums of all steps, which have the first type, and in 16 bits sums of these steps
/// alone, which have the second type and are added to those.
fn written_out(
    precision: Precision,
    sums: usize,
    [all, own]: [&str; 2],
    print: impl FnOnce(&mut String, char),
) -> String {
    let mut text = String::new();
    if precision == Precision::F32 {
        print(&mut text, 's');
        return text;
    }
    for i in 0..sums {
        put!(&mut text, "var h{i} = {own}();\n");
    }
    print(&mut text, 'h');
    for i in 0..sums {
        put!(&mut text, "s{i} += {all}(h{i});\n");
    }
    text
}
