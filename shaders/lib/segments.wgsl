// The segment table: which call a thread works for, and where that call's operands and result lie.
// In front of every kernel; the kernel declares `segments` and `params`.

// One dispatch; a test compares the fields with `Params` in src/plan/table.rs.
struct Params {
    table:  u32, // Word of `segments` where this dispatch's entries begin.
    shift:  u32, // A block is 1 << shift threads.
    blocks: u32, // Entries in the table.
    width:  u32, // Elements in a row.
    each:   u32, // 1: every row has its own t; 0: the entry holds the call's t.
    mode:   u32, // A variant of the kernel.
}

// The words of an entry: the block's first thread, the call's threads, the word of the result, a word for each operand.
const FIRST    = 0u;
const THREADS  = 1u;
const RESULT   = 2u;
const OPERANDS = 3u;

const WORKGROUP = 64u;

// The most elements of a tensor.
const MOST_ELEMENTS = 1073741824u;

struct Thread {
    index: u32,  // The thread's number within its call.
    entry: u32,  // Word of `segments` where the call's entry begins.
    idle:  bool, // Whether the thread is behind the end of the call or of the dispatch.
}

// Finds the work of a thread in a grid of one or two dimensions. An entry has a word for each of `operands` operands.
fn find_thread(id: vec3<u32>, groups: vec3<u32>, operands: u32) -> Thread {
    let flat = id.y * groups.x * WORKGROUP + id.x;
    let block = flat >> params.shift;
    if block >= params.blocks { return Thread(0u, 0u, true); }
    let entry = params.table + block * (OPERANDS + operands);
    let index = segments[entry + FIRST] + (flat & ((1u << params.shift) - 1u));
    return Thread(index, entry, index >= segments[entry + THREADS]);
}

// Word where operand `k` of the entry begins, or the scalar itself.
fn operand(entry: u32, k: u32) -> u32 { return segments[entry + OPERANDS + k]; }

// A count that an entry holds, but no more than the elements of so many quads: a loop that counts so far ends whatever the
// buffers hold. The bound is low enough that a counter with long steps does not wrap.
fn at_most(count: u32, quads: u32) -> u32 { return min(count, min(quads, MOST_ELEMENTS / 4u) * 4u); }

// Word where the result begins.
fn result(entry: u32) -> u32 { return segments[entry + RESULT]; }
