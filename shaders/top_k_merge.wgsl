// Merges, for each query, the best items that the bands of an index kept.
// Grid: one workgroup per query, by the segment table.

// Words of an entry behind the address of the result.
const FROM   = 0u; // Word where the query's items of the first band begin.
const LINE   = 1u; // Words from one band to the next.
const BANDS  = 2u; // Bands of the index.
const KEPT   = 3u; // Items that each band kept.
const WORDS  = 4u;

const LISTS  = 1u;
const LIST   = 512u;
const OFFERS = 4u; // Items that a thread offers before newcomers are counted.

@group(0) @binding(0) var<storage, read>       bands:    array<u32>;
@group(0) @binding(6) var<storage, read_write> output:   array<u32>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    // Found from the workgroup alone, so that all threads of the workgroup meet at the barriers.
    let thread = find_thread(vec3<u32>(group.x * WORKGROUP, group.y, 0u), groups, WORDS);
    if thread.idle { return; }
    let entry = thread.entry;
    let kept = min(operand(entry, KEPT), LIST - OFFERS * WORKGROUP);
    let count = min(operand(entry, BANDS) * kept, arrayLength(&bands) / 2u);
    clear(lane, 0u);
    for (var first = 0u; first < count; first += OFFERS * WORKGROUP) {
        for (var k = 0u; k < OFFERS; k++) {
            let i = first + k * WORKGROUP + lane;
            if i < count {
                let at = operand(entry, FROM) + i / kept * operand(entry, LINE) + i % kept * 2u;
                offer(0u, vec2<u32>(bands[at], bands[at + 1u]), kept);
            }
        }
        if is_full(lane, kept, OFFERS * WORKGROUP) { settle(lane, kept); }
    }
    settle(lane, kept);
    for (var i = lane; i < kept; i += WORKGROUP) {
        output[result(entry) + i] = items[i].y;
        output[result(entry) + kept + i] = score_of(items[i].x);
    }
}
