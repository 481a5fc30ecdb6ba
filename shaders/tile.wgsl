// A product of matrices in tiles, generated: fusion fills the holes.
// Grid: one workgroup per tile, by the segment table, where a tile counts as 64 threads; `direct_tile.wgsl` is the
// same for processors. A thread of a large tile sums 8 rows of 4 columns, one of a small tile 4 rows of a column,
// each element from the first step to the last, so that both give the same bits. Small tiles are for what has few:
// large ones would leave most of a GPU idle, and each walks along the steps with many more barriers.

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

const STEPS = 16u;
const SMALL_STEPS = 64u;
const THREADS_OF_TILE = 128u;
const QUADS = 16u;      // Of a row of `steps`: a step of a large tile, two of a small one,
const SMALL_QUADS = 8u; // which has so many.

// Of a large tile 16 steps of the left factor, then of the right one: for each step a row of the tile's 64 rows or
// columns. Of a small tile 64 steps of the right factor. In two dimensions, so that an index is checked once and not in
// each step.
var<workgroup> steps: array<array<vec4<f32>, QUADS>, 2u * STEPS>;

// Of a small tile the left factor: for each row 64 steps. Threads side by side sum the columns of the same rows, so what
// they read here is one quad for all of them.
var<workgroup> rows: array<array<vec4<f32>, SMALL_STEPS / 4u>, SMALL_ROWS>;

// HOLE, with an example in it: [m, k] x [k, n], nothing in front or behind.
const TILE          = 64u; // Rows and columns of a large tile.
const SMALL_ROWS    = 16u; // Of a small one
const SMALL_COLUMNS = 32u;
const FEW_TILES     = 48u; // Matrices of at most so many large tiles have small ones instead.
const WORDS        = 14u; // Words of an entry behind the result's.
const COUNT        = 2u;  // Of these, the one that holds how many products are summed,
const ROWS         = 3u;  // rows of the product,
const COLUMNS      = 4u;  // columns,
const LEFT_ROW     = 6u;  // the strides of the left factor along rows
const LEFT_STEP    = 8u;  // and steps,
const RIGHT_COLUMN = 11u; // those of the right one along columns
const RIGHT_STEP   = 12u; // and steps.
const LEFT_ACROSS  = false; // Whether neighbors are those along the rows, not the steps;
const RIGHT_ACROSS = true;  // along the columns.

@group(0) @binding(0) var<storage, read>       in0:      array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> output:   array<u32>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

fn read0(at: U) -> U {
    return U(in0[at.x / 4u][at.x % 4u], in0[at.y / 4u][at.y % 4u], in0[at.z / 4u][at.z % 4u], in0[at.w / 4u][at.w % 4u]);
}
fn left_start(entry: u32, stack: u32) -> u32 { return operand(entry, 0u); }
fn right_start(entry: u32, stack: u32) -> u32 { return operand(entry, 1u); }
fn left(at: U) -> U { return read0(at); }
fn right(at: U) -> U { return read0(at); }
fn left_quad(i: u32) -> U { return in0[i]; }
fn right_quad(i: u32) -> U { return in0[i]; }
fn finish(entry: u32, stack: u32, row: u32, column: u32, r0: F) {
    let at = result(entry) + row * operand(entry, COLUMNS) + column;
    for (var i = 0u; i < 4u && column + i < operand(entry, COLUMNS); i++) { output[at + i] = bitcast<u32>(r0[i]); }
}
// END

// Four values of a factor, `step` apart; zeros behind the `count` that there are.
fn left_values(at: u32, step: u32, count: u32) -> F {
    return select(F(), bitcast<F>(left(at + LANE * step)), LANE < U(count));
}

fn right_values(at: u32, step: u32, count: u32) -> F {
    return select(F(), bitcast<F>(right(at + LANE * step)), LANE < U(count));
}

// Four neighbors, or zeros.
fn left_next(at: u32, is_there: bool) -> F { return select(F(), bitcast<F>(left_quad(at / 4u)), is_there); }
fn right_next(at: u32, is_there: bool) -> F { return select(F(), bitcast<F>(right_quad(at / 4u)), is_there); }

// How many of four values there are at a place.
fn remaining(is_across: bool, at: vec2<u32>, limit: vec2<u32>) -> u32 {
    if at.x >= limit.x || at.y >= limit.y { return 0u; }
    return select(limit.y - at.y, limit.x - at.x, is_across);
}

