//! Prints attention: what reads queries, keys and values, and what is done to each quad of a
//! head, which lies in registers. The weights are computed in the template.

use super::operands::{Reads, quad, quads, single};
use super::{coordinates, declare};
use crate::graph::shape::MAX_ELEMENTS;
use crate::kernel::WORKGROUP;
use crate::program::{Attention, Layout, QUERIES, Scalar, Stage};

/// Quads of values that a thread sums in registers at a time. A kernel of longer heads goes
/// through the keys several times.
const PART: u32 = 16;

/// The same of long heads, of which a thread holds no query.
const WIDE_PART: u32 = 16;

/// Quads of a query that a thread holds in registers at most.
const HELD: u32 = 32;

/// Whether heads are too long for what a thread holds, so that another template computes them.
pub(super) fn is_wide(of: &Attention) -> bool {
    of.size.div_ceil(4) > HELD
}

/// The text of the hole of the template.
pub(super) fn body(stage: &Stage, layout: &Layout, of: &Attention) -> String {
    let mut text = operands(stage, layout, of);
    let quads = of.size.div_ceil(4);
    let part = quads.min(PART);
    // Every device has 16 KiB of workgroup memory.
    let tile = if quads > PART { 16 } else { 32 };
    for (name, value) in [("QUADS", quads), ("PART", part), ("TILE", tile)] {
        put!(&mut text, "const {name} = {value}u;\n");
    }
    copy(&mut text, [tile * quads, tile * part], QUERIES * part);
    query(&mut text, quads);
    bias(&mut text, stage, layout, of);
    sums(&mut text, part);
    text
}

/// The text of the hole of the template of long heads.
pub(super) fn wide_body(stage: &Stage, layout: &Layout, of: &Attention) -> String {
    let mut text = operands(stage, layout, of);
    let quads = of.size.div_ceil(4);
    // Two threads have half of the floats each.
    let part = quads.div_ceil(2).min(WIDE_PART);
    put!(
        &mut text,
        "const QUADS = {quads}u;\nconst PART = {part}u;\n"
    );
    bias(&mut text, stage, layout, of);
    wide_sums(&mut text, part);
    text
}

/// Prints what is added to the scores of four keys: nothing, or a bias by how far they are behind
/// their query. Behind the last key there is the last key's bias.
fn bias(text: &mut String, stage: &Stage, layout: &Layout, of: &Attention) {
    *text += "fn biased(w: F, entry: u32, at: Head, row: u32, key: u32) -> F {\n";
    if let Some(bias) = of.bias {
        let load = &stage.loads[bias as usize];
        let steps = layout.strides[bias as usize] + of.outer - 1;
        put!(
            text,
            "let s = steps(entry, {steps}u);\n\
             let d = min(U(key) + LANE, U(at.keys - 1u)) + (at.rows - 1u - min(at.row + row, at.rows - 1u));\n\
             let a = operand(entry, {bias}u) + at.head * s.y + d * s.x;\n"
        );
        let words = match (load.packing, of.is_quads) {
            (Some(_), true) => format!("read{}(a)", load.binding),
            _ => {
                let words = ["x", "y", "z", "w"].map(|lane| match of.is_quads {
                    true => format!("in{}[a.{lane} / 4u][a.{lane} % 4u]", load.binding),
                    false => single(load, &format!("a.{lane}")),
                });
                format!("U({})", words.join(", "))
            }
        };
        put!(text, "return w + bitcast<F>({words});\n}}\n");
    } else {
        *text += "return w;\n}\n";
    }
}

