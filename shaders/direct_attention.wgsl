// Attention without workgroup memory, generated: what `attention.wgsl` is for GPUs, this is for processors.
// Grid: one workgroup per 32 queries of a head, by the segment table. A thread has 4 of the queries, and takes 8 keys
// at a time from the first to the last; the other threads are idle. Sums lie in the result, where the thread's own
// elements are, because software GPUs take long to compile what keeps much in registers.

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

const LANE = vec4<u32>(0u, 1u, 2u, 3u);
const LOWEST = -3.4e38;
const ROWS_AT_ONCE = 4u;
const KEYS_AT_ONCE = 8u;

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
fn load(at: u32, count: u32) -> F { return bitcast<F>(output[at / 4u]); }
fn store(at: u32, count: u32, values: F) { output[at / 4u] = bitcast<U>(values); }
// END

// Adds to what lies in the result, scaled; in front of the first keys nothing does.
fn add(at: u32, count: u32, decay: f32, is_first: bool, more: F) {
    store(at, count, select(load(at, count) * decay, F(), is_first) + more);
}

fn largest_of(a: F, b: F) -> f32 {
    let v = max(a, b);
    return max(max(v.x, v.y), max(v.z, v.w));
}

fn attend(at: Head, row: u32, scale: f32) {
    let rows = min(at.rows - at.row - row, ROWS_AT_ONCE);
    // Queries and keys behind the last are the last once more, and count nothing.
    let q = at.query + (row + min(LANE, U(rows - 1u))) * at.query_step.x;
    let first_row = at.row + row;
    let limit = U(seen(at, first_row), seen(at, first_row + 1u), seen(at, first_row + 2u), seen(at, first_row + 3u));
    let to = at.result + row * WIDTH;
    var largest = F(LOWEST);
    var sum = F();
    for (var first = 0u; first < limit.w; first += KEYS_AT_ONCE) {
        let near = first + LANE;
        let far = near + 4u;
        let near_key = min(near, U(at.keys - 1u));
        let far_key = min(far, U(at.keys - 1u));
        let k = at.key + near_key * at.key_step.x;
        let l = at.key + far_key * at.key_step.x;
        var s0 = F(); var s1 = F(); var s2 = F(); var s3 = F();
        var t0 = F(); var t1 = F(); var t2 = F(); var t3 = F();
        for (var i = 0u; i < SIZE; i += 4u) {
            let count = SIZE - i;
            let step = at.query_step.y;
            let a = query(q.x + i * step, step, count);
            let b = query(q.y + i * step, step, count);
            let c = query(q.z + i * step, step, count);
            let d = query(q.w + i * step, step, count);
            let next = at.key_step.y;
            let j = i * next;
            let x = key(k.x + j, next, count);
            let y = key(k.y + j, next, count);
            let z = key(k.z + j, next, count);
            let w = key(k.w + j, next, count);
            s0 += F(dot(a, x), dot(a, y), dot(a, z), dot(a, w));
            s1 += F(dot(b, x), dot(b, y), dot(b, z), dot(b, w));
            s2 += F(dot(c, x), dot(c, y), dot(c, z), dot(c, w));
            s3 += F(dot(d, x), dot(d, y), dot(d, z), dot(d, w));
            let e = key(l.x + j, next, count);
            let f = key(l.y + j, next, count);
            let g = key(l.z + j, next, count);
            let h = key(l.w + j, next, count);
            t0 += F(dot(a, e), dot(a, f), dot(a, g), dot(a, h));
            t1 += F(dot(b, e), dot(b, f), dot(b, g), dot(b, h));
            t2 += F(dot(c, e), dot(c, f), dot(c, g), dot(c, h));
            t3 += F(dot(d, e), dot(d, f), dot(d, g), dot(d, h));
        }
        s0 = select(F(LOWEST), s0 * scale, near < U(limit.x));
        s1 = select(F(LOWEST), s1 * scale, near < U(limit.y));
        s2 = select(F(LOWEST), s2 * scale, near < U(limit.z));
        s3 = select(F(LOWEST), s3 * scale, near < U(limit.w));
        t0 = select(F(LOWEST), t0 * scale, far < U(limit.x));
        t1 = select(F(LOWEST), t1 * scale, far < U(limit.y));
        t2 = select(F(LOWEST), t2 * scale, far < U(limit.z));
        t3 = select(F(LOWEST), t3 * scale, far < U(limit.w));
        let top = F(largest_of(s0, t0), largest_of(s1, t1), largest_of(s2, t2), largest_of(s3, t3));
        // Every query sees the first key, so what is largest so far is a score.
        let before = select(largest, top, first == 0u);
        largest = max(before, top);
        let decay = exp(before - largest);
        s0 = select(F(), exp(s0 - largest.x), near < U(limit.x));
        s1 = select(F(), exp(s1 - largest.y), near < U(limit.y));
        s2 = select(F(), exp(s2 - largest.z), near < U(limit.z));
        s3 = select(F(), exp(s3 - largest.w), near < U(limit.w));
        t0 = select(F(), exp(t0 - largest.x), far < U(limit.x));
        t1 = select(F(), exp(t1 - largest.y), far < U(limit.y));
        t2 = select(F(), exp(t2 - largest.z), far < U(limit.z));
        t3 = select(F(), exp(t3 - largest.w), far < U(limit.w));
        let one = F(1.0);
        sum = sum * decay + F(dot(s0 + t0, one), dot(s1 + t1, one), dot(s2 + t2, one), dot(s3 + t3, one));
        let v = at.value + near_key * at.value_step.x;
        let u = at.value + far_key * at.value_step.x;
        for (var i = 0u; i < SIZE; i += 4u) {
            let count = SIZE - i;
            let step = at.value_step.y;
            let x = value(v.x + i * step, step, count);
            let y = value(v.y + i * step, step, count);
            let z = value(v.z + i * step, step, count);
            let w = value(v.w + i * step, step, count);
            let e = value(u.x + i * step, step, count);
            let f = value(u.y + i * step, step, count);
            let g = value(u.z + i * step, step, count);
            let h = value(u.w + i * step, step, count);
            let is_first = first == 0u;
            add(to + i, count, decay.x, is_first, s0.x * x + s0.y * y + s0.z * z + s0.w * w + t0.x * e + t0.y * f + t0.z * g + t0.w * h);
            if rows > 1u { add(to + WIDTH + i, count, decay.y, is_first, s1.x * x + s1.y * y + s1.z * z + s1.w * w + t1.x * e + t1.y * f + t1.z * g + t1.w * h); }
            if rows > 2u { add(to + 2u * WIDTH + i, count, decay.z, is_first, s2.x * x + s2.y * y + s2.z * z + s2.w * w + t2.x * e + t2.y * f + t2.z * g + t2.w * h); }
            if rows > 3u { add(to + 3u * WIDTH + i, count, decay.w, is_first, s3.x * x + s3.y * y + s3.z * z + s3.w * w + t3.x * e + t3.y * f + t3.z * g + t3.w * h); }
        }
    }
    for (var i = 0u; i < rows; i++) {
        for (var j = 0u; j < SIZE; j += 4u) {
            let place = to + i * WIDTH + j;
            store(place, SIZE - j, load(place, SIZE - j) / sum[i]);
        }
    }
}

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
    if at.row + row < at.rows { attend(at, row, scale_of(thread.entry)); }
}
