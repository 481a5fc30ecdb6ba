// A product of matrices in tiles of 64 x 64 whose factors are 16-bit floats, generated: fusion fills the holes. 32 steps
// are summed in 16 bits, and these sums in 32, by `small_tile.wgsl` too: both give the same bits.
// Grid and sums are those of `tile.wgsl`. The factors lie in workgroup memory along their steps, as most products have
// them in memory, so that quads are copied as they are; 16 bits leave the registers that a thread needs for quads of all
// its rows and columns. On an H200 this is a third faster than the layout of `tile.wgsl` in 16 bits; in 32 bits it is
// slower (benches/record/2026-11-28-nvidia-h200-tiles-of-halves.txt).

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

const STEPS = 32u;
const QUADS = 9u;  // Quads of a line: those of 32 steps, and one that keeps lines on different banks of memory.
const APART = 17u; // Lines from a thread's column to its next one, likewise.

var<workgroup> rows:    array<array<Q, QUADS>, TILE>;
var<workgroup> columns: array<array<Q, QUADS>, 4u * APART>;

// HOLE, with an example in it: [m, k] x [k, n], with no stack and no further operations.
alias Q = vec4<f32>; // Four neighboring values of a factor in workgroup memory.
alias H = f32;       // One of them.

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

// The line of a column: neighbors of a quad of columns are `APART`, and a thread sums one such quad.
fn line_of(column: u32) -> u32 { return column % 4u * APART + column / 4u; }

