//! Prints functions of callers: their own text, and a function that applies them to as many
//! elements as a kernel computes at once.

use std::ops::Range;

use super::{CallerFn, UnaryFn};
use crate::graph::{FnContent, ScalarType};

/// Whether a kernel computes one element at a time, or four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lanes {
    One,
    Four,
}

/// The name of the function that applies a caller's function to elements.
pub(super) fn name(function: &CallerFn) -> String {
    CallerFn::beside(function.number()) + "call"
}

/// Prints a function, what it calls, and the function that applies it to elements, or to places.
/// Beside the function's own names its text has the function `result`, and the type `Params` and
/// the variables `passes` and `stopped` where there are params and loops.
pub(super) fn print(text: &mut String, function: &CallerFn, lanes: Lanes) {
    let own = CallerFn::own(function.number());
    let beside = CallerFn::beside(function.number());
    let FnContent {
        inputs,
        result,
        params,
        max_passes,
        ..
    } = &function.content;
    // A function that reads its inputs itself is called with a place, and not with what lies there.
    let is_fused = function.content.is_fused();
    let (inputs, value, of) = match is_fused {
        true => (&inputs[..], "F", "f32"),
        false => (&[][..], "U", "u32"),
    };
    let places = usize::from(!is_fused);
    let values = places + inputs.len();
    let operands = values + params.len();
    put!(text, "{}\nfn {beside}one(", function.text);
    list(text, 0..values, &[": ", of].concat());
    list(text, values..operands, ": f32");
    *text += ") -> f32 {\n";
    if !params.is_empty() {
        put!(text, "{own}params = {beside}Params(");
        for (at, param) in (values..).zip(params) {
            put!(text, "{}, ", cast("f32", param.name(), &format!("a{at}")));
        }
        *text += ");\n";
    }
    if let Some(passes) = max_passes {
        put!(
            text,
            "{beside}passes = {passes}u;\n{beside}stopped = false;\n"
        );
    }
    let mut given = String::new();
    if !is_fused {
        given += "i32(a0), ";
    }
    for (at, input) in inputs.iter().enumerate() {
        given += &cast("f32", input.of.scalar.name(), &format!("a{at}"));
        given += ", ";
    }
    let called = format!("{beside}result({given})");
    put!(
        text,
        "let value = {};\n",
        cast(result.scalar.name(), "f32", &called)
    );
    match max_passes {
        // A compiler must not take the NaN for a constant, which it would refuse.
        Some(_) if result.scalar == ScalarType::F32 => put!(
            text,
            "return select(value, bitcast<f32>({}u | (params.table & 0u)), {beside}stopped);\n}}\n",
            UnaryFn::STOPPED
        ),
        Some(_) => put!(text, "return select(value, 0.0, {beside}stopped);\n}}\n"),
        None => *text += "return value;\n}\n",
    }
    put!(text, "fn {beside}call(");
    list(text, 0..values, &[": ", value].concat());
    list(text, values..operands, ": F");
    *text += ") -> F {\nreturn F(";
    let each: &[&str] = match lanes {
        Lanes::One => &[""],
        Lanes::Four => &[".x", ".y", ".z", ".w"],
    };
    for lane in each {
        put!(text, "{beside}one(");
        list(text, 0..operands, lane);
        *text += "), ";
    }
    *text += ");\n}\n";
}

/// An expression of another type with the same bits.
fn cast(from: &str, to: &str, value: &str) -> String {
    match from == to {
        true => value.into(),
        false => format!("bitcast<{to}>({value})"),
    }
}

/// Prints the names of operands, each with something behind it. WGSL allows the last comma.
fn list(text: &mut String, operands: Range<usize>, behind: &str) {
    for at in operands {
        put!(text, "a{at}{behind}, ");
    }
}
