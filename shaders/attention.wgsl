// Attention, softmax(q kT * scale) v for each head of a row, generated: fusion fills the hole. Scores are never in
// memory: a block of them is made, and what was summed before is scaled to the largest so far (Dao, Fu, Ermon, Rudra
// and Re, FlashAttention, 2022, algorithm 1; Milakov and Gimelshein, Online normalizer calculation for softmax, 2018,
// algorithm 3).
// Grid: one workgroup per 32 queries of a head, by the segment table; `direct_attention.wgsl` is the same for
// processors. A thread has 4 queries, and of each block of 32 keys and of each 32 floats of the values 4 too. Keys are
// taken from the first to the last whatever else is computed, so the order of sums depends on their number alone.

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

const LANE  = vec4<u32>(0u, 1u, 2u, 3u);
const KEYS_AT_ONCE = 32u;
const FLOATS = 32u;        // Floats of a head at a time, a part of it.
const QUADS = FLOATS / 4u;
const PITCH = QUADS + 1u;  // Quads of a row of workgroup memory: one more, so that threads read different banks.
const LOWEST = -3.4e38;

var<workgroup> queries: array<vec4<f32>, 288>;
var<workgroup> others:  array<vec4<f32>, 288>; // Keys, then values.
var<workgroup> weights: array<vec4<f32>, 288>; // Of a query those of keys i, i + 8, i + 16 and i + 24 in one quad.
var<workgroup> folds:   array<vec4<f32>, 64>;

// A value for each of a thread's four queries, ty, ty + 8, ty + 16 and ty + 24 of the block.
struct Four { a: F, b: F, c: F, d: F }

// HOLE, with an example in it: one head of 32 floats.
const WORDS      = 12u; // Words of an entry behind the result's.
const KEYS       = 4u;  // Of these, the one that holds the number of keys,
const ROWS       = 5u;  // of queries,
const QUERY_STEP = 6u;  // and the first of the two strides of each.
const KEY_STEP   = 8u;
const VALUE_STEP = 10u;
const HEADS      = 1u;
const SIZE       = 32u; // Floats of a head,
const WIDTH      = 32u; // and of all.
const CAUSAL     = false;

@group(0) @binding(0) var<storage, read>       in0:      array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<u32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

fn find_stack(entry: u32, stack: u32) -> vec3<u32> {
    return vec3<u32>(operand(entry, 0u), operand(entry, 1u), operand(entry, 2u));
}
fn scale_of(entry: u32) -> f32 { return bitcast<f32>(segments[operand(entry, 3u)]); }
fn query(at: u32, step: u32, count: u32) -> F { return bitcast<F>(in0[at / 4u]); }
fn key(at: u32, step: u32, count: u32) -> F { return bitcast<F>(in0[at / 4u]); }
fn value(at: u32, step: u32, count: u32) -> F { return bitcast<F>(in0[at / 4u]); }
fn store(at: u32, count: u32, values: F) { output[at / 4u] = bitcast<U>(values); }
fn compute(entry: u32, number: u32, lane: u32) {
    let at = find_head(entry, number);
    let scale = scale_of(entry);
    var p = Progress();
    var s0 = Four();
    for (var first = 0u; first < at.keys; first += KEYS_AT_ONCE) {
        p = weigh(p, at, vec2<u32>(first, lane), scale);
        put_values(at, first, 0u, lane);
        s0 = sum(s0, p.decay, lane);
    }
    let total = total_of(p, lane);
    finish(at, 0u, lane, s0, total);
}
// END

// What is known of a thread's queries: the largest score, the sum of this thread's weights, and what sums before the
// last block are to be scaled by.
struct Progress { largest: F, sum: F, decay: F }

fn put_queries(at: Head, part: u32, lane: u32) {
    for (var i = lane; i < QUERIES * QUADS; i += WORKGROUP) {
        let row = i / QUADS;
        let column = part * FLOATS + i % QUADS * 4u;
        var values = F();
        if at.row + row < at.rows && column < SIZE {
            values = query(at.query + row * at.query_step.x + column * at.query_step.y, at.query_step.y, SIZE - column);
        }
        queries[row * PITCH + i % QUADS] = values;
    }
}

