// Factors of a matrix product, for kernels that compute a tile of it; what reads them is generated.

const LANE = vec4<u32>(0u, 1u, 2u, 3u);

// A tile of a call's product.
struct Tile {
    stack:      u32,       // Which matrix of the stack,
    row:        u32,       // its first row
    column:     u32,       // and column.
    size:       vec2<u32>, // Rows and columns of the matrix.
    left:       u32,       // Word where the left factor's first row begins,
    right:      u32,       // and the right one's first column.
    left_step:  vec2<u32>, // Strides of the left factor along rows and steps,
    right_step: vec2<u32>, // of the right one along columns and steps.
}

// `shape` is how many rows and columns a tile has.
fn find_tile(entry: u32, number: u32, shape: vec2<u32>) -> Tile {
    var tile: Tile;
    tile.size = vec2<u32>(operand(entry, ROWS), operand(entry, COLUMNS));
    let tiles = (tile.size + shape - 1u) / shape;
    tile.column = number % tiles.y * shape.y;
    tile.row = number / tiles.y % tiles.x * shape.x;
    tile.stack = number / (tiles.y * tiles.x);
    tile.left_step = vec2<u32>(operand(entry, LEFT_ROW), operand(entry, LEFT_STEP));
    tile.right_step = vec2<u32>(operand(entry, RIGHT_COLUMN), operand(entry, RIGHT_STEP));
    tile.left = left_start(entry, tile.stack) + tile.row * tile.left_step.x;
    tile.right = right_start(entry, tile.stack) + tile.column * tile.right_step.x;
    return tile;
}
