// A product of matrices in tiles of 64 x 64, generated: fusion fills the hole.
// Grid: one workgroup per tile, by the segment table, where a tile counts as 64 threads; `direct_tile.wgsl` is the
// same for processors. Workgroup memory holds 16 steps of both factors: for each step a row of the tile's 64 rows
// or columns. A thread sums 8 rows of 4 columns, from the first step to the last.

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

const STEPS   = 16u;
const THREADS_OF_TILE = 128u;
const QUADS   = TILE / 4u;         // Of a row of the workgroup's memory.
const FACTOR  = STEPS * QUADS;     // Quads of one factor.

var<workgroup> steps: array<vec4<f32>, 512>;

// HOLE, with an example in it: [m, k] x [k, n], nothing in front or behind.
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
    if step == 1u && at % 4u == 0u && count > 3u { return bitcast<F>(left_quad(at / 4u)); }
    return select(F(), bitcast<F>(left(at + LANE * step)), LANE < U(count));
}

fn right_values(at: u32, step: u32, count: u32) -> F {
    if step == 1u && at % 4u == 0u && count > 3u { return bitcast<F>(right_quad(at / 4u)); }
    return select(F(), bitcast<F>(right(at + LANE * step)), LANE < U(count));
}

// How many of four values there are at a place.
fn remaining(is_across: bool, at: vec2<u32>, limit: vec2<u32>) -> u32 {
    if at.x >= limit.x || at.y >= limit.y { return 0u; }
    return select(limit.y - at.y, limit.x - at.x, is_across);
}

// Where the four values of quad `i` of a factor are: along rows or columns (x), and along steps (y).
fn place(is_across: bool, i: u32) -> vec2<u32> {
    if is_across { return vec2<u32>(i % QUADS * 4u, i / QUADS); }
    return vec2<u32>(i / (STEPS / 4u), i % (STEPS / 4u) * 4u);
}

// Puts quad `i` of a factor where the sums read it.
fn put(factor: u32, is_across: bool, i: u32, values: F) {
    if is_across {
        steps[factor + i] = values;
        return;
    }
    let at = place(false, i);
    let quad = factor + at.y * QUADS + at.x / 4u;
    steps[quad][at.x % 4u]              = values.x;
    steps[quad + QUADS][at.x % 4u]      = values.y;
    steps[quad + 2u * QUADS][at.x % 4u] = values.z;
    steps[quad + 3u * QUADS][at.x % 4u] = values.w;
}

fn compute(entry: u32, tile: u32, thread: u32) {
    let count = operand(entry, COUNT);
    let at = find_tile(entry, tile);
    let size = at.size;
    let left_step = at.left_step;
    let right_step = at.right_step;
    let tx = thread % QUADS;
    let ty = thread / QUADS;
    var s0 = F(); var s1 = F(); var s2 = F(); var s3 = F();
    var s4 = F(); var s5 = F(); var s6 = F(); var s7 = F();
    for (var step = 0u; step < count; step += STEPS) {
        for (var i = thread; i < FACTOR; i += THREADS_OF_TILE) {
            let l = place(LEFT_ACROSS, i) + vec2<u32>(0u, step);
            let left_count = remaining(LEFT_ACROSS, l, vec2<u32>(size.x - at.row, count));
            let left_at = at.left + l.x * left_step.x + l.y * left_step.y;
            put(0u, LEFT_ACROSS, i, left_values(left_at, select(left_step.y, left_step.x, LEFT_ACROSS), left_count));
            let r = place(RIGHT_ACROSS, i) + vec2<u32>(0u, step);
            let right_count = remaining(RIGHT_ACROSS, r, vec2<u32>(size.y - at.column, count));
            let right_at = at.right + r.x * right_step.x + r.y * right_step.y;
            put(FACTOR, RIGHT_ACROSS, i, right_values(right_at, select(right_step.y, right_step.x, RIGHT_ACROSS), right_count));
        }
        workgroupBarrier();
        for (var k = 0u; k < STEPS; k++) {
            let b = steps[FACTOR + k * QUADS + tx];
            let a = steps[k * QUADS + ty * 2u];
            let c = steps[k * QUADS + ty * 2u + 1u];
            s0 = fma(F(a.x), b, s0);
            s1 = fma(F(a.y), b, s1);
            s2 = fma(F(a.z), b, s2);
            s3 = fma(F(a.w), b, s3);
            s4 = fma(F(c.x), b, s4);
            s5 = fma(F(c.y), b, s5);
            s6 = fma(F(c.z), b, s6);
            s7 = fma(F(c.w), b, s7);
        }
        workgroupBarrier();
    }
    var sums = array(s0, s1, s2, s3, s4, s5, s6, s7);
    let row = at.row + ty * 8u;
    for (var i = 0u; i < 8u && row + i < size.x; i++) { finish(entry, at.stack, row + i, at.column + tx * 4u, sums[i]); }
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
