// Packs vectors of a tensor in an index page.
// Grid: one workgroup per vector, by the segment table. src/graph/insertion.rs says what a call's operands are, and
// src/ops/search/mod.rs how vectors lie in a page.

// Words of a call's row: the vector's row in the source, its place in the page, and its id + 1.
const ROW     = 3u;
const NOTHING = 0xffffffffu; // In place of the row in the source: the third word alone is written.

// The mode: a packing, and SCALED if vectors are scaled to length 1.
const PACKING = 3u;
const FLOATS  = 0u;
const F16     = 1u;
const BF16    = 2u;
const SCALED  = 4u;

// The largest magnitudes of floats, as bits.
const MAX_FLOAT = 0x5bb1a2bcu;
const MAX_F16   = 0x477fe000u;

const BLOCK     = 64u;
const HEADER    = 128u; // Words in front of a block's vectors: scales, then each id + 1.
const MAGNITUDE = 0x7fffffffu;
const NORMAL    = 0x00800000u; // The smallest float that a device does not take for 0.
const ONE       = 0x3f800000u;

@group(0) @binding(0) var<storage, read>       calls:    array<u32>;
@group(0) @binding(1) var<storage, read>       source:   array<u32>;
@group(0) @binding(6) var<storage, read_write> output:   array<u32>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

// The largest magnitude of the vector, as bits, whose order is that of magnitudes, with NaN above all others.
var<workgroup> largest: atomic<u32>;
// For each thread the sum of its floats' squares.
var<workgroup> squares: array<f32, WORKGROUP>;

// How the floats of a vector are scaled.
struct Scaling {
    is_small: bool, // Whether floats are enlarged before the division.
    length:   f32,  // What floats are divided by; 0 where they are not.
}

// A float times 2^100, also one so small that a device takes it for 0.
fn enlarged(bits: u32) -> f32 {
    let magnitude = bits & MAGNITUDE;
    if magnitude >= NORMAL { return bitcast<f32>(bits) * 0x1p+100f; }
    let x = f32(magnitude) * 0x1p-49f;
    return select(x, -x, magnitude != bits);
}

// A float whose square neither overflows nor vanishes where the floats beside it count.
fn safe(bits: u32, is_small: bool) -> f32 {
    if is_small { return enlarged(bits); }
    return bitcast<f32>(bits);
}

// The bits of a scaled float.
fn scaled(bits: u32, scaling: Scaling) -> u32 {
    if scaling.length == 0.0 { return bits; }
    return bitcast<u32>(safe(bits, scaling.is_small) / scaling.length);
}

// The nearest 16-bit float; of two that are equally near, the even one.
fn f16_of(bits: u32) -> u32 {
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & MAGNITUDE;
    if magnitude >= 0x38800000u {
        return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u);
    }
    // Smaller ones are whole multiples of 2^-24.
    let exponent = magnitude >> 23u;
    if exponent < 102u { return sign; }
    let shift = 126u - exponent;
    let fraction = (magnitude & 0x7fffffu) | NORMAL;
    return sign | ((fraction + (1u << (shift - 1u)) - 1u + ((fraction >> shift) & 1u)) >> shift);
}

// The nearest float whose lower 16 bits are 0, without these; of two that are equally near, the even one.
fn bf16_of(bits: u32) -> u32 { return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u; }

// The whole number that times the scale is near a float, as a byte.
fn int8_of(bits: u32, scale: f32) -> u32 {
    if scale == 0.0 { return 0u; }
    return u32(i32(clamp(round(bitcast<f32>(bits) / scale), -127.0, 127.0))) & 255u;
}

// A word of the vector whose floats begin at word `start` of the source.
fn word_of(word: u32, start: u32, scaling: Scaling, scale: f32) -> u32 {
    let packing = params.mode & PACKING;
    let each = select(select(4u, 2u, packing != 3u), 1u, packing == FLOATS);
    let width = 32u / each;
    var packed = 0u;
    for (var k = 0u; k < each; k++) {
        let i = word * each + k;
        if i >= params.width { break; }
        var bits = scaled(source[start + i], scaling);
        if packing == F16 { bits = f16_of(bits); }
        else if packing == BF16 { bits = bf16_of(bits); }
        else if packing != FLOATS { bits = int8_of(bits, scale); }
        packed |= bits << (width * k);
    }
    return packed;
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    // Found from the workgroup alone, so that all threads of the workgroup meet at the barriers.
    let thread = find_thread(vec3<u32>(group.x * WORKGROUP, group.y, 0u), groups, 2u);
    if thread.idle { return; }
    let row = operand(thread.entry, 0u) + thread.index / WORKGROUP * ROW;
    let place = calls[row + 1u];
    let dim = params.width;
    let packing = params.mode & PACKING;
    let is_scaled = (params.mode & SCALED) != 0u;
    let elements = select(select(16u, 8u, packing != 3u), 4u, packing == FLOATS);
    let quads = (dim + elements - 1u) / elements;
    let size = HEADER + 4u * BLOCK * quads;
    if place / BLOCK >= arrayLength(&output) / size { return; }
    let block = place / BLOCK * size;
    let number = place % BLOCK;
    if calls[row] == NOTHING {
        if lane == 0u { output[block + BLOCK + number] = calls[row + 2u]; }
        return;
    }

    let start = operand(thread.entry, 1u) + calls[row] * dim;
    var most = 0u;
    for (var i = lane; i < dim; i += WORKGROUP) { most = max(most, source[start + i] & MAGNITUDE); }
    atomicMax(&largest, most);
    workgroupBarrier();
    most = atomicLoad(&largest);
    var scaling = Scaling(most < ONE, 0.0);
    let unit = abs(safe(most, scaling.is_small));
    if is_scaled {
        var sum = 0.0;
        for (var i = lane; i < dim; i += WORKGROUP) {
            let x = safe(source[start + i], scaling.is_small) / unit;
            sum += x * x;
        }
        squares[lane] = sum;
        for (var far = WORKGROUP / 2u; far > 0u; far /= 2u) {
            workgroupBarrier();
            if lane < far { squares[lane] += squares[lane + far]; }
        }
        workgroupBarrier();
        // A vector of length 0 stays as it is.
        if most != 0u { scaling.length = unit * sqrt(squares[0]); }
    }
    if most > select(MAX_FLOAT, MAX_F16, packing == F16 && !is_scaled) {
        if lane == 0u { output[block + BLOCK + number] = 0u; }
        return;
    }
    var scale = 0.0;
    if packing == 3u { scale = bitcast<f32>(scaled(most, scaling)) / 127.0; }
    if lane == 0u {
        output[block + number] = bitcast<u32>(scale);
        output[block + BLOCK + number] = calls[row + 2u];
    }
    for (var j = lane; j < quads; j += WORKGROUP) {
        let to = block + HEADER + 4u * (BLOCK * j + number);
        for (var k = 0u; k < 4u; k++) { output[to + k] = word_of(4u * j + k, start, scaling, scale); }
    }
}
