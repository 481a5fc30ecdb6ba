// A block of a product for four threads beside each other, in two rows: each reads half of its own and has the rest from
// the thread beside it or below, whose first rows, or columns, are its last. A software GPU reads word by word for each
// thread and exchanges registers of four at once.

const SIDE    = 16u; // Rows and columns of a block.
const SHARERS = 4u;

fn other_left(x: F, at: u32) -> F { return quadSwapX(x); }
fn other_right(x: F, at: u32) -> F { return quadSwapY(x); }
