// Samples clips at times: keyframe tracks by the samplers of glTF 2.0, of several layers that are blended.
// Grid: one thread per clip lane of a row, by the segment table: up to four neighboring floats of one track.
// A call's operands are rows and a header (src/graph/sampling.rs); all clips lie in `store` (src/ops/clips.rs).

@group(0) @binding(0) var<storage, read>       calls:    array<u32>;
@group(0) @binding(1) var<storage, read>       store:    array<u32>;
@group(0) @binding(6) var<storage, read_write> output:   array<f32>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

// Words of a call's header, and of each layer behind the header.
const HEADER  = 4u;
const LAYER   = 4u;
const WEIGHTS = 65536u;  // Set if rows have a weight for each layer.
const WRAPS   = 131072u; // Set if rows have a wrap mode.
const LAYERS  = 63u;     // The most layers of a call.

// Words of a clip's header, and of each lane behind the header.
const CLIP = 4u;
const LANE = 8u;

// Wrap modes. Mode 0 keeps times outside of the clip at the nearer end.
const LOOP      = 1u;
const PING_PONG = 2u;

// A lane's flags.
const INTERPOLATION = 3u;
const STEP          = 0u;
const CUBIC         = 2u;
const QUATERNION    = 4u;
const EASING        = 24u;
const STEPS         = 16u;

fn number(at: u32) -> f32 { return bitcast<f32>(store[at]); }

// The time within a clip of this duration.
fn fold(t: f32, duration: f32, wrap: u32) -> f32 {
    if wrap != LOOP && wrap != PING_PONG { return t; }
    if duration <= 0.0 { return 0.0; }
    let period = select(duration, 2.0 * duration, wrap == PING_PONG);
    var rest = t - period * floor(t / period);
    // The quotient was rounded, so the remainder may lie just outside.
    if rest < 0.0 { rest += period; }
    if rest >= period { rest -= period; }
    return select(rest, period - rest, rest > duration);
}

// A CSS easing of progress in [0, 1): steps, or a cubic Bezier curve from (0, 0) to (1, 1). The curve's parameter is
// found by Newton's method within bounds.
fn ease(u: f32, flags: u32, at: u32) -> f32 {
    let p = vec4<f32>(number(at), number(at + 1u), number(at + 2u), number(at + 3u));
    if (flags & EASING) == STEPS { return min(floor(u * p.x) + p.y, p.z) / p.z; }
    let c = 3.0 * p.xy;
    let b = 3.0 * p.zw - 2.0 * c;
    let a = vec2<f32>(1.0) - c - b;
    var low = 0.0;
    var high = 1.0;
    var s = u;
    for (var i = 0u; i < 16u; i += 1u) {
        let miss = ((a.x * s + b.x) * s + c.x) * s - u;
        if miss < 0.0 { low = s; } else { high = s; }
        let next = s - miss / ((3.0 * a.x * s + 2.0 * b.x) * s + c.x);
        s = select(0.5 * (low + high), next, next >= low && next <= high);
    }
    return ((a.y * s + b.y) * s + c.y) * s;
}

