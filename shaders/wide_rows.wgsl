// Long rows that are folded to values which their elements may use, generated: fusion fills the hole.
// Grid: one workgroup per row of a call, by the segment table, whose blocks are multiples of a workgroup. Each thread
// folds every 64th value; then the upper half of the threads' values is folded onto the lower half, again and again.

alias F = f32;
alias U = u32;
alias B = bool;

const LANES = WORKGROUP;

var<workgroup> parts: array<f32, LANES>;
var<workgroup> keys: array<u32, LANES>;

fn fold_sum(lane: u32, value: f32) -> f32 {
    parts[lane] = value;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        if lane < half { parts[lane] += parts[lane + half]; }
        workgroupBarrier();
    }
    let folded = parts[0];
    workgroupBarrier();
    return folded;
}

fn fold_max(lane: u32, value: u32) -> u32 {
    keys[lane] = value;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        if lane < half { keys[lane] = max(keys[lane], keys[lane + half]); }
        workgroupBarrier();
    }
    let folded = keys[0];
    workgroupBarrier();
    return folded;
}

fn fold_min(lane: u32, value: u32) -> u32 { return ~fold_max(lane, ~value); }

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
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    // Found from the workgroup alone, so that all threads of the workgroup meet at the barriers.
    let thread = find_thread(vec3<u32>(group.x * WORKGROUP, group.y, 0u), groups, WORDS);
    if thread.idle { return; }
    compute(thread.entry, thread.index / LANES, lane);
}
