// A product of matrices without workgroup memory, generated: what `tile.wgsl` is for GPUs, this is for processors.
// Grid: one thread per 8 rows of 8 columns, by the segment table; it sums from the first step to the last. Threads that
// share what they read have a block of SIDE rows and columns together (`lib/lone.wgsl` and `lib/swaps.wgsl`).
// Blocks go through 64 columns of all rows, then through the next 64, so that neighbors read the same memory.

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

const STRIP = 64u / SIDE; // Blocks of 64 columns.

// HOLE, with an example in it: [m, k] x [k, n], nothing in front or behind, and of each thread only one row.
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

fn sum(entry: u32, at: Tile, place: vec2<u32>) {
    let count = operand(entry, COUNT);
    let own = place * 8u;
    var s0 = F();
    for (var step = 0u; step < count; step++) {
        let x = bitcast<F>(left(U(at.left + own.x * at.left_step.x + step * at.left_step.y))).x;
        let first = at.right + own.y * at.right_step.x + step * at.right_step.y;
        s0 = fma(F(x), bitcast<F>(right(LANE * at.right_step.x + first)), s0);
    }
    finish(entry, at.stack, at.row + own.x, at.column + own.y, s0);
}
// END

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, WORDS);
    if thread.idle { return; }
    let blocks = (vec2<u32>(operand(thread.entry, ROWS), operand(thread.entry, COLUMNS)) + SIDE - 1u) / SIDE;
    let each = blocks.x * blocks.y;
    let index = thread.index / SHARERS;
    let number = index % each;
    let strip = number / (blocks.x * STRIP);
    let width = min(blocks.y - strip * STRIP, STRIP);
    let place = number - strip * blocks.x * STRIP;
    let block = place / width * blocks.y + strip * STRIP + place % width;
    let at = find_tile(thread.entry, index - number + block, vec2<u32>(SIDE));
    let sharer = thread.index % SHARERS;
    sum(thread.entry, at, vec2<u32>(sharer / 2u, sharer % 2u));
}
