//! Attention as WGSL: what reads queries, keys and values, and the sums of each
//! part of a head. Scores and weights are in the templates.

use super::operands::{Reads, quad, single};
use super::{coordinates, declare};
use crate::plan::fuse::{Attention, Layout, Scalar, Stage};

/// Floats of a head that a workgroup sums at a time.
const FLOATS: u32 = 32;

/// The hole of the template for GPUs; that of the other ends with the operands.
pub(super) fn body(stage: &Stage, layout: &Layout, of: &Attention) -> String {
    let mut text = operands(stage, layout, of);
    text += "fn compute(entry: u32, number: u32, lane: u32) {\n\
        let at = find_head(entry, number);\n\
        let end = seen(at, at.row + QUERIES - 1u);\n\
        var p = Progress();\n";
    text += "let scale = scale_of(entry);\n";
    let parts = of.size.div_ceil(FLOATS);
    for part in 0..parts {
        put!(&mut text, "var s{part} = Four();\n");
    }
    text += "for (var first = 0u; first < end; first += KEYS_AT_ONCE) {\n\
        p = weigh(p, at, vec2<u32>(first, lane), scale);\n";
    for part in 0..parts {
        put!(
            &mut text,
            "put_values(at, first, {part}u, lane);\ns{part} = sum(s{part}, p.decay, lane);\n"
        );
    }
    text += "}\nlet total = total_of(p, lane);\n";
    for part in 0..parts {
        put!(&mut text, "finish(at, {part}u, lane, s{part}, total);\n");
    }
    text + "}"
}

/// Where things lie, and what reads and stores four floats of a head of which
/// so many are left: a vector of words, or each by itself.
pub(super) fn operands(stage: &Stage, layout: &Layout, of: &Attention) -> String {
    let (reads, result) = match of.is_quads {
        true => (Reads::Quads, "vec4<u32>"),
        false => (Reads::Single, "u32"),
    };
    let mut text = declare(stage, layout, (reads, result));
    let stack = of.outer - 1;
    let strides = of.loads.map(|load| layout.strides[load as usize]);
    for (name, value) in [
        ("KEYS", layout.count),
        ("ROWS", layout.outer + stack - 1),
        ("QUERY_STEP", strides[0] + stack),
        ("KEY_STEP", strides[1] + stack),
        ("VALUE_STEP", strides[2] + stack),
        ("HEADS", of.heads),
        ("SIZE", of.size),
        ("WIDTH", of.heads * of.size),
    ] {
        put!(&mut text, "const {name} = {value}u;\n");
    }
    put!(&mut text, "const CAUSAL = {};\n", of.is_causal);
    put!(
        &mut text,
        "fn scale_of(entry: u32) -> f32 {{ return bitcast<f32>(segments[operand(entry, {}u) + {}u]); }}\n",
        layout.constants,
        match stage.scalars.first() {
            Some(Scalar::Constant(index)) => index,
            _ => unreachable!("a scale is a number of the call"),
        }
    );
    text += "fn find_stack(entry: u32, stack: u32) -> vec3<u32> {\n";
    coordinates(&mut text, ("c", "stack"), (stack, layout.outer));
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
            "fn load(at: u32, count: u32) -> F { return bitcast<F>(output[at / 4u]); }\n\
             fn store(at: u32, count: u32, values: F) { output[at / 4u] = bitcast<U>(values); }\n"
        }
        // What lies behind a head is another thread's.
        false => {
            "fn load(at: u32, count: u32) -> F {\n\
             let i = at + min(LANE, U(count - 1u));\n\
             return bitcast<F>(U(output[i.x], output[i.y], output[i.z], output[i.w]));\n\
             }\n\
             fn store(at: u32, count: u32, values: F) {\n\
             for (var i = 0u; i < min(count, 4u); i++) { output[at + i] = bitcast<u32>(values[i]); }\n\
             }\n"
        }
    };
    text
}
