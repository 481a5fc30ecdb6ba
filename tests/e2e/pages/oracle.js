// What each call must give, in float64 and by the textbook; no code of the package.
//
// States: the high nibble of a layer is a log-magnitude plus 8 (0 is null), the
// low nibble a phase in sixteenths of a turn.

const each = (t, item) => (typeof t === "number" ? t : t[item]);

export function lerp(a, b, t, width = 1) {
  return Float64Array.from(
    a,
    (x, i) => x + (b[i] - x) * each(t, Math.floor(i / width)),
  );
}

export function slerp(qa, qb, t) {
  return quaternions(arc, qa, qb, t);
}

export function nlerp(qa, qb, t) {
  return quaternions(chord, qa, qb, t);
}

function quaternions(between, qa, qb, t) {
  const out = new Float64Array(qa.length);
  for (let item = 0; item < qa.length / 4; item++) {
    const a = Array.from(qa.subarray(item * 4, item * 4 + 4));
    const b = Array.from(qb.subarray(item * 4, item * 4 + 4));
    out.set(between(a, b, each(t, item)), item * 4);
  }
  return out;
}

function arc(a, b, t) {
  const dot = a.reduce((sum, x, i) => sum + x * b[i], 0);
  const sign = dot < 0 ? -1 : 1;
  const angle = Math.acos(Math.min(1, Math.abs(dot)));
  const sine = Math.sin(angle);
  if (sine < 1e-9) return a;
  const from = Math.sin((1 - t) * angle) / sine;
  const to = (sign * Math.sin(t * angle)) / sine;
  return a.map((x, i) => x * from + b[i] * to);
}

function chord(a, b, t) {
  const dot = a.reduce((sum, x, i) => sum + x * b[i], 0);
  const to = dot < 0 ? -t : t;
  const sum = a.map((x, i) => (1 - t) * x + to * b[i]);
  const length = Math.hypot(...sum);
  return sum.map((x) => x / length);
}

/** The gradient of a layer by its high nibble. */
export const GRADIENTS = Float64Array.from({ length: 16 }, (_, nibble) =>
  nibble === 0 ? 0 : (Math.LN2 / 4) * 2 ** ((nibble - 8) / 4),
);

export function gradients(states) {
  const out = new Float64Array(states.length * 2);
  states.forEach((byte, layer) => (out[layer * 2] = GRADIENTS[byte >> 4]));
  return out;
}

/** The gradients of a function of rho, theta and layer: central differences, one-sided at the ends of rho. */
export function fieldGradients(states, f) {
  const out = new Float64Array(states.length * 2);
  const step = 2 ** -10;
  states.forEach((byte, i) => {
    const [rho, theta, layer] = [(byte >> 4) - 8, byte & 15, i % 16];
    const [low, high] = [Math.max(rho - step, -8), Math.min(rho + step, 7)];
    const back = theta === 0 ? 16 - step : theta - step;
    out[i * 2] = (f(high, theta, layer) - f(low, theta, layer)) / (high - low);
    out[i * 2 + 1] =
      (f(rho, theta + step, layer) - f(rho, back, layer)) / (2 * step);
  });
  return out;
}

export function stateLerp(a, b, t) {
  return states(a, b, t, (from, to, t) => from + (to - from) * t);
}

export function stateSlerp(a, b, t) {
  return states(a, b, t, (from, to, t) => {
    return from + shorter(to - from) * t;
  });
}

/** By de Casteljau's construction. */
export function bezier(points, t, width = 1) {
  return Float64Array.from(points[0], (_, i) => {
    const at = each(t, Math.floor(i / width));
    return construct(
      points.map((p) => p[i]),
      (from, to) => from + (to - from) * at,
    );
  });
}

/** Without rounding before the end: at most 52 binary digits are in use. */
export function stateBezier(points, t) {
  return Uint8Array.from(points[0], (_, i) => {
    const at = fraction(each(t, Math.floor(i / 16)));
    const rho = construct(
      points.map((p) => p[i] >> 4),
      (from, to) => from + (to - from) * at,
    );
    const theta = construct(
      points.map((p) => p[i] & 15),
      (from, to) => around(from + shorter(to - from) * at),
    );
    return (even(rho) << 4) | around(even(theta));
  });
}

export function stateSequence(a, b, steps, mode) {
  const rows = a.length / 16;
  const repeat = (from) =>
    Uint8Array.from(
      { length: rows * steps * 16 },
      (_, i) => from[Math.floor(i / (steps * 16)) * 16 + (i % 16)],
    );
  const t = Float64Array.from(
    { length: rows * steps },
    (_, k) => (k % steps) / (steps - 1),
  );
  const between = mode === "slerp" ? stateSlerp : stateLerp;
  return between(repeat(a), repeat(b), t);
}

export function distance(a, b) {
  return sums(a, b, (from, to) => {
    const [p, q] = [point(from), point(to)];
    return Math.hypot(p[0] - q[0], p[1] - q[1]);
  });
}

export function geodesicDistance(a, b) {
  return sums(a, b, (from, to) =>
    Math.hypot((from >> 4) - (to >> 4), shorter((from & 15) - (to & 15))),
  );
}

export function descend(states, rate) {
  return Uint8Array.from(states, (byte, i) => {
    const slope = (Math.LN2 / 4) * magnitude(byte);
    const rho = (byte >> 4) - each(rate, Math.floor(i / 16)) * slope;
    return (Math.min(15, Math.max(0, even(rho))) << 4) | (byte & 15);
  });
}

function construct(points, between) {
  while (points.length > 1)
    points = points.slice(1).map((to, k) => between(points[k], to));
  return points[0];
}

const magnitude = (byte) => (byte >> 4 === 0 ? 0 : 2 ** ((byte >> 4) / 4 - 2));

function point(byte) {
  const turn = (Math.PI * (byte & 15)) / 8;
  return [Math.cos(turn), Math.sin(turn)].map((x) => x * magnitude(byte));
}

function sums(a, b, apart) {
  const out = new Float64Array(a.length / 16);
  a.forEach((from, i) => (out[i >> 4] += apart(from, b[i])));
  return out;
}

const around = (theta) => ((theta % 16) + 16) % 16;
const shorter = (arc) => (arc > 8 ? arc - 16 : arc < -8 ? arc + 16 : arc);
const fraction = (t) => even(Math.min(1, Math.max(0, t)) * 65536) / 65536;

function states(a, b, t, phase) {
  return Uint8Array.from(a, (from, i) => {
    const to = b[i];
    const quantised = fraction(each(t, Math.floor(i / 16)));
    const rho = (from >> 4) + ((to >> 4) - (from >> 4)) * quantised;
    const theta = even(phase(from & 15, to & 15, quantised));
    return (even(rho) << 4) | around(theta);
  });
}

/** Rounds half to even. */
function even(x) {
  const low = Math.floor(x);
  if (x - low !== 0.5) return Math.round(x);
  return low % 2 === 0 ? low : low + 1;
}

/** The largest difference, or Infinity where the lengths differ or something is not a number. */
export function error(got, expected) {
  if (got.length !== expected.length) return Infinity;
  let worst = 0;
  for (let i = 0; i < got.length; i++) {
    const difference = Math.abs(got[i] - expected[i]);
    if (!(difference <= worst)) worst = difference >= 0 ? difference : Infinity;
  }
  return worst;
}
