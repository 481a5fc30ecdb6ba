// Where the factors of a tile of a matrix product lie. The functions that read factors are generated.

const LANE = vec4<u32>(0u, 1u, 2u, 3u);

// The tile that a workgroup computes.
struct Tile {
    stack:      u32,       // Number of the matrix in the stack.
    row:        u32,       // First row of the tile.
    column:     u32,       // First column of the tile.
    size:       vec2<u32>, // Rows and columns of the matrix.
    left:       u32,       // Word where the left factor begins in the tile's first row.
    right:      u32,       // Word where the right factor begins in the tile's first column.
    left_step:  vec2<u32>, // Strides of the left factor along rows and steps.
    right_step: vec2<u32>, // Strides of the right factor along columns and steps.
}

// The tile of this number in a call. `shape` is how many rows and columns a tile has.
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