// Where the four values of quad `i` of a factor are: along rows or columns (x), and along steps (y). A line of the
// tile has `quads`.
fn place(is_across: bool, i: u32, quads: u32) -> vec2<u32> {
    if is_across { return vec2<u32>(i % quads * 4u, i / quads); }
    return vec2<u32>(i / quads, i % quads * 4u);
}

// Puts four values of a factor where the sums of a large tile read them.
fn put(factor: u32, is_across: bool, at: vec2<u32>, values: F) {
    let row = factor + at.y;
    let quad = at.x / 4u;
    if is_across {
        steps[row][quad] = values;
        return;
    }
    steps[row][quad][at.x % 4u]      = values.x;
    steps[row + 1u][quad][at.x % 4u] = values.y;
    steps[row + 2u][quad][at.x % 4u] = values.z;
    steps[row + 3u][quad][at.x % 4u] = values.w;
}

// Puts four values of the left factor where the sums of a small tile read them,
fn put_left(at: vec2<u32>, values: F) {
    let quad = at.y / 4u;
    if !LEFT_ACROSS {
        rows[at.x][quad] = values;
        return;
    }
    rows[at.x][quad][at.y % 4u]      = values.x;
    rows[at.x + 1u][quad][at.y % 4u] = values.y;
    rows[at.x + 2u][quad][at.y % 4u] = values.z;
    rows[at.x + 3u][quad][at.y % 4u] = values.w;
}

// and of the right one.
fn put_right(at: vec2<u32>, values: F) {
    let row = at.y / 2u;
    let quad = at.y % 2u * SMALL_QUADS + at.x / 4u;
    if RIGHT_ACROSS {
        steps[row][quad] = values;
        return;
    }
    steps[row][quad][at.x % 4u]                    = values.x;
    steps[row][quad + SMALL_QUADS][at.x % 4u]      = values.y;
    steps[row + 1u][quad][at.x % 4u]               = values.z;
    steps[row + 1u][quad + SMALL_QUADS][at.x % 4u] = values.w;
}

// Whether a factor's values can be read by quads: every four neighbors are one in memory, up to the last.
// `limit` is how many rows or columns there are, and steps. The same for a workgroup.
fn is_whole(is_across: bool, start: u32, strides: vec2<u32>, limit: vec2<u32>) -> bool {
    let near = select(strides.y, strides.x, is_across);
    let far = select(strides.x, strides.y, is_across);
    let length = select(limit.y, limit.x, is_across);
    return near == 1u && (start | far | length) % 4u == 0u;
}

// How far from the start a thread reads: of what is behind the last row or column, and wanted by nobody, the last one.
fn offset(is_across: bool, is_whole: bool, at: vec2<u32>, strides: vec2<u32>, limit: vec2<u32>) -> u32 {
    let last = limit.x - select(1u, 4u, is_across);
    return dot(vec2<u32>(select(at.x, min(at.x, last), is_whole), at.y), strides);
}

