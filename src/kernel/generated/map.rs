//! Prints maps: a thread computes four elements. A thread of a flat map computes several times
//! four, because finding a thread's call costs as much as computing a few elements.

use super::operands::{Reads, quad};
use super::{coordinates, declare, scalars};
use crate::kernel::{CallerFn, Term, expr};
use crate::program::{Access, Layout, Load, Map, Stage};

/// Vectors of four elements that a thread of a flat map computes.
pub(in crate::kernel) const VECTORS: u32 = 4;

pub(super) fn body(stage: &Stage, layout: &Layout, map: &Map) -> String {
    if stage.is_flat_map() {
        return flat_body(stage, layout, map);
    }
    let result = if map.is_strided { "u32" } else { "vec4<u32>" };
    let mut text = declare(stage, layout, Reads::Four, result);
    text += "fn compute(entry: u32, i: u32) {\n";
    text += &lanes(layout, map, "i");
    if map.rank > 0 {
        let number = "(U(4u * i) + lanes)";
        coordinates(&mut text, "c", number, map.rank, layout.outer);
    }
    for (load, of) in stage.loads.iter().enumerate() {
        let address = format!("operand(entry, {load}u)");
        if of.access == Access::Flat {
            let bits = quad(of, &format!("{address} / 4u + i"));
            text += &flat_load(load, &bits, map);
            continue;
        }
        let strides = layout.strides[load];
        let at = place(&address, strides, map.rank);
        read(&mut text, stage, load, &at, strides + map.rank);
    }
    text += &scalars(stage, layout);
    let rows = stage.loads.len() + stage.scalars.len();
    let value = expr::print(&mut text, &map.value, "t", rows);
    if map.is_strided {
        let at = place("result(entry)", layout.result, map.rank);
        let count = format!("{}u", layout.count);
        store_some(&mut text, &value, &at, "4u * i", &count);
    } else {
        put!(
            &mut text,
            "output[result(entry) / 4u + i] = bitcast<U>({value});\n"
        );
    }
    text + "}"
}

