//! Attention as WGSL: what reads queries, keys and values, and the sums of each
//! part of a head. Scores and weights are in the templates.

use super::operands::{Reads, quad, single};
use super::{coordinates, declare};
use crate::plan::fuse::{Attention, Layout, Scalar, Stage};

/// Floats of a head that a workgroup sums at a time.
const FLOATS: u32 = 32;

/// The hole of the template for GPUs.
pub(super) fn body(stage: &Stage, layout: &Layout, of: &Attention) -> String {
    let mut text = operands(stage, layout, of);
    text += "fn compute(entry: u32, number: u32, lane: u32) {\n\
        let at = find_head(entry, number);\n\
        let end = seen(at, at.row + QUERIES - 1u);\n\
        var p = Progress();\n";
    put!(&mut text, "let scale = {};\n", scale(stage, layout));
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

/// The hole of the template for processors: a thread's queries and sums written
/// out, as many as processors keep near. Queries behind the last are the last
/// once more, and not stored.
pub(super) fn direct(stage: &Stage, layout: &Layout, of: &Attention) -> String {
    let mut text = operands(stage, layout, of);
    let quads = of.size.div_ceil(4);
    let direct = Direct {
        size: of.size,
        quads,
        rows: (32 / quads.next_power_of_two()).clamp(1, 4),
    };
    put!(&mut text, "const ROWS_AT_ONCE = {}u;\n", direct.rows);
    text += "fn attend(entry: u32, at: Head, row: u32) {\n\
        var largest = F(LOWEST); var sum = F();\n";
    put!(&mut text, "let scale = {};\n", scale(stage, layout));
    direct.begin(&mut text);
    direct.weigh(&mut text);
    direct.finish(&mut text);
    text
}

/// Names of the lanes of a vector, each of which is one of a thread's queries.
const LANES: [&str; 4] = ["x", "y", "z", "w"];

/// A thread's work: rows of queries, in quads of floats.
struct Direct {
    size: u32,
    quads: u32,
    rows: u32,
}

impl Direct {
    fn begin(&self, text: &mut String) {
        for row in 0..self.rows {
            put!(
                text,
                "let a{row} = at.query + min(row + {row}u, at.rows - at.row - 1u) * at.query_step.x;\n"
            );
            for quad in 0..self.quads {
                let query = self.read("query", &format!("a{row}"), quad);
                put!(
                    text,
                    "let q{row}_{quad} = {query} * scale; var o{row}_{quad} = F();\n"
                );
            }
        }
        let limits = self.each(|row| format!("seen(at, at.row + row + {row}u)"));
        put!(text, "let limit = U({limits});\n");
    }

    /// Takes one key after the other.
    fn weigh(&self, text: &mut String) {
        *text += "for (var i = 0u; i < limit.w; i++) {\n\
            let k = at.key + i * at.key_step.x; let v = at.value + i * at.value_step.x;\n";
        for row in 0..self.rows {
            put!(text, "var s{row} = F();\n");
        }
        for quad in 0..self.quads {
            put!(text, "let k{quad} = {};\n", self.read("key", "k", quad));
            for row in 0..self.rows {
                put!(text, "s{row} = fma(q{row}_{quad}, k{quad}, s{row});\n");
            }
        }
        let scores = self.each(|row| format!("dot(s{row}, F(1.0))"));
        put!(
            text,
            "let is_seen = U(i) < limit;\n\
             let s = select(F(LOWEST), F({scores}), is_seen);\n\
             let most = max(largest, s);\n\
             let decay = decay_of(largest, most);\n\
             let weight = weight_of(s, most, is_seen);\n\
             largest = most;\n\
             sum = sum * decay + weight;\n"
        );
        for quad in 0..self.quads {
            put!(text, "let v{quad} = {};\n", self.read("value", "v", quad));
            for (row, lane) in (0..self.rows).zip(LANES) {
                put!(
                    text,
                    "o{row}_{quad} = fma(F(weight.{lane}), v{quad}, o{row}_{quad} * decay.{lane});\n"
                );
            }
        }
        *text += "}\n";
    }

    fn finish(&self, text: &mut String) {
        for (row, lane) in (0..self.rows).zip(LANES) {
            put!(text, "if at.row + row + {row}u < at.rows {{\n");
            for quad in 0..self.quads {
                let (at, left) = (4 * quad, self.size - 4 * quad);
                put!(
                    text,
                    "store(at.result + (row + {row}u) * WIDTH + {at}u, {left}u, o{row}_{quad} / sum.{lane});\n"
                );
            }
            *text += "}\n";
        }
        *text += "}";
    }

    /// Reads four floats of a row that begins at a word.
    fn read(&self, name: &str, start: &str, quad: u32) -> String {
        let (at, left) = (4 * quad, self.size - 4 * quad);
        format!("{name}({start} + {at}u * at.{name}_step.y, at.{name}_step.y, {left}u)")
    }

    /// A value for each of a thread's queries; the last one fills the vector.
    fn each(&self, value: impl Fn(u32) -> String) -> String {
        [0, 1, 2, 3]
            .map(|row| value(self.rows.min(row + 1) - 1))
            .join(", ")
    }
}

/// Where things lie, and what reads and stores four floats of a head of which
/// so many are left: a vector of words, or each by itself.
fn operands(stage: &Stage, layout: &Layout, of: &Attention) -> String {
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
    text += "fn store(at: u32, count: u32, values: F) {\n";
    text += match of.is_quads {
        true => "output[at / 4u] = bitcast<U>(values);\n}\n",
        false => {
            "for (var i = 0u; i < min(count, 4u); i++) { output[at + i] = bitcast<u32>(values[i]); }\n}\n"
        }
    };
    text
}

/// The scale, which is the call's constant.
fn scale(stage: &Stage, layout: &Layout) -> String {
    let Some(Scalar::Constant(index)) = stage.scalars.first() else {
        unreachable!("a scale is a number of the call");
    };
    let constants = layout.constants;
    format!("bitcast<f32>(segments[operand(entry, {constants}u) + {index}u])")
}