// Puts four values of the left factor where the sums read these.
fn put_left(at: vec2<u32>, values: Q) {
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

// Puts four values of the right factor where the sums read these.
fn put_right(at: vec2<u32>, values: Q) {
    let line = line_of(at.x);
    let quad = at.y / 4u;
    if !RIGHT_ACROSS {
        columns[line][quad] = values;
        return;
    }
    columns[line][quad][at.y % 4u]              = values.x;
    columns[line + APART][quad][at.y % 4u]      = values.y;
    columns[line + 2u * APART][quad][at.y % 4u] = values.z;
    columns[line + 3u * APART][quad][at.y % 4u] = values.w;
}

// The place in a tile of the quad of this number.
fn left_place(number: u32) -> vec2<u32> { return place(LEFT_ACROSS, number, select(STEPS, TILE, LEFT_ACROSS) / 4u); }
fn right_place(number: u32) -> vec2<u32> { return place(RIGHT_ACROSS, number, select(STEPS, TILE, RIGHT_ACROSS) / 4u); }

fn compute(entry: u32, tile: u32, thread: u32) {
    let count = at_most(operand(entry, COUNT), quads_of_factors());
    let at = find_tile(entry, tile, vec2<u32>(TILE));
    // The quad of the thread's columns, and its first four rows; its other four rows are 32 rows below.
    let tx = thread % (TILE / 4u);
    let ty = thread / (TILE / 4u) * 4u;
    let left_limit = vec2<u32>(at.size.x - at.row, count);
    let left_step = select(at.left_step.y, at.left_step.x, LEFT_ACROSS);
    let right_limit = vec2<u32>(at.size.y - at.column, count);
    let right_step = select(at.right_step.y, at.right_step.x, RIGHT_ACROSS);
    let is_whole = is_whole(LEFT_ACROSS, at.left, at.left_step, left_limit)
        && is_whole(RIGHT_ACROSS, at.right, at.right_step, right_limit);
    // A thread copies four quads of each factor.
    let l0 = left_place(thread);
    let l1 = left_place(thread + THREADS_OF_TILE);
    let l2 = left_place(thread + 2u * THREADS_OF_TILE);
    let l3 = left_place(thread + 3u * THREADS_OF_TILE);
    let r0 = right_place(thread);
    let r1 = right_place(thread + THREADS_OF_TILE);
    let r2 = right_place(thread + 2u * THREADS_OF_TILE);
    let r3 = right_place(thread + 3u * THREADS_OF_TILE);
    let lefts = at.left + U(
        offset(LEFT_ACROSS, true, l0, at.left_step, left_limit), offset(LEFT_ACROSS, true, l1, at.left_step, left_limit),
        offset(LEFT_ACROSS, true, l2, at.left_step, left_limit), offset(LEFT_ACROSS, true, l3, at.left_step, left_limit),
    );
    let rights = at.right + U(
        offset(RIGHT_ACROSS, true, r0, at.right_step, right_limit), offset(RIGHT_ACROSS, true, r1, at.right_step, right_limit),
        offset(RIGHT_ACROSS, true, r2, at.right_step, right_limit), offset(RIGHT_ACROSS, true, r3, at.right_step, right_limit),
    );
    var s0 = F(); var s1 = F(); var s2 = F(); var s3 = F();
    var s4 = F(); var s5 = F(); var s6 = F(); var s7 = F();
    for (var step = 0u; step < count; step += STEPS) {
        if is_whole && step + STEPS <= count {
            let l = (lefts + at.left_step.y * step) / 4u;
            let r = (rights + at.right_step.y * step) / 4u;
            let lv0 = bitcast<F>(left_quad(l.x));
            let lv1 = bitcast<F>(left_quad(l.y));
            let lv2 = bitcast<F>(left_quad(l.z));
            let lv3 = bitcast<F>(left_quad(l.w));
            let rv0 = bitcast<F>(right_quad(r.x));
            let rv1 = bitcast<F>(right_quad(r.y));
            let rv2 = bitcast<F>(right_quad(r.z));
            let rv3 = bitcast<F>(right_quad(r.w));
            put_left(l0, Q(lv0));
            put_left(l1, Q(lv1));
            put_left(l2, Q(lv2));
            put_left(l3, Q(lv3));
            put_right(r0, Q(rv0));
            put_right(r1, Q(rv1));
            put_right(r2, Q(rv2));
            put_right(r3, Q(rv3));
        } else {
            for (var i = thread; i < 4u * THREADS_OF_TILE; i += THREADS_OF_TILE) {
                let to = left_place(i);
                let source = to + vec2<u32>(0u, step);
                let there = remaining(LEFT_ACROSS, source, left_limit);
                put_left(to, Q(left_values(at.left + dot(source, at.left_step), left_step, there)));
            }
            for (var i = thread; i < 4u * THREADS_OF_TILE; i += THREADS_OF_TILE) {
                let to = right_place(i);
                let source = to + vec2<u32>(0u, step);
                let there = remaining(RIGHT_ACROSS, source, right_limit);
                put_right(to, Q(right_values(at.right + dot(source, at.right_step), right_step, there)));
            }
        }
        workgroupBarrier();
        // HOLE, with an example in it: the loop is unrolled in the text, because compilers do not unroll it.
        for (var k = 0u; k < STEPS; k++) {
            let b = F(
                columns[tx][k / 4u][k % 4u], columns[tx + APART][k / 4u][k % 4u],
                columns[tx + 2u * APART][k / 4u][k % 4u], columns[tx + 3u * APART][k / 4u][k % 4u],
            );
            s0 = fma(F(rows[ty][k / 4u][k % 4u]), b, s0);
            s1 = fma(F(rows[ty + 1u][k / 4u][k % 4u]), b, s1);
            s2 = fma(F(rows[ty + 2u][k / 4u][k % 4u]), b, s2);
            s3 = fma(F(rows[ty + 3u][k / 4u][k % 4u]), b, s3);
            s4 = fma(F(rows[ty + 32u][k / 4u][k % 4u]), b, s4);
            s5 = fma(F(rows[ty + 33u][k / 4u][k % 4u]), b, s5);
            s6 = fma(F(rows[ty + 34u][k / 4u][k % 4u]), b, s6);
            s7 = fma(F(rows[ty + 35u][k / 4u][k % 4u]), b, s7);
        }
        // END
        workgroupBarrier();
    }
    var sums = array(s0, s1, s2, s3, s4, s5, s6, s7);
    for (var i = 0u; i < 8u; i++) {
        let row = at.row + ty + i % 4u + i / 4u * 32u;
        if row < at.size.x { finish(entry, at.stack, row, at.column + tx * 4u, sums[i]); }
    }
}
