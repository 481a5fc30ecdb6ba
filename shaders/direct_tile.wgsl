// A product of matrices without workgroup memory, generated: what `tile.wgsl` is for GPUs, this is for processors.
// Grid: one workgroup per tile, by the segment table. A thread sums 8 rows of 8 columns, from the first step to the
// last; small tiles have work for a few threads only. One kernel has both sizes: software GPUs compile for long.

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

const SMALL_TILES = 1u; // The mode of these.

// HOLE, with an example in it: [m, k] x [k, n], nothing in front or behind, and of each thread only one row.
const TILE          = 64u; // Rows and columns of a large tile.
const SMALL_ROWS    = 16u; // Of a small one
const SMALL_COLUMNS = 32u;
const WORDS         = 14u; // Words of an entry behind the result's.
const COUNT         = 2u;  // Of these, the one that holds how many products are summed,
const ROWS          = 3u;  // rows of the product,
const COLUMNS       = 4u;  // columns,
const LEFT_ROW      = 6u;  // the strides of the left factor along rows
const LEFT_STEP     = 8u;  // and steps,
const RIGHT_COLUMN  = 11u; // those of the right one along columns
const RIGHT_STEP    = 12u; // and steps.
const LEFT_ACROSS   = false; // Whether neighbors are those along the rows, not the steps;
const RIGHT_ACROSS  = true;  // along the columns.

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

fn sum(entry: u32, at: Tile, row: u32, column: u32) {
    let count = operand(entry, COUNT);
    let b = at.right + (column - at.column) * at.right_step.x;
    let a = at.left + (row - at.row) * at.left_step.x;
    var s0 = F();
    for (var step = 0u; step < count; step++) {
        let x = bitcast<F>(left(U(a + step * at.left_step.y))).x;
        s0 = fma(F(x), bitcast<F>(right(LANE * at.right_step.x + b + step * at.right_step.y)), s0);
    }
    finish(entry, at.stack, row, column, s0);
}
// END

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let thread = find_thread(vec3<u32>(group.x * WORKGROUP, group.y, 0u), groups, WORDS);
    if thread.idle { return; }
    let is_small = params.mode == SMALL_TILES;
    let shape = select(vec2<u32>(TILE), vec2<u32>(SMALL_ROWS, SMALL_COLUMNS), is_small);
    let at = find_tile(thread.entry, thread.index / WORKGROUP, shape);
    let across = shape.y / 8u;
    let down = lane / across * 8u;
    let row = at.row + down;
    let column = at.column + lane % across * 8u;
    if down >= shape.x { return; }
    if row < at.size.x && column < at.size.y { sum(thread.entry, at, row, column); }
}
