// A block of a product for each thread: it reads all of it by itself.

const SIDE    = 8u; // Rows and columns of a block.
const SHARERS = 1u;

fn other_left(x: F, at: u32) -> F { return bitcast<F>(left_quad(at)); }
fn other_right(x: F, at: u32) -> F { return bitcast<F>(right_quad(at)); }
