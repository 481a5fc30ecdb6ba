// Attention without workgroup memory, generated: what `attention.wgsl` is for GPUs, this is for processors.
// Grid: one workgroup per 32 queries of a head, by the segment table. A thread has up to 8 of the queries, so that
// what it reads serves all of these, and takes the keys one by one, from the first to the last; the other threads are idle.

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

const LANE = vec4<u32>(0u, 1u, 2u, 3u);
const LOWEST = -3.4e38;

// HOLE, with an example in it: one head of four floats, and of each thread only its first query.
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
const ROWS_AT_ONCE = 4u;

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
    let limit = seen_from(at, at.row + row);
    var o0 = F();
    var largest = F(LOWEST);
    var sum = F();
    for (var i = 0u; i < limit.w; i++) {
        let is_seen = U(i) < limit;
        let s = select(F(LOWEST), F(dot(q0, key(at.key + i * at.key_step.x, 1u, 4u)) * scale), is_seen);
        if any(s > largest) {
            let most = max(largest, s);
            let decay = decay_of(largest, most);
            largest = most;
            sum *= decay;
            o0 *= decay.x;
        }
        let weight = weight_of(s, largest, is_seen);
        sum += weight;
        o0 = fma(F(weight.x), value(at.value + i * at.value_step.x, 1u, 4u), o0);
    }
    store(at.result + row * WIDTH, 4u, o0 / sum.x);
}
// END

// Keys that four queries see.
fn seen_from(at: Head, row: u32) -> U {
    return U(seen(at, row), seen(at, row + 1u), seen(at, row + 2u), seen(at, row + 3u));
}

// What sums so far are scaled by. Exactly 1 where nothing changes, whatever a device's exponential gives for 0.
fn decay_of(before: F, largest: F) -> F { return select(exp(before - largest), F(1.0), before == largest); }

fn weight_of(score: F, largest: F, is_seen: B) -> F { return select(F(), exp(score - largest), is_seen); }

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = lane * ROWS_AT_ONCE;
    if row >= QUERIES { return; }
    let thread = find_thread(vec3<u32>(group.x * WORKGROUP, group.y, 0u), groups, WORDS);
    if thread.idle { return; }
    let at = find_head(thread.entry, thread.index / WORKGROUP);
    if at.row + row < at.rows { attend(thread.entry, at, row); }
}
