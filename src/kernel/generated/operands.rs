//! Prints how operands are read: the types of bindings, and functions that read the bits of
//! floats, however these are packed. The CPU twin is `tensor::Packing`.

use super::super::caller_fn::Lanes;
use crate::program::{Load, Stage};
use crate::tensor::Packing;

/// How many elements of an operand a kernel reads at once.
#[derive(Clone, Copy)]
pub(super) enum Reads {
    /// One element.
    Single,
    /// Four neighbors, from a multiple of four on.
    Quads,
    /// Four neighbors as [`Reads::Quads`] has them, and also four elements from any places.
    Four,
}

impl Reads {
    /// How many elements a kernel that reads like this computes at once.
    pub(super) fn lanes(self) -> Lanes {
        match self {
            Reads::Single => Lanes::One,
            Reads::Quads | Reads::Four => Lanes::Four,
        }
    }

    /// The type of a binding's elements.
    pub(super) fn words(self, packing: Option<Packing>) -> &'static str {
        match (self, packing) {
            (Reads::Single, _) | (_, Some(Packing::Int8 | Packing::Int4)) => "u32",
            (_, Some(Packing::F16 | Packing::Bf16)) => "vec2<u32>",
            (_, None) => "vec4<u32>",
        }
    }
}

/// Prints the functions that read operands whose elements are not read by indexing alone.
pub(super) fn readers(text: &mut String, stage: &Stage, reads: Reads) {
    for binding in 0..stage.bindings() {
        let reader = match (stage.packing(binding as u32), reads) {
            (None, Reads::Single | Reads::Quads) => continue,
            (None, Reads::Four) => PLAIN,
            (Some(Packing::F16), Reads::Single) => F16,
            (Some(Packing::F16), _) => F16_FOUR,
            (Some(Packing::Bf16), Reads::Single) => BF16,
            (Some(Packing::Bf16), _) => BF16_FOUR,
            (Some(Packing::Int8), Reads::Single) => INT8,
            (Some(Packing::Int8), _) => INT8_FOUR,
            (Some(Packing::Int4), Reads::Single) => INT4,
            (Some(Packing::Int4), _) => INT4_FOUR,
        };
        *text += &reader.replace('#', &binding.to_string());
    }
}

/// A function that bounds the quads of the smaller of two operands.
pub(super) fn quads(name: &str, operands: [&Load; 2]) -> String {
    let [a, b] = operands.map(|load| {
        let length = format!("arrayLength(&in{})", load.binding);
        // An element of a binding holds at most a quad, but for a word of eight numbers.
        match load.packing {
            Some(Packing::Int4) => format!("2u * {length}"),
            None | Some(Packing::F16 | Packing::Bf16 | Packing::Int8) => length,
        }
    });
    format!("fn {name}() -> u32 {{ return min({a}, {b}); }}\n")
}

/// An expression of the bits of four neighbors, the quad of this number.
pub(super) fn quad(load: &Load, number: &str) -> String {
    let binding = load.binding;
    match load.packing {
        _ if load.is_in_place() => format!("output[{number}]"),
        Some(_) => format!("quad{binding}({number})"),
        None => format!("in{binding}[{number}]"),
    }
}

/// An expression of the bits of one element, for kernels that read single elements.
pub(super) fn single(load: &Load, at: &str) -> String {
    let binding = load.binding;
    match load.packing {
        Some(_) => format!("read{binding}({at})"),
        None => format!("in{binding}[{at}]"),
    }
}

const PLAIN: &str = "fn read#(at: U) -> U {
return U(in#[at.x / 4u][at.x % 4u], in#[at.y / 4u][at.y % 4u], in#[at.z / 4u][at.z % 4u], in#[at.w / 4u][at.w % 4u]);
}
";

