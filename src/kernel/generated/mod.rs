//! The kernels of stages that fusion makes: each is a template of `shaders/` whose holes are
//! filled with the stage's operands and expressions.
//!
//! The text of a stage holds no size, stride or constant, so that equal stages have equal
//! text. The CPU twin is in `device/cpu/program`.
//!
//! # How exact
//!
//! Relative errors in units of 2⁻²⁴ (u) unless said otherwise, from WGSL's
//! accuracy table and the formulas in `shaders/lib/functions.wgsl`; held by
//! `tests/chains` on the CPU and on a GPU.
//!
//! | op | error at most |
//! |---|---|
//! | relu abs neg sign floor ceil round minimum maximum clamp, max min argmax, comparisons, where, what moves elements | exact |
//! | add sub mul | 1 u; a device may fuse a product and a sum, which rounds once less |
//! | div | 5 u |
//! | sqrt | 10 u |
//! | exp | (6 + 4·abs(x)) u |
//! | log | 6 u, or 2⁻²¹ absolute for x in [0.5, 2] |
//! | sigmoid silu | (16 + 4·abs(x)) u |
//! | tanh | 16 u for abs(x) < 0.625, else 24 u |
//! | gelu | (32 + 8·x²) u of its absolute value, and 4 u of abs(x) |
//! | geluTanh | (32 + 16·abs(v)) u of its absolute value, v = 1.6·(x + 0.045·x³) |
//! | pow | (16 + 16·abs(y·log2 x)) u, and abs(y)·2⁻²¹ for x in [0.5, 2] |
//! | sin cos | 4 u absolute, for every finite number |
//! | mod | 1 u, however large the quotient |
//! | atan2 | 16 u |
//! | matmul | n u of the sum of absolute values of n products |
//! | attention | scores as matmul; weights as exp of how far a score lies below the largest, and 8n u for n keys; n u of the sums of n weights and of n absolute weighed values |
//! | softmax layerNorm rmsNorm normalize | what their definitions give op by op: e = exp(x − max), e / sum(e); c = x − mean(x), c / sqrt(mean(c²) + ε); x / sqrt(mean(x²) + ε); x / max(sqrt(sum(x²)), ε) |
//! | sum dot mean | (n/64 + 8) u of the sum of absolute values, n at most 4096, and 70 u for each further level of the tree; n u where n is at most 32, or 512 along other axes than the last |
//!
//! A product of matrices in 16 bits, which only encoders ask for, is off by 34 · 2⁻¹¹ of its sum of
//! absolute values besides.
//!
//! # NaN, zeros and infinities
//!
//! NaN goes through relu, abs, neg, minimum, maximum, clamp, max and min, and
//! argmax gives the place of the first one. Which of two zeros minimum and
//! maximum give is open. pow of a negative base is NaN unless the exponent is
//! whole, and 1 for the exponent 0 and the base 1, even of NaN; infinite
//! exponents are as the device gives them. Comparisons with NaN are 0, notEqual
//! with NaN is 1, and a condition is false for a zero only; these and sign go by
//! the bits of floats, subnormal ones too. sin and cos of infinities are NaN, as
//! is mod by zero and of infinities. Which of two zeros floor, ceil, round, sign
//! and mod give is open. In causal attention, keys and values
//! behind a query have the weight 0; where these are NaN or infinite, the result
//! may be NaN. Division by zero and overflow give infinities where the device has
//! infinities; WGSL lets a device assume that *arithmetic* gives none. Denormals
//! may be taken as zero: silu and the gelus are 0 where their factor of x is
//! denormal.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a stage has few loads and steps"
)]

mod attention;
mod map;
mod operands;
mod rows;
mod tile;

use self::operands::Reads;
use super::library::{FUNCTIONS, PARAMS, SEGMENTS, SEGMENTS_LIBRARY};
use super::{RESULT, caller_fn};
use crate::graph::Precision;
use crate::program::{Body, Layout, Scalar, Stage, Tiles, Width};

pub(super) use self::map::VECTORS;

const BUILTIN: &str = shader!("builtin");
const WAVES: &str = shader!("waves");
const FOLDS: &str = shader!("folds");
const MAP: &str = shader!("map");
const ROWS: &str = shader!("rows");
const WIDE_ROWS: &str = shader!("wide_rows");
const FACTORS: &str = shader!("factors");
const QUADS: &str = shader!("quads");
const TILE: &str = shader!("tile");
const HALF_TILE: &str = shader!("half_tile");
const SMALL_TILE: &str = shader!("small_tile");
const HEADS: &str = shader!("heads");
const ATTENTION: &str = shader!("attention");
const WIDE_ATTENTION: &str = shader!("wide_attention");

