//! Prints functions of callers: their own text, and a function that applies them to as many
//! elements as a kernel computes at once.

use std::sync::Arc;

use super::{CallerFn, ParamType};
use crate::graph::{ADDED, MARK};

/// Whether a kernel computes one element at a time, or four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lanes {
    One,
    Four,
}

/// The name of the function that applies a caller's function to elements.
pub(super) fn name(function: &CallerFn) -> String {
    format!("call{}", function.number())
}

/// What stands in front of the names that a function's text declares.
fn prefix(function: &CallerFn) -> String {
    format!("k{}_", function.number())
}

/// The variables of a function with loops: passes that are left, and whether none were.
const LOOPS: &str = "var<private> #passes: u32;
var<private> #stopped: bool;
";

/// Prints a function, what it calls, and the function that applies it to elements.
pub(super) fn print(text: &mut String, function: &CallerFn, lanes: Lanes) {
    let (own, content) = (prefix(function), &function.content);
    if !content.params.is_empty() {
        put!(text, "struct {own}Params {{ ");
        for (name, param) in &content.params {
            put!(text, "{name}: {}, ", param.name());
        }
        put!(text, "}}\nvar<private> {own}params: {own}Params;\n");
    }
    if content.max_passes.is_some() {
        *text += &LOOPS.replace(MARK, &own);
    }
    *text += &printed(function);
    let names = |count, kind: &str| -> Vec<String> {
        (0..count).map(|at| format!("a{at}{kind}")).collect()
    };
    let values = names(content.inputs, "").join(", ");
    put!(
        text,
        "\nfn {own}one({}) -> f32 {{\n",
        names(content.inputs, ": f32").join(", ")
    );
    match content.max_passes {
        None => put!(text, "return {own}element({values});\n}}\n"),
        Some(passes) => put!(
            text,
            "{own}passes = {passes}u;\n{own}stopped = false;
let value = {own}element({values});
return select(value, bitcast<f32>({NAN} | (params.table & 0u)), {own}stopped);\n}}\n"
        ),
    }
    put!(
        text,
        "fn {}({}) -> F {{\n",
        name(function),
        names(function.operands(), ": F").join(", ")
    );
    let lane = if lanes == Lanes::Four { ".x" } else { "" };
    if !content.params.is_empty() {
        let params = (content.inputs..).zip(&content.params);
        let params: Vec<String> = params
            .map(|(at, (_, param))| match param {
                ParamType::F32 => format!("a{at}{lane}"),
                ParamType::I32 | ParamType::U32 => {
                    format!("bitcast<{}>(a{at}{lane})", param.name())
                }
            })
            .collect();
        put!(text, "{own}params = {own}Params({});\n", params.join(", "));
    }
    let one = |lane: &str| format!("{own}one({})", names(content.inputs, lane).join(", "));
    match lanes {
        Lanes::One => put!(text, "return {};\n}}\n", one("")),
        Lanes::Four => {
            let four = [".x", ".y", ".z", ".w"].map(one);
            put!(text, "return F({});\n}}\n", four.join(", "));
        }
    }
}

/// The bits of what an element is whose loops were stopped. A compiler must not take them for a
/// constant, which it would refuse.
const NAN: &str = "0x7fc00000u";

/// A function's text as it stands in kernels.
fn printed(function: &CallerFn) -> String {
    let code = function.content.code.replace(MARK, &prefix(function));
    code.replace(ADDED, "")
}

/// Where a compiler found a mistake in a caller's text, in the caller's own lines.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    line: usize,
    column: usize,
    /// The line itself.
    text: String,
}

/// What a compiler says of a place in the text of a kernel, as the caller who wrote that place
/// reads it; `None` where no caller did. Lines and columns count from 1, columns in bytes.
pub(crate) fn complaint(
    functions: &[&Arc<CallerFn>],
    source: &str,
    [line, column]: [u32; 2],
    message: &str,
) -> Option<String> {
    functions.iter().find_map(|function| {
        let before = &source[..source.find(&printed(function))?];
        let first = before.matches('\n').count();
        let line = (line as usize).checked_sub(first + 1)?;
        let own = prefix(function);
        let place = place(&function.content.code, own.len(), line, column as usize)?;
        let name = &function.content.name;
        let [line, column] = [place.line, place.column].map(|number| number.to_string());
        let message = message.replace(&own, "");
        Some(
            [
                name,
                ":",
                &line,
                ":",
                &column,
                ": ",
                message.trim(),
                "\n  ",
                &place.text,
            ]
            .concat(),
        )
    })
}

/// The place in a caller's text, of whose lines the one of this number holds the column where
/// it is printed with prefixes of so many bytes.
fn place(code: &str, prefix: usize, line: usize, column: usize) -> Option<Place> {
    let marked = code.split('\n').nth(line)?;
    let (mut text, mut printed, mut own) = (String::new(), 1, None);
    let mut is_added = false; // By us, in the middle of what the caller wrote.
    for next in marked.chars() {
        if ADDED.contains(&next) {
            is_added = next == ADDED[0];
            continue;
        }
        if printed >= column {
            own.get_or_insert(text.encode_utf16().count());
        }
        if next == MARK {
            printed += prefix;
            continue;
        }
        printed += next.len_utf8();
        if !is_added {
            text.push(next);
        }
    }
    Some(Place {
        line: line + 1,
        column: own.unwrap_or(text.encode_utf16().count()) + 1,
        text: text.trim().into(),
    })
}
