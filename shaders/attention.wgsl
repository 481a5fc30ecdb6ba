// Attention, softmax(q kT * scale + bias) v for each head of a row, generated: fusion fills the hole. Scores are never in
// memory: the scores of four keys are computed, and the sums so far are scaled to the largest score so far (Dao, Fu,
// Ermon, Rudra and Re, FlashAttention, 2022, algorithm 1; Milakov and Gimelshein, Online normalizer calculation for
// softmax, 2018, algorithm 3).
// Grid: one workgroup per 32 queries of a head, by the segment table. Two threads share a query, which both hold in
// registers. Each takes every other four keys, which all threads read from workgroup memory at the same time; at the end
// the two sums become one. The order of summation depends on the number of keys and on the place of the query alone.

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

const LANE  = vec4<u32>(0u, 1u, 2u, 3u);
const LOWEST = -3.4e38;
const EACH = 4u;  // Keys that a thread takes at a time.
const BOTH = 8u;  // Keys that both threads of a query take at a time.

// HOLE, with an example in it: one head of 4 floats.
const WORDS      = 12u; // Words of an entry behind the address of the result.
const KEYS       = 4u;  // The word of the number of keys.
const ROWS       = 5u;  // The word of the number of queries.
const QUERY_STEP = 6u;  // The words of the first of two strides.
const KEY_STEP   = 8u;
const VALUE_STEP = 10u;
const HEADS      = 1u;
const SHARING    = 1u; // Heads of queries that share a head of keys.
const SIZE       = 4u; // Floats of a head.
const WIDTH      = 4u; // Floats of all heads.
const CAUSAL     = false;
const NEAR       = false; // Whether a query attends to no key further away than `REACH`.
const REACH      = 0u;
const QUADS      = 1u;  // Quads of a head.
const PART       = 1u;  // Quads of values that are summed at a time.
const TILE       = 32u; // Keys that are in workgroup memory at a time.

@group(0) @binding(0) var<storage, read>       in0:      array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<u32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

var<workgroup> keys:   array<vec4<f32>, 64>;
var<workgroup> values: array<vec4<f32>, 64>;

fn quads_of_keys() -> u32 { return arrayLength(&in0); }
fn find_stack(entry: u32, stack: u32) -> vec3<u32> {
    return vec3<u32>(operand(entry, 0u), operand(entry, 1u), operand(entry, 2u));
}
fn scale_of(entry: u32) -> f32 { return bitcast<f32>(segments[operand(entry, 3u)]); }
fn query(at: u32, step: u32, count: u32) -> F { return bitcast<F>(in0[at / 4u]); }
fn key(at: u32, step: u32, count: u32) -> F { return bitcast<F>(in0[at / 4u]); }
fn value(at: u32, step: u32, count: u32) -> F { return bitcast<F>(in0[at / 4u]); }
fn store(at: u32, count: u32, values: F) { output[at / 4u] = bitcast<U>(values); }

// Copies keys and a part of their values to workgroup memory. All loads come before the first store.
fn put(at: Head, first: u32, part: u32, lane: u32) {
    let key0 = key_quad(at, first, lane + 0u);
    keys[lane + 0u] = key0;
    let value0 = value_quad(at, first, part, lane + 0u);
    values[lane + 0u] = value0;
}

struct Query { q0: F }
struct Sums { s0: F }