/// The text of a flat map. The entry is read once for all vectors of a thread, and counts the
/// call's vectors where entries of other kernels count threads.
fn flat_body(stage: &Stage, layout: &Layout, map: &Map) -> String {
    let is_anywhere = stage.looks_anywhere();
    let reads = if is_anywhere {
        Reads::Four
    } else {
        Reads::Quads
    };
    let mut text = declare(stage, layout, reads, "vec4<u32>");
    if is_anywhere {
        whole_loads(&mut text, stage, layout, map);
    }
    text += "fn compute(entry: u32, i: u32) {\n";
    if is_anywhere {
        text += "own_entry = entry;\n";
    }
    for load in (0..stage.loads.len()).filter(|_| !is_anywhere) {
        put!(&mut text, "let a{load} = operand(entry, {load}u) / 4u;\n");
    }
    text += &scalars(stage, layout);
    put!(
        &mut text,
        "let to = result(entry) / 4u;
let end = min({VECTORS}u * i + {VECTORS}u, segments[entry + THREADS]);
for (var k = {VECTORS}u * i; k < end; k++) {{\n"
    );
    if is_anywhere || map.has_calls() {
        text += &lanes(layout, map, "k");
    }
    if is_anywhere {
        text += "let at = U(4u * k) + lanes;\n";
    }
    for (load, of) in stage.loads.iter().enumerate().filter(|_| !is_anywhere) {
        let bits = quad(of, &format!("a{load} + k"));
        text += &flat_load(load, &bits, map);
    }
    let rows = stage.loads.len() + stage.scalars.len();
    let value = expr::print(&mut text, &map.value, "t", rows);
    put!(&mut text, "output[to + k] = bitcast<U>({value});\n}}\n}}");
    text
}

/// Prints the places of a vector's four elements behind its first, of which this is the number. A
/// function of a caller's computes the last element there is once more in place of those behind it:
/// of what lies there its loops may have no end.
fn lanes(layout: &Layout, map: &Map, vector: &str) -> String {
    let all = "U(0u, 1u, 2u, 3u)";
    match map.has_calls() {
        true => format!(
            "let lanes = min({all}, U(operand(entry, {}u) - 1u - 4u * {vector}));\n",
            layout.count
        ),
        false => format!("let lanes = {all};\n"),
    }
}

/// Prints the values of a flat load, at the places of the lanes.
fn flat_load(load: usize, bits: &str, map: &Map) -> String {
    match map.has_calls() {
        true => format!(
            "let q{load} = bitcast<F>({bits});
let v{load} = F(q{load}.x, q{load}[lanes.y], q{load}[lanes.z], q{load}[lanes.w]);\n"
        ),
        false => format!("let v{load} = bitcast<F>({bits});\n"),
    }
}

/// Prints what a function that looks anywhere calls: for each of its inputs what reads an element,
/// how many values there are, and how many along the last axis of values.
fn whole_loads(text: &mut String, stage: &Stage, layout: &Layout, map: &Map) {
    *text += "var<private> own_entry: u32;\n";
    for term in map.value.terms() {
        let Term::Call(function, operands) = term else {
            continue;
        };
        let beside = CallerFn::beside(function.number());
        let inputs = operands.iter().zip(&function.content.inputs);
        for (input, (of, as_input)) in inputs.enumerate() {
            // A tensor that is given twice is one load, unless values of it are counted otherwise.
            let Term::Variable(load) = map.value.terms()[of.index()] else {
                continue;
            };
            let of = &stage.loads[load as usize];
            let (words, binding) = (layout.strides[load as usize], of.binding);
            let bits = match of.packing {
                Some(_) => format!("read{binding}(U(at)).x"),
                None => format!("in{binding}[at / 4u][at % 4u]"),
            };
            let scalar = as_input.of.scalar.name();
            put!(
                text,
                "fn {beside}read{input}(i: i32) -> {scalar} {{
let at = operand(own_entry, {load}u) + u32(i);
return bitcast<{scalar}>({bits});
}}
fn {beside}count{input}() -> i32 {{ return i32(operand(own_entry, {words}u)); }}
fn {beside}width{input}() -> i32 {{ return i32(operand(own_entry, {words}u + 1u)); }}\n"
            );
        }
    }
}

/// Prints the lines that read four elements of a load at the places `at`. The entry's words of
/// the load's index, if it has one, begin at `index`.
pub(super) fn read(text: &mut String, stage: &Stage, load: usize, at: &str, index: u32) {
    let Load {
        binding, access, ..
    } = stage.loads[load];
    let value = match access {
        Access::Flat | Access::Strided | Access::Found | Access::Whole => {
            format!("read{binding}({at})")
        }
        Access::Indexed(by) => {
            let (step, limit) = (index, index + 1);
            put!(text, "let x{load} = bitcast<U>(v{by});\n");
            let at = format!("{at} + x{load} * operand(entry, {step}u)");
            let is_outside = format!("x{load} >= U(operand(entry, {limit}u))");
            format!("select(read{binding}({at}), x{load} | U(0x7fc00000u), {is_outside})")
        }
    };
    put!(text, "let v{load} = bitcast<F>({value});\n");
}

/// An expression of four places, by the strides that begin at this word of the entry.
fn place(address: &str, strides: u32, rank: u32) -> String {
    let mut place = format!("U({address})");
    for axis in 0..rank {
        put!(
            &mut place,
            " + c{axis} * operand(entry, {}u)",
            strides + axis
        );
    }
    place
}

/// Prints the lines that store up to four elements one by one, at the places `at`: element
/// `first` and those behind, as far as the count in this word of the entry goes.
pub(super) fn store_some(text: &mut String, value: &str, at: &str, first: &str, count: &str) {
    put!(text, "let at = {at};\nlet bits = bitcast<U>({value});\n");
    put!(text, "let count = operand(entry, {count});\n");
    for (lane, name) in ["x", "y", "z", "w"].iter().enumerate() {
        put!(
            text,
            "if {first} + {lane}u < count {{ output[at.{name}] = bits.{name}; }}\n"
        );
    }
}