/// Complete WGSL source of a stage's kernel, libraries included, for a device that has this
/// precision. The precision and the size of tiles matter to products alone.
pub fn source(stage: &Stage, tiles: Tiles, offered: Precision) -> String {
    let layout = Layout::of(stage);
    let mut products = String::new();
    let mut enabled = "";
    let (library, template, hole) = match &stage.body {
        Body::Map(map) => ("", MAP, map::body(stage, &layout, map)),
        Body::Attention(of) if attention::is_wide(of) => (
            HEADS,
            WIDE_ATTENTION,
            attention::wide_body(stage, &layout, of),
        ),
        Body::Attention(of) => (HEADS, ATTENTION, attention::body(stage, &layout, of)),
        Body::Named(..) | Body::Search(_) => unreachable!("a named kernel is written by hand"),
        Body::Rows(rows) => match rows.width {
            Width::Thread => (FOLDS, ROWS, rows::body(stage, &layout, rows)),
            Width::Group => (FOLDS, WIDE_ROWS, rows::body(stage, &layout, rows)),
            Width::Tile(mut tile) => {
                tile.precision = tile.precision.within(offered);
                if tile.precision == Precision::F16 {
                    enabled = "enable f16;";
                }
                let hole = tile::body(stage, &layout, rows, tile) + QUADS;
                let template = match (tiles, tile.precision) {
                    (Tiles::Large, Precision::F32) => {
                        products = tile::products();
                        TILE
                    }
                    (Tiles::Large, Precision::F16) => {
                        products = tile::half_products();
                        HALF_TILE
                    }
                    (Tiles::Small, precision) => {
                        products = tile::small_products(precision);
                        SMALL_TILE
                    }
                };
                (FACTORS, template, hole)
            }
        },
    };
    let libraries = [SEGMENTS_LIBRARY, BUILTIN, WAVES, FUNCTIONS, library];
    let mut text = [&[enabled], &libraries[..]].concat().join("\n");
    for (number, part) in template.split('$').enumerate() {
        text += "\n";
        match number {
            0 => {}
            1 => text += &hole,
            _ => text += &products,
        }
        text += part;
    }
    text
}

/// The declarations of a kernel: bindings of operands and of a result of this type, and the
/// functions that read operands.
fn declare(stage: &Stage, layout: &Layout, reads: Reads, result: &str) -> String {
    let mut text = format!("const WORDS = {}u;\n", layout.words);
    let storage = "var<storage, read";
    for binding in 0..stage.bindings() {
        let operands = reads.words(stage.packing(binding as u32));
        put!(
            &mut text,
            "@group(0) @binding({binding}) {storage}> in{binding}: array<{operands}>;\n"
        );
    }
    put!(
        &mut text,
        "@group(0) @binding({RESULT}) {storage}_write> output: array<{result}>;\n"
    );
    put!(
        &mut text,
        "@group(0) @binding({SEGMENTS}) {storage}> segments: array<u32>;\n"
    );
    put!(
        &mut text,
        "@group(0) @binding({PARAMS}) var<uniform> params: Params;\n"
    );
    operands::readers(&mut text, stage, reads);
    for function in stage.caller_fns() {
        caller_fn::print(&mut text, function, reads.lanes());
    }
    text
}

/// The lines that read the scalars of a call.
fn scalars(stage: &Stage, layout: &Layout) -> String {
    let mut text = String::new();
    for (i, scalar) in stage.scalars.iter().enumerate() {
        let variable = stage.loads.len() + i;
        let word = match scalar {
            Scalar::Constant(index) => {
                format!("segments[operand(entry, {}u) + {index}u]", layout.constants)
            }
            Scalar::Count => format!("operand(entry, {}u)", layout.scalars[i]),
        };
        put!(&mut text, "let v{variable} = F(bitcast<f32>({word}));\n");
    }
    text
}

/// Prints the lines that find coordinates from a number: `name` with `0`, `1` and so on, one for
/// each of `rank` dimensions. All dimensions but the first are in the entry, from word `dims`
/// on.
fn coordinates(text: &mut String, name: &str, number: &str, rank: u32, dims: u32) {
    let mut rest = number.to_owned();
    for axis in (1..rank).rev() {
        let dim = dims + axis - 1;
        put!(text, "let {name}d{axis} = operand(entry, {dim}u);\n");
        put!(text, "let {name}{axis} = {rest} % {name}d{axis};\n");
        put!(text, "let {name}r{axis} = {rest} / {name}d{axis};\n");
        rest = format!("{name}r{axis}");
    }
    put!(text, "let {name}0 = {rest};\n");
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