/// Prints the function that copies so many quads of keys and of values to workgroup memory,
/// which later holds so many quads of sums.
fn copy(text: &mut String, quads: [u32; 2], sums: u32) {
    let each = quads.map(|quads| quads.div_ceil(WORKGROUP));
    let lists = [("key", "first"), ("value", "first, part")];
    for ((name, _), each) in lists.iter().zip(each) {
        let quads = (each * WORKGROUP).max(sums);
        put!(text, "var<workgroup> {name}s: array<vec4<f32>, {quads}>;\n");
    }
    *text += "fn put(at: Head, first: u32, part: u32, lane: u32) {\n";
    for ((name, place), each) in lists.iter().zip(each) {
        let lanes = || (0..each).map(|i| (i, WORKGROUP * i));
        // All loads come first, because compilers move no load in front of a store.
        for (i, lane) in lanes() {
            put!(
                text,
                "let {name}{i} = {name}_quad(at, {place}, lane + {lane}u);\n"
            );
        }
        for (i, lane) in lanes() {
            put!(text, "{name}s[lane + {lane}u] = {name}{i};\n");
        }
    }
    *text += "}\n";
}

/// Prints a line for each of `count` quads, between two texts.
fn list(text: &mut String, before: &str, after: &str, count: u32, line: &dyn Fn(&mut String, u32)) {
    *text += before;
    for i in 0..count {
        line(text, i);
    }
    *text += after;
}

/// Prints what is done to each quad of a query.
fn query(text: &mut String, quads: u32) {
    list(text, "struct Query {", "}\n", quads, &|text, i| {
        put!(text, "q{i}: F, ");
    });
    list(
        text,
        "fn query_of(at: u32, step: u32) -> Query {\nvar q: Query;\n",
        "return q;\n}\n",
        quads,
        &|text, i| {
            let at = 4 * i;
            put!(
                text,
                "q.q{i} = query(at + {at}u * step, step, SIZE - {at}u);\n"
            );
        },
    );
    list(
        text,
        "fn scores(q: Query, at: u32) -> F {\nvar a = F(); var b = F(); var c = F(); var d = F();\n",
        "return F(sum_of(a), sum_of(b), sum_of(c), sum_of(d));\n}\n",
        quads,
        &|text, i| {
            for (k, sum) in (0..).zip(["a", "b", "c", "d"]) {
                let at = k * quads + i;
                put!(text, "{sum} = fma(q.q{i}, keys[at + {at}u], {sum});\n");
            }
        },
    );
}

/// Prints what is done to each quad of a query's sums.
fn sums(text: &mut String, part: u32) {
    list(text, "struct Sums {", "}\n", part, &|text, i| {
        put!(text, "s{i}: F, ");
    });
    list(
        text,
        "fn add(sums: Sums, decay: f32, w: F, at: u32) -> Sums {\nvar s = sums;\n",
        "return s;\n}\n",
        part,
        &|text, i| {
            put!(text, "s.s{i} *= decay;\n");
            for (k, weight) in (0..).zip(["x", "y", "z", "w"]) {
                let at = k * part + i;
                put!(
                    text,
                    "s.s{i} = fma(F(w.{weight}), values[at + {at}u], s.s{i});\n"
                );
            }
        },
    );
    list(
        text,
        "fn leave(s: Sums, row: u32) {\n",
        "}\n",
        part,
        &|text, i| put!(text, "keys[row + {}u] = s.s{i};\n", QUERIES * i),
    );
    list(
        text,
        "fn join(mine: f32, s: Sums, other: f32, row: u32) -> Sums {\nvar r: Sums;\n",
        "return r;\n}\n",
        part,
        &|text, i| {
            let at = QUERIES * i;
            put!(
                text,
                "r.s{i} = s.s{i} * mine + keys[row + {at}u] * other;\n"
            );
        },
    );
    finish(text, part);
}

/// Prints what is done to each quad of a query's sums, of which a thread has some.
fn wide_sums(text: &mut String, part: u32) {
    list(text, "struct Sums {", "}\n", part, &|text, i| {
        put!(text, "s{i}: F, ");
    });
    list(
        text,
        "fn scaled(sums: Sums, by: f32) -> Sums {\nvar s = sums;\n",
        "return s;\n}\n",
        part,
        &|text, i| put!(text, "s.s{i} *= by;\n"),
    );
    list(
        text,
        "fn add(sums: Sums, w: F, at: U, step: u32) -> Sums {\nvar s = sums;\n",
        "return s;\n}\n",
        part,
        &|text, i| {
            for lane in ["x", "y", "z", "w"] {
                let at = 4 * i;
                put!(
                    text,
                    "s.s{i} = fma(F(w.{lane}), value(at.{lane} + {at}u * step, step, 4u), s.s{i});\n"
                );
            }
        },
    );
    finish(text, part);
}

