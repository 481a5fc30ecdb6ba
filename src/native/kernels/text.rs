//! The code of a kernel as it stands in other code: what is added behind the caller's own text.
//!
//! TypeScript has the same in `pkg-template/src/kernels/text.ts`. What may stand in the caller's
//! text is not known here.

use super::source::Source;
use crate::graph::{ADDED, BESIDE, CallerFn, FnContent, FnForm, MARK, ScalarType, ValueType};

/// A tensor that a kernel takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) name: String,
    pub(super) of: ValueType,
    /// Whether the code looks at any place of the tensor.
    pub(super) is_whole: bool,
}

/// What one function of the core computes of what a caller's function gives.
#[derive(Clone, Copy, Debug)]
pub(super) enum Gives<'a> {
    /// The field of this name, or all where the name is empty.
    Result(&'a str),
    /// Zeros: the function is asked only whether its loops were stopped.
    Nothing,
}

/// What stands behind code: what looks at inputs, the function `result`, the type and the variable
/// of params, and the variables of loops. `of` is the type of the result.
pub(super) fn declared(
    source: &Source,
    content: &FnContent,
    inputs: &[Input],
    params: &[(String, ScalarType)],
    gives: Gives<'_>,
) -> String {
    let mut text = String::from("\n");
    let of = content.result;
    for (at, input) in inputs.iter().enumerate() {
        if !content.is_fused() {
            text += &value_at(at, input.of);
        }
        if input.is_whole {
            text += &looking(at, input);
        }
    }
    let scalar = of.scalar.name();
    let mut called: Vec<String> = Vec::new();
    if content.is_fused() {
        let taken = inputs.iter().enumerate();
        let taken: Vec<String> = taken
            .map(|(at, input)| format!("a{at}: {}", input.of.name()))
            .collect();
        called.extend((0..inputs.len()).map(|at| format!("a{at}")));
        text += &format!("fn $result({}) -> {scalar} {{ ", taken.join(", "));
    } else {
        called.extend(match source.form {
            FnForm::At => vec!["p".to_owned()],
            FnForm::Element => (0..source.inputs.len())
                .map(|at| format!("$value{at}(p % $count{at}())"))
                .collect(),
        });
        let lanes = of.lanes;
        text += &format!("fn $result(i: i32) -> {scalar} {{ let p = i / {lanes}; ");
    }
    let name = match source.form {
        FnForm::Element => "element",
        FnForm::At => "at",
    };
    let value = format!("#{name}({})", called.join(", "));
    text += &match gives {
        Gives::Nothing => format!("let value = {value}; return {scalar}(); }}\n"),
        Gives::Result(field) => {
            let dot = if field.is_empty() { "" } else { "." };
            let value = [&value, dot, field].concat();
            match of.lanes {
                1 => format!("return {value}; }}\n"),
                lanes => format!("let value = {value}; return value[i % {lanes}]; }}\n"),
            }
        }
    };
    if !params.is_empty() {
        let fields = params
            .iter()
            .map(|(name, of)| format!("{name}: {}, ", of.name()));
        text += &format!(
            "struct $Params {{ {}}}\nvar<private> #params: $Params;\n",
            fields.collect::<String>()
        );
    }
    if source.has_loops {
        text += "var<private> $passes: u32;\nvar<private> $stopped: bool;\n";
    }
    text
}

/// The function that reads the value at a place of an input.
fn value_at(input: usize, of: ValueType) -> String {
    let (name, lanes) = (of.name(), of.lanes);
    let head = format!("fn $value{input}(p: i32) -> {name} {{ ");
    let parts: Vec<String> = match lanes {
        1 => return format!("{head}return $read{input}(p); }}\n"),
        _ => (0..lanes)
            .map(|lane| format!("$read{input}(p * {lanes} + {lane})"))
            .collect(),
    };
    format!("{head}return {name}({}); }}\n", parts.join(", "))
}

/// The functions by which code looks at an input: at a place, and at a row and a column, clamped
/// to what there is.
fn looking(input: usize, Input { name, of, .. }: &Input) -> String {
    let of = of.name();
    format!(
        "fn #{name}_len() -> i32 {{ return $count{input}(); }}
fn #{name}_cols() -> i32 {{ return $width{input}(); }}
fn #{name}_rows() -> i32 {{ return $count{input}() / $width{input}(); }}
fn #{name}(i: i32) -> {of} {{ return $value{input}(clamp(i, 0, $count{input}() - 1)); }}
fn #{name}_at(row: i32, col: i32) -> {of} {{
return $value{input}(clamp(row, 0, #{name}_rows() - 1) * $width{input}() + clamp(col, 0, $width{input}() - 1));
}}
"
    )
}

/// Code as it stands in kernels, where the function has a number.
pub(super) fn printed(code: &str) -> impl FnOnce(u32) -> String + use<> {
    let code = code.replace(ADDED, "");
    move |number| {
        let code = code.replace(MARK, &CallerFn::own(number));
        code.replace(BESIDE, &CallerFn::beside(number))
    }
}
