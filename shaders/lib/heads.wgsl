// What a workgroup of an attention works on; what reads queries, keys and values is generated.

const QUERIES = 32u; // Rows of queries of a workgroup.

// A block of queries of one head.
struct Head {
    row:        u32,       // Its first query,
    rows:       u32,       // of so many.
    keys:       u32,
    query:      u32,       // Word where the head begins in the block's first query,
    key:        u32,       // in the first key
    value:      u32,       // and value.
    result:     u32,       // Word where the head begins in the result of the first query.
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
    let first = number / blocks % HEADS * SIZE;
    let stack = number / blocks / HEADS;
    at.row = number % blocks * QUERIES;
    let starts = find_stack(entry, stack);
    at.query = starts.x + at.row * at.query_step.x + first * at.query_step.y;
    at.key = starts.y + first * at.key_step.y;
    at.value = starts.z + first * at.value_step.y;
    at.result = result(entry) + (stack * at.rows + at.row) * WIDTH + first;
    return at;
}

// Keys that a query sees, counted from the first.
fn seen(at: Head, row: u32) -> u32 {
    return select(at.keys, min(at.keys, row + 1u + at.keys - at.rows), CAUSAL);
}
