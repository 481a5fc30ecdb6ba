// A product of matrices in tiles of 64 x 64, generated: fusion fills the holes.
// Grid: one workgroup per tile, by the segment table, where a tile counts as 64 threads. `small_tile.wgsl` is for products
// with few tiles. A thread sums 8 rows of 4 columns, each element from the first step to the last, as that kernel does:
// both give the same bits.

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

const STEPS = 16u;
const QUADS = 16u; // Quads in a line of `steps`.

// 16 steps of the left factor, then of the right one: for each step a line of the tile's 64 rows or columns. The array has
// two dimensions so that the compiler checks an index once and not in each step.
var<workgroup> steps: array<array<vec4<f32>, QUADS>, 2u * STEPS>;

// HOLE, with an example in it: [m, k] x [k, n], with no stack and no further operations.
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

// Puts four values of a factor where the sums read these.
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

fn compute(entry: u32, tile: u32, thread: u32) {
    let count = at_most(operand(entry, COUNT), quads_of_factors());
    let at = find_tile(entry, tile, vec2<u32>(TILE));
    // The quads of the thread's columns and of its first four rows; its other four rows are 32 rows below.
    let tx = thread % QUADS;
    let ty = thread / QUADS;
    let left_limit = vec2<u32>(at.size.x - at.row, count);
    let left_step = select(at.left_step.y, at.left_step.x, LEFT_ACROSS);
    let left_is_whole = is_whole(LEFT_ACROSS, at.left, at.left_step, left_limit);
    let right_limit = vec2<u32>(at.size.y - at.column, count);
    let right_step = select(at.right_step.y, at.right_step.x, RIGHT_ACROSS);
    let right_is_whole = is_whole(RIGHT_ACROSS, at.right, at.right_step, right_limit);
    // A thread copies two quads of each factor.
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
        // HOLE, with an example in it: the loop is unrolled in the text, because compilers do not unroll it.
        for (var k = 0u; k < STEPS; k++) {
            let b = steps[STEPS + k][tx];
            let a = steps[k][ty];
            let c = steps[k][ty + QUADS / 2u];
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
    var sums = array(s0, s1, s2, s3, s4, s5, s6, s7);
    for (var i = 0u; i < 8u; i++) {
        let row = at.row + (ty + i / 4u * (QUADS / 2u)) * 4u + i % 4u;
        if row < at.size.x { finish(entry, at.stack, row, at.column + tx * 4u, sums[i]); }
    }
}
