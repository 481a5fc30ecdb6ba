// Attention without workgroup memory, generated: what `attention.wgsl` is for GPUs, this is for processors.
// Grid: one workgroup per 32 queries of a head, by the segment table. A thread has a few of the queries and takes the
// keys one by one, from the first to the last.

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

const LANE = vec4<u32>(0u, 1u, 2u, 3u);
const LOWEST = -3.4e38;

// HOLE, with an example in it: one head of four floats, and of each thread only one query.
const WORDS      = 12u; // Words of an entry behind the result's.
const KEYS       = 4u;  // Of these, the one that holds the number of keys,
const ROWS       = 5u;  // of queries,
const QUERY_STEP = 6u;  // and the first of the two strides of each.
const KEY_STEP   = 8u;
const VALUE_STEP = 10u;
const HEADS      = 1u;
const SIZE       = 4u; // Floats of a head,
const WIDTH      = 4u; // and of all.
const CAUSAL     = false;
const ROWS_AT_ONCE = 1u;

@group(0) @binding(0) var<storage, read>       in0:      array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<u32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

fn find_stack(entry: u32, stack: u32) -> vec3<u32> {
    return vec3<u32>(operand(entry, 0u), operand(entry, 1u), operand(entry, 2u));
}
fn query(at: u32, step: u32, count: u32) -> F { return bitcast<F>(in0[at / 4u]); }
fn key(at: u32, step: u32, count: u32) -> F { return bitcast<F>(in0[at / 4u]); }
fn value(at: u32, step: u32, count: u32) -> F { return bitcast<F>(in0[at / 4u]); }
fn store(at: u32, count: u32, values: F) { output[at / 4u] = bitcast<U>(values); }
fn attend(entry: u32, at: Head, row: u32) {
    let scale = bitcast<f32>(segments[operand(entry, 3u)]);
    let q0 = query(at.query + row * at.query_step.x, 1u, 4u);
    var o0 = F();
    var p = F(LOWEST);
    var sum = F();
    for (var i = 0u; i < at.keys; i++) {
        let s = F(dot(q0, key(at.key + i * at.key_step.x, 1u, 4u)) * scale);
        let largest = max(p, s);
        let decay = decay_of(p, largest);
        let weight = weight_of(s, largest, B(true));
        p = largest;
        sum = sum * decay + weight;
        o0 = fma(F(weight.x), value(at.value + i * at.value_step.x, 1u, 4u), o0 * decay.x);
    }
    store(at.result + row * WIDTH, 4u, o0 / sum.x);
}
// END

// What sums so far are scaled by. Exactly 1 where nothing changes, whatever a device's exponential gives for 0.
fn decay_of(before: F, largest: F) -> F { return select(exp(before - largest), F(1.0), before == largest); }

fn weight_of(score: F, largest: F, is_seen: B) -> F { return select(F(), exp(score - largest), is_seen); }

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let thread = find_thread(vec3<u32>(group.x * WORKGROUP, group.y, 0u), groups, WORDS);
    if thread.idle || lane * ROWS_AT_ONCE >= QUERIES { return; }
    let at = find_head(thread.entry, thread.index / WORKGROUP);
    let row = lane * ROWS_AT_ONCE;
    if at.row + row < at.rows { attend(thread.entry, at, row); }
}
