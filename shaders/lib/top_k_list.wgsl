// Lists of the best items in workgroup memory, for the kernels of searches. The kernel says how many LISTS there are, and
// how many places, a power of two, each LIST has. An item is (key, id): the lower key is better, of equal keys the lower
// id. No two items are equal, so that the order in which items are offered changes nothing.

const NOBODY = 0xffffffffu;

// For each list, the best items so far in order, and the newcomers behind them.
var<workgroup> items: array<vec2<u32>, LISTS * LIST>;
var<workgroup> newcomers: array<atomic<u32>, LISTS>;
var<workgroup> most_newcomers: u32;

fn is_before(a: vec2<u32>, b: vec2<u32>) -> bool { return a.x < b.x || (a.x == b.x && a.y < b.y); }

// The key of a score: higher scores have lower keys, and both zeros have the same key.
fn key_of(score: f32) -> u32 {
    let bits = bitcast<u32>(select(score, 0.0, score == 0.0));
    return select(~bits & 0x7fffffffu, bits, bits >= 0x80000000u);
}

fn score_of(key: u32) -> u32 { return select(~key & 0x7fffffffu, key, key >= 0x80000000u); }

// Empties the places behind the best `kept` of each list.
fn clear(lane: u32, kept: u32) {
    for (var i = lane; i < LISTS * LIST; i += WORKGROUP) {
        if i % LIST >= kept { items[i] = vec2<u32>(NOBODY); }
    }
    if lane < LISTS { atomicStore(&newcomers[lane], 0u); }
    workgroupBarrier();
}

// Adds an item to the newcomers of a list, if the item is better than the last of the best `kept`.
fn offer(list: u32, item: vec2<u32>, kept: u32) {
    if is_before(item, items[list * LIST + kept - 1u]) {
        items[list * LIST + kept + atomicAdd(&newcomers[list], 1u)] = item;
    }
}

// Whether a list may have no room for `more` newcomers.
fn is_full(lane: u32, kept: u32, more: u32) -> bool {
    workgroupBarrier();
    if lane == 0u {
        var most = 0u;
        for (var list = 0u; list < LISTS; list++) { most = max(most, atomicLoad(&newcomers[list])); }
        most_newcomers = most;
    }
    return workgroupUniformLoad(&most_newcomers) + kept + more > LIST;
}

// Sorts every list, by Batcher's bitonic network, and keeps the best `kept` of each.
fn settle(lane: u32, kept: u32) {
    workgroupBarrier();
    for (var width = 2u; width <= LIST; width *= 2u) {
        for (var step = width / 2u; step > 0u; step /= 2u) {
            for (var i = lane; i < LISTS * LIST / 2u; i += WORKGROUP) {
                let low = 2u * i - (i & (step - 1u));
                let a = items[low];
                let b = items[low + step];
                let is_rising = ((low % LIST) & width) == 0u;
                if is_before(b, a) == is_rising {
                    items[low] = b;
                    items[low + step] = a;
                }
            }
            workgroupBarrier();
        }
    }
    clear(lane, kept);
}
