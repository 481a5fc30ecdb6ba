// The queries that a workgroup of an attention computes. The functions that read queries, keys and values are generated.

const QUERIES = 32u; // Rows of queries that a workgroup computes.

// A block of queries of one head.
struct Head {
    row:        u32,       // Row of the first query.
    rows:       u32,       // Rows of queries in the call.
    keys:       u32,
    head:       u32,       // Number of the head.
    query:      u32,       // Word where the head begins in the first query.
    key:        u32,       // Word where the head that it attends with begins in the first key.
    value:      u32,       // The same in the first value.
    result:     u32,       // Word where the head begins in the first query's result.
    query_step: vec2<u32>, // Strides along rows and along floats.
    key_step:   vec2<u32>,
    value_step: vec2<u32>,
}

fn steps(entry: u32, word: u32) -> vec2<u32> { return vec2<u32>(operand(entry, word), operand(entry, word + 1u)); }

fn find_head(entry: u32, number: u32) -> Head {
    var at: Head;
    at.rows = operand(entry, ROWS);
    at.keys = at_most(operand(entry, KEYS), quads_of_keys());
    at.query_step = steps(entry, QUERY_STEP);
    at.key_step = steps(entry, KEY_STEP);
    at.value_step = steps(entry, VALUE_STEP);
    let blocks = (at.rows + QUERIES - 1u) / QUERIES;
    at.head = number / blocks % HEADS;
    let first = at.head * SIZE;
    let own_keys = at.head / SHARING * SIZE;
    let stack = number / blocks / HEADS;
    at.row = number % blocks * QUERIES;
    let starts = find_stack(entry, stack);
    at.query = starts.x + at.row * at.query_step.x + first * at.query_step.y;
    at.key = starts.y + own_keys * at.key_step.y;
    at.value = starts.z + own_keys * at.value_step.y;
    at.result = result(entry) + (stack * at.rows + at.row) * WIDTH + first;
    return at;
}

// The first key that a query attends to.
fn first_seen(at: Head, row: u32) -> u32 {
    let place = row + at.keys - at.rows;
    return select(0u, place - min(place, REACH), NEAR);
}

// The key behind the last one that a query attends to.
fn seen(at: Head, row: u32) -> u32 {
    let place = row + at.keys - at.rows;
    let reach = select(select(at.keys, place + REACH + 1u, NEAR), place + 1u, CAUSAL);
    return min(at.keys, reach);
}
