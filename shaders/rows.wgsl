// Rows that are folded to values which their elements may use, generated: fusion fills the hole.
// Grid: one thread per row of a call, by the segment table. A thread folds value by value; `wide_rows.wgsl` is for long
// rows.

alias F = f32;
alias U = u32;
alias B = bool;

const LANES = 1u;

fn fold_sum(lane: u32, value: f32) -> f32 { return value; }
fn fold_max(lane: u32, value: u32) -> u32 { return value; }
fn fold_min(lane: u32, value: u32) -> u32 { return value; }

// HOLE, with an example in it: the sums of rows.
const WORDS = 4u; // Words of an entry behind the address of the result.

@group(0) @binding(0) var<storage, read>       in0:      array<u32>;
@group(0) @binding(6) var<storage, read_write> output:   array<u32>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

fn compute(entry: u32, row: u32, lane: u32) {
    let n = operand(entry, 1u);
    let b0 = operand(entry, 0u) + row * operand(entry, 2u);
    var a0 = 0.0;
    for (var j = lane; j < n; j += LANES) {
        a0 += bitcast<f32>(in0[b0 + j * operand(entry, 3u)]);
    }
    let r0 = fold_sum(lane, a0);
    if lane == 0u { output[result(entry) + row] = bitcast<u32>(r0); }
}
// END

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, WORDS);
    if thread.idle { return; }
    compute(thread.entry, thread.index, 0u);
}
