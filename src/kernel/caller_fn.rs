//! Prints functions of callers: their own text, and a function that applies them to as many
//! elements as a kernel computes at once.

use std::ops::Range;

use super::{CallerFn, UnaryFn};
use crate::graph::{FnContent, FnForm, ParamType};

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
/// Beside the function's own names its text has the type `Params` and the variables `passes` and
/// `stopped`, where there are params and loops.
pub(super) fn print(text: &mut String, function: &CallerFn, lanes: Lanes) {
    let own = CallerFn::own(function.number());
    let beside = CallerFn::beside(function.number());
    let FnContent {
        form,
        inputs,
        params,
        max_passes,
        ..
    } = &function.content;
    // A function of a place is called with it, and not with what lies there.
    let (function_name, inputs, value, lanes_of_place) = match form {
        FnForm::Element => ("element", *inputs, "F", "f32"),
        FnForm::At => ("at", 1, "U", "u32"),
    };
    let operands = inputs + params.len();
    put!(text, "{}\nfn {beside}one(", function.text);
    list(text, 0..inputs, &[": ", lanes_of_place].concat());
    list(text, inputs..operands, ": f32");
    *text += ") -> f32 {\n";
    if !params.is_empty() {
        put!(text, "{own}params = {beside}Params(");
        for (at, param) in (inputs..).zip(params) {
            match param {
                ParamType::F32 => put!(text, "a{at}, "),
                _ => put!(text, "bitcast<{}>(a{at}), ", param.name()),
            }
        }
        *text += ");\n";
    }
    if let Some(passes) = max_passes {
        put!(
            text,
            "{beside}passes = {passes}u;\n{beside}stopped = false;\n"
        );
    }
    put!(text, "let value = {own}{function_name}(");
    match form {
        FnForm::Element => list(text, 0..inputs, ""),
        FnForm::At => *text += "i32(a0)",
    }
    match max_passes {
        None => *text += ");\nreturn value;\n}\n",
        // A compiler must not take the NaN for a constant, which it would refuse.
        Some(_) => put!(
            text,
            ");\nreturn select(value, bitcast<f32>({}u | (params.table & 0u)), {beside}stopped);\n}}\n",
            UnaryFn::STOPPED
        ),
    }
    put!(text, "fn {beside}call(");
    list(text, 0..inputs, &[": ", value].concat());
    list(text, inputs..operands, ": F");
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

/// Prints the names of operands, each with something behind it. WGSL allows the last comma.
fn list(text: &mut String, operands: Range<usize>, behind: &str) {
    for at in operands {
        put!(text, "a{at}{behind}, ");
    }
}
