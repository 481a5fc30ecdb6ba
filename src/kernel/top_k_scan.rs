//! Prints the part of the scan kernel that compares queries with a vector: how the vector is
//! unpacked, and a sum for each query. The rest of the kernel is `shaders/top_k_scan.wgsl`.

use crate::graph::searching::{Scan, elements};
use crate::tensor::Packing;

/// The WGSL source of the kernel, without libraries.
pub(super) fn source(scan: &Scan) -> String {
    let (before, after) = shader!("top_k_scan")
        .split_once('$')
        .expect("the shader has one hole");
    [before, &compare(scan), after].join("\n")
}

/// The text of the hole: a loop for one query and a loop for a group of queries, which compute
/// the same sum for each query.
fn compare(scan: &Scan) -> String {
    let queries = scan.queries();
    let mut text = String::new();
    put!(
        &mut text,
        "const LISTS = {queries}u;\nconst LIST = {}u;\n\
        fn compare(entry: u32, at: u32, lane: u32) {{\n\
        let quads = quads_of(entry);\n\
        let scale = bitcast<f32>(page[at + lane / 4u][lane % 4u]);\n",
        scan.list()
    );
    for query in 0..queries {
        put!(
            &mut text,
            "let q{query} = operand(entry, QUERY + {}u) / 4u;\nvar s{query} = F();\n",
            2 * query
        );
    }
    text += "if operand(entry, COUNT) == 1u {\n";
    sums(&mut text, scan, 1);
    text += "} else {\n";
    sums(&mut text, scan, queries);
    text += "}\n";
    for query in 0..queries {
        let sum = format!("((s{query}.x + s{query}.y) + (s{query}.z + s{query}.w))");
        let score = match (scan.is_distance, scan.packing) {
            (true, _) => format!("-{sum}"),
            (false, Some(Packing::Int8)) => format!("scale * {sum}"),
            (false, _) => sum,
        };
        put!(
            &mut text,
            "scores[{query}u * WORKGROUP + lane] = {score};\n"
        );
    }
    text + "}"
}

/// Prints the loop over a vector's quads, for so many queries.
fn sums(text: &mut String, scan: &Scan, queries: u32) {
    let quads = elements(scan.packing) / 4;
    put!(
        text,
        "for (var j = 0u; j < quads; j++) {{\nlet w = page[at + HEADER + j * BLOCK + lane];\n"
    );
    for quad in 0..quads {
        let value = match scan.packing {
            None => "bitcast<F>(w)".into(),
            Some(Packing::F16) => {
                let (a, b) = (2 * quad, 2 * quad + 1);
                format!("F(unpack2x16float(w[{a}]), unpack2x16float(w[{b}]))")
            }
            Some(Packing::Bf16) => {
                let (a, b) = (2 * quad, 2 * quad + 1);
                format!(
                    "bitcast<F>(vec4<u32>(w[{a}] << 16u, w[{a}] & 0xffff0000u, w[{b}] << 16u, w[{b}] & 0xffff0000u))"
                )
            }
            Some(Packing::Int8 | Packing::Int4) => format!(
                "F(bitcast<vec4<i32>>(vec4<u32>(w[{quad}]) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u))"
            ),
        };
        put!(text, "let v{quad} = {value};\n");
    }
    for query in 0..queries {
        for quad in 0..quads {
            let of_query = format!("bitcast<F>(calls[q{query} + {quads}u * j + {quad}u])");
            match (scan.is_distance, scan.packing) {
                (false, _) => {
                    put!(text, "s{query} = fma(v{quad}, {of_query}, s{query});\n");
                    continue;
                }
                (true, Some(Packing::Int8)) => put!(
                    text,
                    "let d{query}_{quad} = fma(v{quad}, F(scale), -{of_query});\n"
                ),
                (true, _) => put!(text, "let d{query}_{quad} = v{quad} - {of_query};\n"),
            }
            put!(
                text,
                "s{query} = fma(d{query}_{quad}, d{query}_{quad}, s{query});\n"
            );
        }
    }
    *text += "}\n";
}
