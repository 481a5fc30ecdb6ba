// Compares queries with the vectors of an index page, generated: each workgroup keeps the best items of a band of blocks.
// Grid: one workgroup per band and group of queries, by the segment table. A thread compares one vector of a block with
// all queries of the group. src/ops/search/vectors.rs says how blocks lie.

alias F = vec4<f32>;

// Words of an entry behind the address of the result. From QUERY on: addresses of each query and of the query's mask.
const QUADS   = 0u; // Quads of a vector.
const KEPT    = 1u; // Items that are kept for a query.
const MASK    = 2u; // Words of a mask: a bit for each id, or with LISTED set the allowed ids, rising.
const BLOCKS  = 3u; // Blocks of the page.
const BAND    = 4u; // Blocks of a band.
const COUNT   = 5u; // Queries of the group.
const QUERY   = 6u;
const LISTED  = 0x80000000u;
const BLOCK   = 64u;
const HEADER  = 32u; // Quads in front of a block's vectors: scales, then ids.

@group(0) @binding(0) var<storage, read>       calls:    array<vec4<u32>>;
@group(0) @binding(1) var<storage, read>       page:     array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> output:   array<u32>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

// Quads of a vector, but no more than the page can hold of each vector of a block.
fn quads_of(entry: u32) -> u32 { return min(operand(entry, QUADS), arrayLength(&page) / BLOCK); }

// For each query and each thread the score of the thread's vector.
var<workgroup> scores: array<f32, LISTS * WORKGROUP>;

// HOLE, with an example in it: products of floats, a query at a time.
const LISTS = 1u;
const LIST  = 128u;
fn compare(entry: u32, at: u32, lane: u32) {
    let quads = quads_of(entry);
    let q0 = operand(entry, QUERY) / 4u;
    var s0 = F();
    for (var j = 0u; j < quads; j++) {
        let w = page[at + HEADER + j * BLOCK + lane];
        s0 = fma(bitcast<F>(w), bitcast<F>(calls[q0 + j]), s0);
    }
    scores[lane] = (s0.x + s0.y) + (s0.z + s0.w);
}
// END

fn is_allowed(entry: u32, query: u32, id: u32) -> bool {
    let mask = operand(entry, MASK);
    if mask == 0u { return true; }
    let start = operand(entry, QUERY + 2u * query + 1u);
    if mask < LISTED {
        let word = id / 32u;
        return word < mask && ((word_of_call(start + word) >> (id % 32u)) & 1u) != 0u;
    }
    let words = at_most(mask - LISTED, arrayLength(&calls));
    var low = 0u;
    var high = words;
    while low < high {
        let middle = (low + high) / 2u;
        if word_of_call(start + middle) < id { low = middle + 1u; } else { high = middle; }
    }
    return low < words && word_of_call(start + low) == id;
}

fn word_of_call(at: u32) -> u32 { return calls[at / 4u][at % 4u]; }

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    // Found from the workgroup alone, so that all threads of the workgroup meet at the barriers.
    let thread = find_thread(vec3<u32>(group.x * WORKGROUP, group.y, 0u), groups, QUERY + 2u * LISTS);
    if thread.idle { return; }
    let entry = thread.entry;
    let band = thread.index / WORKGROUP;
    let kept = min(operand(entry, KEPT), LIST - BLOCK);
    let queries = min(operand(entry, COUNT), LISTS);
    let size = HEADER + BLOCK * quads_of(entry);
    let blocks = min(operand(entry, BLOCKS), arrayLength(&page) / size);
    let first = band * operand(entry, BAND);
    let end = min(first + operand(entry, BAND), blocks);
    clear(lane, 0u);
    for (var block = first; block < end; block++) {
        let at = block * size;
        compare(entry, at, lane);
        // The page holds the id + 1, so that 0 stands for nobody.
        let id = page[at + HEADER / 2u + lane / 4u][lane % 4u] - 1u;
        for (var query = 0u; query < queries; query++) {
            if id != NOBODY && is_allowed(entry, query, id) {
                offer(query, vec2<u32>(key_of(scores[query * WORKGROUP + lane]), id), kept);
            }
        }
        if is_full(lane, kept, BLOCK) { settle(lane, kept); }
    }
    settle(lane, kept);
    let to = result(entry) + band * queries * kept * 2u;
    for (var i = lane; i < queries * kept; i += WORKGROUP) {
        let item = items[i / kept * LIST + i % kept];
        output[to + 2u * i] = item.x;
        output[to + 2u * i + 1u] = item.y;
    }
}