/// Prints how sums go to the result.
fn finish(text: &mut String, part: u32) {
    list(
        text,
        "fn finish(to: u32, column: u32, s: Sums) {\n",
        "}",
        part,
        &|text, i| {
            let at = 4 * i;
            put!(
                text,
                "if column + {at}u < SIZE {{ store(to + column + {at}u, SIZE - column - {at}u, s.s{i}); }}\n"
            );
        },
    );
}

/// Prints where operands and sizes lie, and the functions that read and store up to four floats
/// of a head: as one vector of words, or float by float.
fn operands(stage: &Stage, layout: &Layout, of: &Attention) -> String {
    let (reads, result) = match of.is_quads {
        true => (Reads::Quads, "vec4<u32>"),
        false => (Reads::Single, "u32"),
    };
    let mut text = declare(stage, layout, reads, result);
    let stack = of.outer - 1;
    let strides = of.loads.map(|load| layout.strides[load as usize]);
    for (name, value) in [
        ("KEYS", layout.count),
        ("ROWS", layout.outer + stack - 1),
        ("QUERY_STEP", strides[0] + stack),
        ("KEY_STEP", strides[1] + stack),
        ("VALUE_STEP", strides[2] + stack),
        ("HEADS", of.heads),
        ("SHARING", of.sharing),
        ("SIZE", of.size),
        ("WIDTH", of.heads * of.size),
    ] {
        put!(&mut text, "const {name} = {value}u;\n");
    }
    put!(
        &mut text,
        "const CAUSAL = {};\nconst NEAR = {};\nconst REACH = {}u;\n",
        of.is_causal,
        of.window.is_some(),
        // No place is further away.
        of.window.unwrap_or_default().min(MAX_ELEMENTS)
    );
    put!(
        &mut text,
        "fn scale_of(entry: u32) -> f32 {{ return bitcast<f32>(segments[operand(entry, {}u) + {}u]); }}\n",
        layout.constants,
        match stage.scalars.first() {
            Some(Scalar::Constant(index)) => index,
            _ => unreachable!("a scale comes with the call"),
        }
    );
    let [_, k, v] = of.loads.map(|load| &stage.loads[load as usize]);
    text += &quads("quads_of_keys", [k, v]);
    text += "fn find_stack(entry: u32, stack: u32) -> vec3<u32> {\n";
    coordinates(&mut text, "c", "stack", stack, layout.outer);
    text += "return vec3<u32>(";
    for (load, strides) in of.loads.iter().zip(strides) {
        put!(&mut text, "operand(entry, {load}u)");
        for axis in 0..stack {
            put!(
                &mut text,
                " + c{axis} * operand(entry, {}u)",
                strides + axis
            );
        }
        text += ", ";
    }
    text += ");\n}\n";
    for (name, load) in ["query", "key", "value"].iter().zip(of.loads) {
        let load = &stage.loads[load as usize];
        let value = if of.is_quads {
            format!("bitcast<F>({})", quad(load, "at / 4u"))
        } else {
            let words = [0, 1, 2, 3].map(|i| single(load, &format!("at + {i}u * step")));
            let words = words.join(", ");
            format!("select(F(), bitcast<F>(U({words})), LANE < U(count))")
        };
        put!(
            &mut text,
            "fn {name}(at: u32, step: u32, count: u32) -> F {{ return {value}; }}\n"
        );
    }
    text += match of.is_quads {
        true => {
            "fn store(at: u32, count: u32, values: F) { output[at / 4u] = bitcast<U>(values); }\n"
        }
        // Behind a head lies another one, which other threads store.
        false => {
            "fn store(at: u32, count: u32, values: F) {\n\
             for (var i = 0u; i < min(count, 4u); i++) { output[at + i] = bitcast<u32>(values[i]); }\n\
             }\n"
        }
    };
    text
}