fn put_keys(at: Head, first: u32, part: u32, lane: u32) {
    for (var i = lane; i < KEYS_AT_ONCE * QUADS; i += WORKGROUP) {
        let row = i / QUADS;
        let column = part * FLOATS + i % QUADS * 4u;
        var values = F();
        if first + row < at.keys && column < SIZE {
            values = key(at.key + (first + row) * at.key_step.x + column * at.key_step.y, at.key_step.y, SIZE - column);
        }
        others[row * PITCH + i % QUADS] = values;
    }
}

fn put_values(at: Head, first: u32, part: u32, lane: u32) {
    for (var i = lane; i < KEYS_AT_ONCE * QUADS; i += WORKGROUP) {
        let row = i / QUADS;
        let column = part * FLOATS + i % QUADS * 4u;
        var values = F();
        if first + row < at.keys && column < SIZE {
            values = value(at.value + (first + row) * at.value_step.x + column * at.value_step.y, at.value_step.y, SIZE - column);
        }
        others[row * PITCH + i % QUADS] = values;
    }
    workgroupBarrier();
}

// Products of a thread's queries with its keys tx, tx + 8, tx + 16 and tx + 24 of a block.
fn scores(at: Head, first: u32, lane: u32) -> Four {
    let tx = lane % QUADS;
    let ty = lane / QUADS;
    var s = Four();
    for (var part = 0u; part * FLOATS < SIZE; part++) {
        if part > 0u { workgroupBarrier(); }
        if SIZE > FLOATS || first == 0u { put_queries(at, part, lane); }
        put_keys(at, first, part, lane);
        workgroupBarrier();
        for (var i = 0u; i < min(QUADS, (SIZE - part * FLOATS + 3u) / 4u); i++) {
            let a = queries[ty * PITCH + i];
            let b = queries[(ty + 8u) * PITCH + i];
            let c = queries[(ty + 16u) * PITCH + i];
            let d = queries[(ty + 24u) * PITCH + i];
            let x = others[tx * PITCH + i];
            let y = others[(tx + 8u) * PITCH + i];
            let z = others[(tx + 16u) * PITCH + i];
            let w = others[(tx + 24u) * PITCH + i];
            s.a += F(dot(a, x), dot(a, y), dot(a, z), dot(a, w));
            s.b += F(dot(b, x), dot(b, y), dot(b, z), dot(b, w));
            s.c += F(dot(c, x), dot(c, y), dot(c, z), dot(c, w));
            s.d += F(dot(d, x), dot(d, y), dot(d, z), dot(d, w));
        }
    }
    return s;
}

fn largest_of(v: F) -> f32 { return max(max(v.x, v.y), max(v.z, v.w)); }

fn sum_of(v: F) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// Which of the keys a query sees.
fn seen_of(at: Head, row: u32, keys: U) -> B { return keys < U(seen(at, row)); }

