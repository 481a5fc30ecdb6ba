// Attention of heads that are longer than what a thread holds of a query in registers, generated: fusion fills the hole.
// As in attention.wgsl scores are never in memory, and sums are scaled to the largest score so far.
// Grid: one workgroup per 32 queries of a head, by the segment table. Two threads share a query: of a tile of keys each
// scores every other four, and then adds all values, each in its half of the floats. Queries, keys and values are read
// where they lie, the same keys and values by all threads of a workgroup at the same time. The order of summation depends
// on the number of keys alone.

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

const LANE   = vec4<u32>(0u, 1u, 2u, 3u);
const LOWEST = -3.4e38;
const FOURS  = 4u; // Groups of four keys in a tile.

// HOLE, with an example in it: one head of 8 floats.
const WORDS      = 12u; // Words of an entry behind the address of the result.
const KEYS       = 4u;  // The word of the number of keys.
const ROWS       = 5u;  // The word of the number of queries.
const QUERY_STEP = 6u;  // The words of the first of two strides.
const KEY_STEP   = 8u;
const VALUE_STEP = 10u;
const HEADS      = 1u;
const SHARING    = 1u; // Heads of queries that share a head of keys.
const SIZE       = 8u; // Floats of a head.
const WIDTH      = 8u; // Floats of all heads.
const CAUSAL     = false;
const NEAR       = false; // Whether a query attends to no key further away than `REACH`.
const REACH      = 0u;
const QUADS      = 2u; // Quads of a head.
const PART       = 1u; // Quads of values that a thread sums at a time.

@group(0) @binding(0) var<storage, read>       in0:      array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<u32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

fn quads_of_keys() -> u32 { return arrayLength(&in0); }
fn find_stack(entry: u32, stack: u32) -> vec3<u32> {
    return vec3<u32>(operand(entry, 0u), operand(entry, 1u), operand(entry, 2u));
}
fn scale_of(entry: u32) -> f32 { return bitcast<f32>(segments[operand(entry, 3u)]); }
fn query(at: u32, step: u32, count: u32) -> F { return bitcast<F>(in0[at / 4u]); }
fn key(at: u32, step: u32, count: u32) -> F { return bitcast<F>(in0[at / 4u]); }
fn value(at: u32, step: u32, count: u32) -> F { return bitcast<F>(in0[at / 4u]); }
fn store(at: u32, count: u32, values: F) { output[at / 4u] = bitcast<U>(values); }

struct Sums { s0: F }

// Adds to the scores of four keys.
fn biased(w: F, entry: u32, at: Head, row: u32, key: u32) -> F { return w; }
fn scaled(sums: Sums, by: f32) -> Sums {
    var s = sums;
    s.s0 *= by;
    return s;
}
// Adds four values, whose floats of this thread begin at these words, by their weights.
fn add(sums: Sums, w: F, at: U, step: u32) -> Sums {
    var s = sums;
    s.s0 = fma(F(w.x), value(at.x + 0u * step, step, 4u), s.s0);
    s.s0 = fma(F(w.y), value(at.y + 0u * step, step, 4u), s.s0);
    s.s0 = fma(F(w.z), value(at.z + 0u * step, step, 4u), s.s0);
    s.s0 = fma(F(w.w), value(at.w + 0u * step, step, 4u), s.s0);
    return s;
}
fn finish(to: u32, column: u32, s: Sums) {
    if column + 0u < SIZE { store(to + column + 0u, SIZE - column - 0u, s.s0); }
}
// END

// The scores of a tile, and then their weights: of four keys for each query.
var<workgroup> weights: array<vec4<f32>, FOURS * QUERIES>;

fn sum_of(v: F) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// The words of four rows from this one on. Behind the last row there is the last row again, whose weight is 0.
fn rows_of(first: u32, row: u32, rows: u32, step: u32) -> U {
    return U(first) + min(U(row) + LANE, U(rows - 1u)) * step;
}

// The products of a query with four keys.
fn scores(query_at: u32, at: Head, first: u32) -> F {
    let k = rows_of(at.key, first, at.keys, at.key_step.x);
    let step = at.key_step.y;
    var a = F(); var b = F(); var c = F(); var d = F();
    for (var i = 0u; i < SIZE; i += 4u) {
        let x = query(query_at + i * at.query_step.y, at.query_step.y, SIZE - i);
        let s = k + i * step;
        a = fma(x, key(s.x, step, SIZE - i), a); b = fma(x, key(s.y, step, SIZE - i), b);
        c = fma(x, key(s.z, step, SIZE - i), c); d = fma(x, key(s.w, step, SIZE - i), d);
    }
    return F(sum_of(a), sum_of(b), sum_of(c), sum_of(d));
}

fn compute(entry: u32, number: u32, lane: u32) {
    let at = find_head(entry, number);
    let scale = scale_of(entry);
    let row = lane % QUERIES;
    let turn = lane / QUERIES;
    let start = first_seen(at, at.row);
    let end = seen(at, at.row + QUERIES - 1u);
    let nearest = U(first_seen(at, at.row + row));
    let limit = U(seen(at, at.row + row));
    // A thread without a query computes the first query again, and stores nothing.
    let is_there = row < at.rows - at.row;
    let query_at = at.query + select(0u, row, is_there) * at.query_step.x;
    for (var part = 0u; part < QUADS; part += 2u * PART) {
        let column = (part + turn * PART) * 4u;
        let value_at = at.value + column * at.value_step.y;
        var largest = LOWEST;
        var total = 0.0;
        var s = Sums();
        for (var first = start; first < end; first += 4u * FOURS) {
            workgroupBarrier();
            for (var i = turn; i < FOURS; i += 2u) {
                let key = first + 4u * i;
                let own = biased(scores(query_at, at, key) * scale, entry, at, row, key);
                let near = (U(key) + LANE >= nearest) & (U(key) + LANE < limit);
                weights[i * QUERIES + row] = select(F(LOWEST), own, near);
            }
            workgroupBarrier();
            var top = F(LOWEST);
            for (var i = 0u; i < FOURS; i++) { top = max(top, weights[i * QUERIES + row]); }
            let before = largest;
            largest = max(before, max(max(top.x, top.y), max(top.z, top.w)));
            // Of no key so far there is nothing to scale.
            let decay = select(exp(before - largest), 0.0, total == 0.0);
            total *= decay;
            s = scaled(s, decay);
            for (var i = 0u; i < min(FOURS, (end - first + 3u) / 4u); i++) {
                let key = first + 4u * i;
                let near = (U(key) + LANE >= nearest) & (U(key) + LANE < limit);
                let w = select(F(), exp(weights[i * QUERIES + row] - largest), near);
                total += sum_of(w);
                s = add(s, w, rows_of(value_at, key, at.keys, at.value_step.x), at.value_step.y);
            }
        }
        if is_there { finish(at.result + row * WIDTH, column, scaled(s, 1.0 / total)); }
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
