// A product of matrices in tiles of 16 x 32, generated: fusion fills the holes.
// For products with few tiles of 64 x 64, which would leave most of a GPU idle; with tiles this small there are more
// workgroups, and a fourth of the barriers. Grid: as in `tile.wgsl`. A thread sums 4 rows of a column, each element from
// the first step to the last.
// The example in the first hole stands in `tile.wgsl` too, so that each template is a whole shader to read and to test. One
// template cannot be both kernels: factors lie in workgroup memory in other ways, and other counts of quads are copied.

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

const STEPS = 64u;
const QUADS = 8u;    // Quads in a line of `steps`.

// 64 steps of the right factor: for each step a line of the tile's 32 columns.
var<workgroup> steps: array<array<Q, QUADS>, STEPS>;

// 64 steps of the left factor: for each row a line of 64 steps. Neighboring threads sum columns of the same rows, so
// that all of them read the same quad here.
var<workgroup> rows: array<array<Q, STEPS / 4u>, SMALL_ROWS>;

// The sums of the tile.
var<workgroup> sums: array<array<F, QUADS>, SMALL_ROWS>;

// HOLE, with an example in it: [m, k] x [k, n], with no stack and no further operations.
alias Q = vec4<f32>; // Four neighboring values of a factor in workgroup memory.
alias H = f32;       // One of them.

const WRITTEN       = 16u; // Steps that are written out in the second hole.
const TILE          = 64u; // Rows and columns of a large tile.
const SMALL_ROWS    = 16u; // Rows and columns of a small tile.
const SMALL_COLUMNS = 32u;
const WORDS         = 14u; // Words of an entry behind the address of the result.
const COUNT         = 2u;  // The word of how many products are summed.
const ROWS          = 3u;  // The word of the product's rows.
const COLUMNS       = 4u;  // The word of the product's columns.
const LEFT_ROW      = 6u;  // The word of the left factor's stride along rows.
const LEFT_STEP     = 8u;  // The word of the left factor's stride along steps.
const RIGHT_COLUMN  = 11u; // The word of the right factor's stride along columns.
const RIGHT_STEP    = 12u; // The word of the right factor's stride along steps.
const LEFT_ACROSS   = false; // Whether neighboring words are along rows, not steps.
const RIGHT_ACROSS  = true;  // Whether neighboring words are along columns, not steps.

@group(0) @binding(0) var<storage, read>       in0:      array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> output:   array<u32>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

fn read0(at: U) -> U {
    return U(in0[at.x / 4u][at.x % 4u], in0[at.y / 4u][at.y % 4u], in0[at.z / 4u][at.z % 4u], in0[at.w / 4u][at.w % 4u]);
}
fn quads_of_factors() -> u32 { return arrayLength(&in0); }
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

// Four neighboring values of the left factor, or zeros.
fn left_next(at: u32, is_there: bool) -> F { return select(F(), bitcast<F>(left_quad(at / 4u)), is_there); }
fn right_next(at: u32, is_there: bool) -> F { return select(F(), bitcast<F>(right_quad(at / 4u)), is_there); }

// Puts four values of the left factor where the sums read these.
fn put_left(at: vec2<u32>, values: F) {
    let quad = at.y / 4u;
    if !LEFT_ACROSS {
        rows[at.x][quad] = Q(values);
        return;
    }
    rows[at.x][quad][at.y % 4u]      = H(values.x);
    rows[at.x + 1u][quad][at.y % 4u] = H(values.y);
    rows[at.x + 2u][quad][at.y % 4u] = H(values.z);
    rows[at.x + 3u][quad][at.y % 4u] = H(values.w);
}

// Puts four values of the right factor where the sums read these.
fn put_right(at: vec2<u32>, values: F) {
    let quad = at.x / 4u;
    if RIGHT_ACROSS {
        steps[at.y][quad] = Q(values);
        return;
    }
    steps[at.y][quad][at.x % 4u]      = H(values.x);
    steps[at.y + 1u][quad][at.x % 4u] = H(values.y);
    steps[at.y + 2u][quad][at.x % 4u] = H(values.z);
    steps[at.y + 3u][quad][at.x % 4u] = H(values.w);
}

fn compute(entry: u32, tile: u32, thread: u32) {
    let count = at_most(operand(entry, COUNT), quads_of_factors());
    let at = find_tile(entry, tile, vec2<u32>(SMALL_ROWS, SMALL_COLUMNS));
    let tx = thread % SMALL_COLUMNS / 4u;
    let lane = thread % 4u;
    let ty = thread / SMALL_COLUMNS * 4u;
    let left_limit = vec2<u32>(at.size.x - at.row, count);
    let left_step = select(at.left_step.y, at.left_step.x, LEFT_ACROSS);
    let right_limit = vec2<u32>(at.size.y - at.column, count);
    let right_step = select(at.right_step.y, at.right_step.x, RIGHT_ACROSS);
    let is_whole = is_whole(LEFT_ACROSS, at.left, at.left_step, left_limit)
        && is_whole(RIGHT_ACROSS, at.right, at.right_step, right_limit);
    // A thread copies two quads of the left factor and four of the right one.
    let left_quads = select(STEPS, SMALL_ROWS, LEFT_ACROSS) / 4u;
    let right_quads = select(STEPS, SMALL_COLUMNS, RIGHT_ACROSS) / 4u;
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
    for (var step = 0u; step < count; step += STEPS) {
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
        // Padded with exactly as many zeros as in a large tile, because one more zero makes 0 of a sum of -0. Rows behind
        // the last one are not summed.
        let end = select(0u, min(STEPS, count - step), at.row + ty < at.size.x);
        for (var k = 0u; k < end; k += WRITTEN) {
            // HOLE, with an example in it: the loop is unrolled in the text, because compilers do not unroll it.
            for (var i = k; i < k + WRITTEN; i++) {
                let b = steps[i][tx][lane];
                s0 = fma(rows[ty][i / 4u][i % 4u], b, s0);
                s1 = fma(rows[ty + 1u][i / 4u][i % 4u], b, s1);
                s2 = fma(rows[ty + 2u][i / 4u][i % 4u], b, s2);
                s3 = fma(rows[ty + 3u][i / 4u][i % 4u], b, s3);
            }
            // END
        }
        workgroupBarrier();
    }
    // `finish` stores four columns of a row.
    sums[ty][tx][lane]      = s0;
    sums[ty + 1u][tx][lane] = s1;
    sums[ty + 2u][tx][lane] = s2;
    sums[ty + 3u][tx][lane] = s3;
    workgroupBarrier();
    let row = at.row + thread / QUADS;
    let quad = thread % QUADS;
    if row < at.size.x { finish(entry, at.stack, row, at.column + quad * 4u, sums[thread / QUADS][quad]); }
}
