//! Maps as WGSL: four elements a thread.

use super::{coordinates, declare, scalars};
use crate::kernel::expr;
use crate::plan::fuse::{Access, Layout, Map, Stage};

pub(super) fn body(stage: &Stage, layout: &Layout, map: &Map) -> String {
    let result = if map.is_strided { "u32" } else { "vec4<u32>" };
    let mut text = declare(stage, layout, ("vec4<u32>", result));
    for binding in 0..stage.bindings() {
        let elements = ["x", "y", "z", "w"]
            .map(|lane| format!("in{binding}[at.{lane} / 4u][at.{lane} % 4u]"))
            .join(", ");
        put!(
            &mut text,
            "fn read{binding}(at: U) -> U {{ return U({elements}); }}\n"
        );
    }
    text += "fn compute(entry: u32, i: u32) {\n";
    if map.rank > 0 {
        let number = "(U(4u * i) + U(0u, 1u, 2u, 3u))";
        coordinates(&mut text, ("c", number), (map.rank, layout.outer));
    }
    for (load, of) in stage.loads.iter().enumerate() {
        let binding = of.binding;
        let address = format!("operand(entry, {load}u)");
        let strides = layout.strides[load];
        let at = place(&address, strides, map.rank);
        let value = match of.access {
            Access::Flat if of.is_in_place() => format!("output[{address} / 4u + i]"),
            Access::Flat => format!("in{binding}[{address} / 4u + i]"),
            Access::Strided => format!("read{binding}({at})"),
            Access::Indexed(index) => {
                let (step, limit) = (strides + map.rank, strides + map.rank + 1);
                put!(&mut text, "let x{load} = bitcast<U>(v{index});\n");
                let at = format!("{at} + x{load} * operand(entry, {step}u)");
                let is_outside = format!("x{load} >= U(operand(entry, {limit}u))");
                format!("select(read{binding}({at}), x{load} | U(0x7fc00000u), {is_outside})")
            }
        };
        put!(&mut text, "let v{load} = bitcast<F>({value});\n");
    }
    text += &scalars(stage, layout);
    let rows = stage.loads.len() + stage.scalars.len();
    let value = expr::print(&mut text, &map.value, ("t", rows));
    text += &if map.is_strided {
        store_parts(&value, layout, map.rank)
    } else {
        format!("output[result(entry) / 4u + i] = bitcast<U>({value});\n")
    };
    text + "}"
}

/// Four places, by the strides that begin at a word of the entry.
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

/// Stores the elements one by one: they lie apart, or beside those of others.
fn store_parts(value: &str, layout: &Layout, rank: u32) -> String {
    let at = place("result(entry)", layout.result, rank);
    let mut text = format!("let at = {at};\nlet bits = bitcast<U>({value});\n");
    put!(
        &mut text,
        "let count = operand(entry, {}u);\n",
        layout.count
    );
    for (lane, name) in ["x", "y", "z", "w"].iter().enumerate() {
        put!(
            &mut text,
            "if 4u * i + {lane}u < count {{ output[at.{name}] = bits.{name}; }}\n"
        );
    }
    text
}