fn sum_many(count: u32, at: Tile, thread: u32) -> array<F, 8> {
    let tx = thread % QUADS;
    let ty = thread / QUADS;
    let left_limit = vec2<u32>(at.size.x - at.row, count);
    let left_step = select(at.left_step.y, at.left_step.x, LEFT_ACROSS);
    let left_is_whole = is_whole(LEFT_ACROSS, at.left, at.left_step, left_limit);
    let right_limit = vec2<u32>(at.size.y - at.column, count);
    let right_step = select(at.right_step.y, at.right_step.x, RIGHT_ACROSS);
    let right_is_whole = is_whole(RIGHT_ACROSS, at.right, at.right_step, right_limit);
    // A thread brings two quads of each factor.
    let left_quads = select(STEPS, TILE, LEFT_ACROSS) / 4u;
    let right_quads = select(STEPS, TILE, RIGHT_ACROSS) / 4u;
    let l = place(LEFT_ACROSS, thread, left_quads);
    let m = place(LEFT_ACROSS, thread + THREADS_OF_TILE, left_quads);
    let r = place(RIGHT_ACROSS, thread, right_quads);
    let q = place(RIGHT_ACROSS, thread + THREADS_OF_TILE, right_quads);
    var l_at = at.left + offset(LEFT_ACROSS, left_is_whole, l, at.left_step, left_limit);
    var m_at = at.left + offset(LEFT_ACROSS, left_is_whole, m, at.left_step, left_limit);
    var r_at = at.right + offset(RIGHT_ACROSS, right_is_whole, r, at.right_step, right_limit);
    var q_at = at.right + offset(RIGHT_ACROSS, right_is_whole, q, at.right_step, right_limit);
    var s0 = F(); var s1 = F(); var s2 = F(); var s3 = F();
    var s4 = F(); var s5 = F(); var s6 = F(); var s7 = F();
    for (var step = 0u; step < count; step += STEPS) {
        var lv: F; var mv: F; var rv: F; var qv: F;
        let done = vec2<u32>(0u, step);
        let is_full = step + STEPS <= count;
        if left_is_whole && is_full {
            lv = bitcast<F>(left_quad(l_at / 4u));
            mv = bitcast<F>(left_quad(m_at / 4u));
        } else {
            lv = left_values(l_at, left_step, remaining(LEFT_ACROSS, l + done, left_limit));
            mv = left_values(m_at, left_step, remaining(LEFT_ACROSS, m + done, left_limit));
        }
        if right_is_whole && is_full {
            rv = bitcast<F>(right_quad(r_at / 4u));
            qv = bitcast<F>(right_quad(q_at / 4u));
        } else {
            rv = right_values(r_at, right_step, remaining(RIGHT_ACROSS, r + done, right_limit));
            qv = right_values(q_at, right_step, remaining(RIGHT_ACROSS, q + done, right_limit));
        }
        l_at += at.left_step.y * STEPS;
        m_at += at.left_step.y * STEPS;
        r_at += at.right_step.y * STEPS;
        q_at += at.right_step.y * STEPS;
        put(0u, LEFT_ACROSS, l, lv);
        put(0u, LEFT_ACROSS, m, mv);
        put(STEPS, RIGHT_ACROSS, r, rv);
        put(STEPS, RIGHT_ACROSS, q, qv);
        workgroupBarrier();
        // HOLE, with an example in it: what is filled in is written out, because compilers do not.
        for (var k = 0u; k < STEPS; k++) {
            let b = steps[STEPS + k][tx];
            let a = steps[k][ty * 2u];
            let c = steps[k][ty * 2u + 1u];
            s0 = fma(F(a.x), b, s0);
            s1 = fma(F(a.y), b, s1);
            s2 = fma(F(a.z), b, s2);
            s3 = fma(F(a.w), b, s3);
            s4 = fma(F(c.x), b, s4);
            s5 = fma(F(c.y), b, s5);
            s6 = fma(F(c.z), b, s6);
            s7 = fma(F(c.w), b, s7);
        }
        // END
        workgroupBarrier();
    }
    return array(s0, s1, s2, s3, s4, s5, s6, s7);
}