const F16: &str = "fn read#(at: u32) -> u32 {
return bitcast<u32>(unpack2x16float(in#[at / 2u] >> (at % 2u * 16u)).x);
}
";

const F16_FOUR: &str = "fn quad#(i: u32) -> U {
let w = in#[i];
return bitcast<U>(F(unpack2x16float(w.x), unpack2x16float(w.y)));
}
fn read#(at: U) -> U {
let b = at / 2u % 2u;
let w = U(in#[at.x / 4u][b.x], in#[at.y / 4u][b.y], in#[at.z / 4u][b.z], in#[at.w / 4u][b.w]);
let h = (w >> (at % 2u * 16u)) & U(0xffffu);
return bitcast<U>(F(unpack2x16float(h.x | (h.y << 16u)), unpack2x16float(h.z | (h.w << 16u))));
}
";

const BF16: &str = "fn read#(at: u32) -> u32 {
return (in#[at / 2u] >> (at % 2u * 16u)) << 16u;
}
";

const BF16_FOUR: &str = "fn quad#(i: u32) -> U {
let w = in#[i];
return U(w.x << 16u, w.x & 0xffff0000u, w.y << 16u, w.y & 0xffff0000u);
}
fn read#(at: U) -> U {
let b = at / 2u % 2u;
let w = U(in#[at.x / 4u][b.x], in#[at.y / 4u][b.y], in#[at.z / 4u][b.z], in#[at.w / 4u][b.w]);
return (w >> (at % 2u * 16u)) << U(16u);
}
";

// The products with the scale and with the power of two are exact, so that the order of the
// factors changes no bit.
const INT8: &str = "fn read#(at: u32) -> u32 {
let q = i32(in#[at / 4u + at / 64u] << (24u - at % 4u * 8u)) >> 24u;
let s = in#[at / 64u * 17u + 16u] >> (at / 32u % 2u * 16u);
return bitcast<u32>(f32(q) * unpack2x16float(s).x * 0.0078125);
}
";

const INT8_FOUR: &str = "fn quad#(i: u32) -> U {
let q = vec4<i32>(U(in#[i + i / 16u]) << U(24u, 16u, 8u, 0u)) >> U(24u);
let s = in#[i / 16u * 17u + 16u] >> (i / 8u % 2u * 16u);
return bitcast<U>(F(q) * unpack2x16float(s).x * 0.0078125);
}
fn read#(at: U) -> U {
let p = at / 4u + at / 64u;
let q = vec4<i32>(U(in#[p.x], in#[p.y], in#[p.z], in#[p.w]) << (24u - at % 4u * 8u)) >> U(24u);
let b = at / 64u * 17u + 16u;
let s = (U(in#[b.x], in#[b.y], in#[b.z], in#[b.w]) >> (at / 32u % 2u * 16u)) & U(0xffffu);
let f = F(unpack2x16float(s.x | (s.y << 16u)), unpack2x16float(s.z | (s.w << 16u)));
return bitcast<U>(F(q) * f * 0.0078125);
}
";

const INT4: &str = "fn read#(at: u32) -> u32 {
let q = i32((in#[at / 8u + at / 64u] >> (at % 8u * 4u)) & 15u) - 8;
let s = in#[at / 64u * 9u + 8u] >> (at / 32u % 2u * 16u);
return bitcast<u32>(f32(q) * unpack2x16float(s).x * 0.0078125);
}
";

const INT4_FOUR: &str = "fn quad#(i: u32) -> U {
let q = vec4<i32>((U(in#[i / 2u + i / 16u] >> (i % 2u * 16u)) >> U(0u, 4u, 8u, 12u)) & U(15u)) - 8;
let s = in#[i / 16u * 9u + 8u] >> (i / 8u % 2u * 16u);
return bitcast<U>(F(q) * unpack2x16float(s).x * 0.0078125);
}
fn read#(at: U) -> U {
let p = at / 8u + at / 64u;
let q = vec4<i32>((U(in#[p.x], in#[p.y], in#[p.z], in#[p.w]) >> (at % 8u * 4u)) & U(15u)) - 8;
let b = at / 64u * 9u + 8u;
let s = (U(in#[b.x], in#[b.y], in#[b.z], in#[b.w]) >> (at / 32u % 2u * 16u)) & U(0xffffu);
let f = F(unpack2x16float(s.x | (s.y << 16u)), unpack2x16float(s.z | (s.w << 16u)));
return bitcast<U>(F(q) * f * 0.0078125);
}
";