fn query_of(at: u32, step: u32) -> Query {
    var q: Query;
    q.q0 = query(at + 0u * step, step, SIZE - 0u);
    return q;
}
// The products of a query with four keys in workgroup memory.
fn scores(q: Query, at: u32) -> F {
    var a = F(); var b = F(); var c = F(); var d = F();
    a = fma(q.q0, keys[at + 0u], a); b = fma(q.q0, keys[at + 1u], b);
    c = fma(q.q0, keys[at + 2u], c); d = fma(q.q0, keys[at + 3u], d);
    return F(sum_of(a), sum_of(b), sum_of(c), sum_of(d));
}
// Adds to the scores of four keys.
fn biased(w: F, entry: u32, at: Head, row: u32, key: u32) -> F { return w; }
// Scales the sums so far, and adds four values by their weights.
fn add(sums: Sums, decay: f32, w: F, at: u32) -> Sums {
    var s = sums;
    s.s0 = fma(F(w.w), values[at + 3u], fma(F(w.z), values[at + 2u], fma(F(w.y), values[at + 1u], fma(F(w.x), values[at + 0u], s.s0 * decay))));
    return s;
}
// Leaves the sums of one thread of a query where the query's other thread reads them.
fn leave(s: Sums, row: u32) { keys[row + 0u] = s.s0; }
fn join(mine: f32, s: Sums, other: f32, row: u32) -> Sums {
    var r: Sums;
    r.s0 = s.s0 * mine + keys[row + 0u] * other;
    return r;
}
fn finish(to: u32, column: u32, s: Sums) {
    if column + 0u < SIZE { store(to + column + 0u, SIZE - column - 0u, s.s0); }
}
// END

fn sum_of(v: F) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// Four floats of a tile of keys, or of a part of their values. Behind the last key there are the last key's floats,
// whose weight is 0.
fn key_quad(at: Head, first: u32, i: u32) -> F {
    let row = min(first + i / QUADS, at.keys - 1u);
    let column = i % QUADS * 4u;
    return key(at.key + row * at.key_step.x + column * at.key_step.y, at.key_step.y, SIZE - column);
}
fn value_quad(at: Head, first: u32, part: u32, i: u32) -> F {
    let row = min(first + i / PART, at.keys - 1u);
    let column = min(part + i % PART, QUADS - 1u) * 4u;
    return value(at.value + row * at.value_step.x + column * at.value_step.y, at.value_step.y, SIZE - column);
}

fn compute(entry: u32, number: u32, lane: u32) {
    let at = find_head(entry, number);
    let scale = scale_of(entry);
    let row = lane % QUERIES;
    let turn = lane / QUERIES * EACH;
    let start = first_seen(at, at.row);
    let end = seen(at, at.row + QUERIES - 1u);
    let nearest = U(first_seen(at, at.row + row));
    let limit = U(seen(at, at.row + row));
    // A thread without a query computes the first query again, and stores nothing.
    let is_there = row < at.rows - at.row;
    let q = query_of(at.query + select(0u, row, is_there) * at.query_step.x, at.query_step.y);
    for (var part = 0u; part < QUADS; part += PART) {
        var largest = LOWEST;
        var total = 0.0;
        var s = Sums();
        for (var first = start; first < end; first += TILE) {
            workgroupBarrier();
            put(at, first, part, lane);
            workgroupBarrier();
            for (var i = turn; i < min(TILE, end - first); i += BOTH) {
                let key = U(first + i) + LANE;
                let near = (key >= nearest) & (key < limit);
                let own = biased(scores(q, i * QUADS) * scale, entry, at, row, first + i);
                var w = select(F(LOWEST), own, near);
                let before = largest;
                largest = max(before, max(max(w.x, w.y), max(w.z, w.w)));
                // Of no key so far there is nothing to scale.
                let decay = select(exp(before - largest), 0.0, total == 0.0);
                w = select(F(), exp(w - largest), near);
                total = total * decay + sum_of(w);
                s = add(s, decay, w, i * PART);
            }
        }
        workgroupBarrier();
        if turn > 0u {
            leave(s, row);
            values[row] = F(largest, total, 0.0, 0.0);
        }
        workgroupBarrier();
        if turn == 0u && is_there {
            let other = values[row];
            let most = max(largest, other.x);
            let mine = select(exp(largest - most), 0.0, total == 0.0);
            let theirs = select(exp(other.x - most), 0.0, other.y == 0.0);
            let all = total * mine + other.y * theirs;
            finish(at.result + row * WIDTH, part * 4u, join(mine / all, s, theirs / all, row));
        }
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    // Found from the workgroup alone, so that all threads of the workgroup meet at the barriers.
    let thread = find_thread(vec3<u32>(group.x * WORKGROUP, group.y, 0u), groups, WORDS);
    if thread.idle { return; }
    compute(thread.entry, thread.index / WORKGROUP, lane);
}