// The floats of a lane at a time.
fn sample(clip: u32, lane: u32, t: f32) -> vec4<f32> {
    let at = clip + CLIP + lane * LANE;
    let times = clip + store[at];
    // Bounded by the words of the store, so that the search ends whatever the store holds.
    let count = min(store[at + 1u], arrayLength(&store));
    let flags = store[at + 4u];
    let width = store[at + 7u];
    let floats = min(store[at + 6u], 4u);
    let mode = flags & INTERPOLATION;
    // The first key later than t, so that of equal keys the last one counts.
    var next = 0u;
    var end = count;
    while next < end {
        let middle = (next + end) / 2u;
        if number(times + middle) <= t { next = middle + 1u; } else { end = middle; }
    }
    let key = max(next, 1u) - 1u;
    let is_between = next > 0u && next < count && mode != STEP;
    // The terms are the values of this key and of the next one; between both, for a cubic spline, the out-tangent of this
    // key and the in-tangent of the next.
    var first = clip + store[at + 2u] + key * store[at + 3u];
    if mode == CUBIC { first += width; }
    let terms = select(1u, select(2u, 4u, mode == CUBIC), is_between);
    var term: array<vec4<f32>, 4>;
    for (var k = 0u; k < terms; k += 1u) {
        for (var j = 0u; j < floats; j += 1u) { term[k][j] = number(first + k * width + j); }
    }
    if !is_between { return term[0]; }
    let start = number(times + key);
    let span = number(times + next) - start;
    var u = (t - start) / span;
    if (flags & EASING) != 0u { u = ease(u, flags, clip + store[at + 5u]); }
    let is_quaternion = (flags & QUATERNION) != 0u;
    if mode == CUBIC {
        let uu = u * u;
        let uuu = uu * u;
        let value = (2.0 * uuu - 3.0 * uu + 1.0) * term[0] + span * (uuu - 2.0 * uu + u) * term[1]
            + span * (uuu - uu) * term[2] + (3.0 * uu - 2.0 * uuu) * term[3];
        return select(value, unit(value), is_quaternion);
    }
    if !is_quaternion { return (1.0 - u) * term[0] + u * term[1]; }
    let to = select(term[1], -term[1], dot(term[0], term[1]) < 0.0);
    let angle = angle_between(term[0], to);
    return weight(1.0 - u, angle) * term[0] + weight(u, angle) * to;
}

// The quaternion at length 1, or the quaternion of no rotation if its length is 0.
fn unit(q: vec4<f32>) -> vec4<f32> {
    let length = sqrt(dot(q, q));
    if length == 0.0 { return vec4<f32>(0.0, 0.0, 0.0, 1.0); }
    return q / length;
}

// The Hamilton product.
fn product(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(a.w * b.xyz + b.w * a.xyz + cross(a.xyz, b.xyz), a.w * b.w - dot(a.xyz, b.xyz));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, 2u);
    if thread.idle { return; }
    let header = operand(thread.entry, 1u);
    let lanes = calls[header];
    let lane = thread.index % lanes;
    let row = thread.index / lanes;
    let layers = min(calls[header + 1u] & 65535u, LAYERS);
    let has_weights = (calls[header + 1u] & WEIGHTS) != 0u;
    let has_wraps = (calls[header + 1u] & WRAPS) != 0u;
    let fields = layers * (1u + u32(has_weights) + u32(has_wraps));
    let times = operand(thread.entry, 0u) + row * fields;

    let place = calls[header + HEADER] + CLIP + lane * LANE;
    let is_quaternion = (store[place + 4u] & QUATERNION) != 0u;
    var blended = vec4<f32>(0.0);
    var total = 0.0;
    var is_base = true;
    for (var k = 0u; k <= layers; k += 1u) {
        let layer = header + HEADER + k * LAYER;
        // Behind the last layer that is not additive, the mean of these layers is taken.
        if is_base && (k == layers || calls[layer + 2u] != 0u) {
            is_base = false;
            if is_quaternion && (layers > 1u || total == 0.0) {
                blended = unit(blended);
            } else if total != 0.0 && total != 1.0 { blended = blended / total; }
        }
        if k == layers { break; }
        var amount = bitcast<f32>(calls[layer + 3u]);
        if has_weights { amount = bitcast<f32>(calls[times + layers + k]); }
        var wrap = calls[layer + 1u];
        if has_wraps { wrap = calls[times + fields - layers + k]; }
        if amount <= 0.0 { continue; }
        let clip = calls[layer];
        let value = sample(clip, lane, fold(bitcast<f32>(calls[times + k]), number(clip), wrap));
        if is_base {
            let is_far = is_quaternion && dot(blended, value) < 0.0;
            blended += select(amount, -amount, is_far) * value;
            total += amount;
        } else if is_quaternion {
            let turn = select(value, -value, value.w < 0.0);
            blended = product(blended, unit(vec4<f32>(amount * turn.xyz, 1.0 - amount + amount * turn.w)));
        } else {
            blended += amount * value;
        }
    }
    let to = result(thread.entry) + calls[header + 2u] + row * calls[header + 3u] + (store[place + 4u] >> 8u);
    let floats = min(store[place + 6u], 4u);
    for (var j = 0u; j < floats; j += 1u) { output[to + j] = blended[j]; }
}