fn sum_few(count: u32, at: Tile, thread: u32) -> F {
    let tx = thread % SMALL_COLUMNS / 4u;
    let lane = thread % 4u;
    let ty = thread / SMALL_COLUMNS * 4u;
    let left_limit = vec2<u32>(at.size.x - at.row, count);
    let left_step = select(at.left_step.y, at.left_step.x, LEFT_ACROSS);
    let right_limit = vec2<u32>(at.size.y - at.column, count);
    let right_step = select(at.right_step.y, at.right_step.x, RIGHT_ACROSS);
    let is_whole = is_whole(LEFT_ACROSS, at.left, at.left_step, left_limit)
        && is_whole(RIGHT_ACROSS, at.right, at.right_step, right_limit);
    // A thread brings two quads of the left factor and four of the right one.
    let left_quads = select(SMALL_STEPS, SMALL_ROWS, LEFT_ACROSS) / 4u;
    let right_quads = select(SMALL_STEPS, SMALL_COLUMNS, RIGHT_ACROSS) / 4u;
    let l = place(LEFT_ACROSS, thread, left_quads);
    let m = place(LEFT_ACROSS, thread + THREADS_OF_TILE, left_quads);
    let o = place(RIGHT_ACROSS, thread, right_quads);
    let p = place(RIGHT_ACROSS, thread + THREADS_OF_TILE, right_quads);
    let q = place(RIGHT_ACROSS, thread + 2u * THREADS_OF_TILE, right_quads);
    let r = place(RIGHT_ACROSS, thread + 3u * THREADS_OF_TILE, right_quads);
    let l_at = at.left + offset(LEFT_ACROSS, true, l, at.left_step, left_limit);
    let m_at = at.left + offset(LEFT_ACROSS, true, m, at.left_step, left_limit);
    let o_at = at.right + offset(RIGHT_ACROSS, true, o, at.right_step, right_limit);
    let p_at = at.right + offset(RIGHT_ACROSS, true, p, at.right_step, right_limit);
    let q_at = at.right + offset(RIGHT_ACROSS, true, q, at.right_step, right_limit);
    let r_at = at.right + offset(RIGHT_ACROSS, true, r, at.right_step, right_limit);
    var s0 = 0.0; var s1 = 0.0; var s2 = 0.0; var s3 = 0.0;
    for (var step = 0u; step < count; step += SMALL_STEPS) {
        if is_whole {
            let far = vec2<u32>(at.left_step.y, at.right_step.y) * step;
            let lv = left_next(l_at + far.x, l.y + step < count);
            let mv = left_next(m_at + far.x, m.y + step < count);
            let ov = right_next(o_at + far.y, o.y + step < count);
            let pv = right_next(p_at + far.y, p.y + step < count);
            let qv = right_next(q_at + far.y, q.y + step < count);
            let rv = right_next(r_at + far.y, r.y + step < count);
            put_left(l, lv);
            put_left(m, mv);
            put_right(o, ov);
            put_right(p, pv);
            put_right(q, qv);
            put_right(r, rv);
        } else {
            for (var i = thread; i < 2u * THREADS_OF_TILE; i += THREADS_OF_TILE) {
                let to = place(LEFT_ACROSS, i, left_quads);
                let source = to + vec2<u32>(0u, step);
                let there = remaining(LEFT_ACROSS, source, left_limit);
                put_left(to, left_values(at.left + dot(source, at.left_step), left_step, there));
            }
            for (var i = thread; i < 4u * THREADS_OF_TILE; i += THREADS_OF_TILE) {
                let to = place(RIGHT_ACROSS, i, right_quads);
                let source = to + vec2<u32>(0u, step);
                let there = remaining(RIGHT_ACROSS, source, right_limit);
                put_right(to, right_values(at.right + dot(source, at.right_step), right_step, there));
            }
        }
        workgroupBarrier();
        // Padded with as many zeros as for a large tile: one more would make 0 of a sum of -0. Behind the last row
        // there is nothing to sum.
        let end = select(0u, min(SMALL_STEPS, count - step), at.row + ty < at.size.x);
        for (var k = 0u; k < end; k += STEPS) {
            // HOLE, with an example in it, as above.
            for (var i = k; i < k + STEPS; i++) {
                let b = steps[i / 2u][i % 2u * SMALL_QUADS + tx][lane];
                s0 = fma(rows[ty][i / 4u][i % 4u], b, s0);
                s1 = fma(rows[ty + 1u][i / 4u][i % 4u], b, s1);
                s2 = fma(rows[ty + 2u][i / 4u][i % 4u], b, s2);
                s3 = fma(rows[ty + 3u][i / 4u][i % 4u], b, s3);
            }
            // END
        }
        workgroupBarrier();
    }
    // What follows takes four columns of a row.
    steps[ty][tx][lane]      = s0;
    steps[ty + 1u][tx][lane] = s1;
    steps[ty + 2u][tx][lane] = s2;
    steps[ty + 3u][tx][lane] = s3;
    workgroupBarrier();
    return steps[thread / SMALL_QUADS][thread % SMALL_QUADS];
}

fn compute(entry: u32, tile: u32, thread: u32) {
    let count = operand(entry, COUNT);
    let at = find_tile(entry, tile);
    var sums: array<F, 8>;
    var line = thread / QUADS * 8u;
    var lines = 8u;
    var column = thread % QUADS * 4u;
    if at.is_small {
        sums[0] = sum_few(count, at, thread);
        line = thread / SMALL_QUADS;
        lines = 1u;
        column = thread % SMALL_QUADS * 4u;
    } else {
        sums = sum_many(count, at, thread);
    }
    let row = at.row + line;
    for (var i = 0u; i < lines && row + i < at.size.x; i++) {
        finish(entry, at.stack, row + i, at.column + column, sums[i]);
    }
}

@compute @workgroup_size(THREADS_OF_TILE)
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