// Weights of a block of keys; `step` is its first key, and the thread.
fn weigh(before: Progress, at: Head, step: vec2<u32>, scale: f32) -> Progress {
    let first = step.x;
    let lane = step.y;
    let tx = lane % QUADS;
    let ty = lane / QUADS;
    var s = scores(at, first, lane);
    let keys = U(first + tx) + 8u * LANE;
    let row = at.row + ty;
    let a = seen_of(at, row, keys);
    let b = seen_of(at, row + 8u, keys);
    let c = seen_of(at, row + 16u, keys);
    let d = seen_of(at, row + 24u, keys);
    s.a = select(F(LOWEST), s.a * scale, a);
    s.b = select(F(LOWEST), s.b * scale, b);
    s.c = select(F(LOWEST), s.c * scale, c);
    s.d = select(F(LOWEST), s.d * scale, d);
    folds[tx * 8u + ty] = F(largest_of(s.a), largest_of(s.b), largest_of(s.c), largest_of(s.d));
    workgroupBarrier();
    var top = folds[ty];
    for (var i = 1u; i < 8u; i++) { top = max(top, folds[i * 8u + ty]); }
    // Every query sees a key of the first block, so what is largest so far is a score.
    let most = select(before.largest, top, first == 0u);
    var p: Progress;
    p.largest = max(most, top);
    p.decay = exp(most - p.largest);
    s.a = select(F(), exp(s.a - p.largest.x), a);
    s.b = select(F(), exp(s.b - p.largest.y), b);
    s.c = select(F(), exp(s.c - p.largest.z), c);
    s.d = select(F(), exp(s.d - p.largest.w), d);
    p.sum = before.sum * p.decay + F(sum_of(s.a), sum_of(s.b), sum_of(s.c), sum_of(s.d));
    weights[ty * PITCH + tx] = s.a;
    weights[(ty + 8u) * PITCH + tx] = s.b;
    weights[(ty + 16u) * PITCH + tx] = s.c;
    weights[(ty + 24u) * PITCH + tx] = s.d;
    return p;
}

// Adds weights times values to what was summed before, four floats of each query.
fn sum(before: Four, decay: F, lane: u32) -> Four {
    let tx = lane % QUADS;
    let ty = lane / QUADS;
    var s = Four(before.a * decay.x, before.b * decay.y, before.c * decay.z, before.d * decay.w);
    for (var i = 0u; i < 8u; i++) {
        let a = weights[ty * PITCH + i];
        let b = weights[(ty + 8u) * PITCH + i];
        let c = weights[(ty + 16u) * PITCH + i];
        let d = weights[(ty + 24u) * PITCH + i];
        let x = others[i * PITCH + tx];
        let y = others[(i + 8u) * PITCH + tx];
        let z = others[(i + 16u) * PITCH + tx];
        let w = others[(i + 24u) * PITCH + tx];
        s.a = fma(F(a.w), w, fma(F(a.z), z, fma(F(a.y), y, fma(F(a.x), x, s.a))));
        s.b = fma(F(b.w), w, fma(F(b.z), z, fma(F(b.y), y, fma(F(b.x), x, s.b))));
        s.c = fma(F(c.w), w, fma(F(c.z), z, fma(F(c.y), y, fma(F(c.x), x, s.c))));
        s.d = fma(F(d.w), w, fma(F(d.z), z, fma(F(d.y), y, fma(F(d.x), x, s.d))));
    }
    workgroupBarrier();
    return s;
}

// The sums of all threads' weights.
fn total_of(p: Progress, lane: u32) -> F {
    let ty = lane / QUADS;
    folds[lane % QUADS * 8u + ty] = p.sum;
    workgroupBarrier();
    var total = folds[ty];
    for (var i = 1u; i < 8u; i++) { total += folds[i * 8u + ty]; }
    return total;
}

// Stores four floats of each query.
fn finish(at: Head, part: u32, lane: u32, s: Four, total: F) {
    let column = part * FLOATS + lane % QUADS * 4u;
    if column >= SIZE { return; }
    let row = lane / QUADS;
    let to = at.result + row * WIDTH + column;
    let count = SIZE - column;
    let left = at.rows - at.row;
    if row < left { store(to, count, s.a / total.x); }
    if row + 8u < left { store(to + 8u * WIDTH, count, s.b / total.y); }
    if row + 16u < left { store(to + 16u * WIDTH, count, s.c / total.z); }
    if row + 24u < left { store(to + 24u * WIDTH, count, s.d / total.w); }
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    // Found from the workgroup alone, so that all its threads meet at the barriers.
    let thread = find_thread(vec3<u32>(group.x * WORKGROUP, group.y, 0u), groups, WORDS);
    if thread.idle { return; }
    compute(thread.entry, thread.index / WORKGROUP, lane);
}
