// Numbers in float64 with what a device may be off: `{ v, e }`.
//
// Written from the definitions, with the errors that are stated for each op carried
// along. Where nothing can be said, as beside a pole, the bound is infinite. No code of
// the package.

/** Half the distance of floats at 1. */
const U = 2 ** -24;
/** Below this a device may take a float as zero. */
const SMALLEST = 1.2e-38;
const LARGEST = 3.4028234663852886e38;

export const exact = (v) => ({ v, e: 0 });

function number(v, propagated, own) {
  const e = propagated + own + SMALLEST;
  // Beyond the floats, or unknown: anything goes.
  const isKnown = Number.isFinite(v) && Math.abs(v) + e <= LARGEST;
  return { v, e: isKnown ? e : Infinity };
}

export function add(a, b) {
  const v = a.v + b.v;
  return number(v, a.e + b.e, U * (Math.abs(v) + a.e + b.e));
}

export const neg = ({ v, e }) => ({ v: -v, e });

export function mul(a, b) {
  const v = a.v * b.v;
  const e = Math.abs(a.v) * b.e + Math.abs(b.v) * a.e + a.e * b.e;
  return number(v, e, U * (Math.abs(v) + e));
}

export function div(a, b) {
  const v = a.v / b.v;
  const low = Math.abs(b.v) - b.e;
  if (!(low > 0)) return number(v, Infinity, 0);
  const e = (a.e + Math.abs(v) * b.e) / low;
  return number(v, e, 5 * U * (Math.abs(v) + e));
}

/** A function that grows or falls all the way between the ends of what is known. */
function monotone(x, f, own) {
  if (!Number.isFinite(x.e)) return x;
  const v = f(x.v);
  const e = Math.max(Math.abs(f(x.v - x.e) - v), Math.abs(f(x.v + x.e) - v));
  return number(v, e, own(Math.abs(v) + e));
}

export const exp = (x) =>
  monotone(x, Math.exp, (v) => (6 + 4 * (Math.abs(x.v) + x.e)) * U * v);
export const sqrt = (x) => monotone(x, Math.sqrt, (v) => 10 * U * v);

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/** The normal distribution: erf by its series near 0, erfc by its fraction elsewhere. */
function normal(x) {
  const z = Math.abs(x) / Math.SQRT2;
  let tail;
  if (z < 2) {
    let term = z;
    let sum = z;
    for (let n = 1; n < 60; n++) {
      term *= (-z * z) / n;
      sum += term / (2 * n + 1);
    }
    tail = 0.5 - sum / Math.sqrt(Math.PI);
  } else {
    let fraction = z;
    for (let k = 79; k > 0; k--) fraction = z + k / 2 / fraction;
    tail = Math.exp(-z * z) / fraction / Math.sqrt(Math.PI) / 2;
  }
  return x < 0 ? tail : 1 - tail;
}

const slope = (x) => 1.5957691216057308 * (x + 0.044715 * x ** 3);

/** x times a factor between 0 and 1, which may be taken as 0; its slope is below 1.13. */
function gentle(x, factor, own, least = 0) {
  const v = x.v * factor;
  const e = 1.13 * x.e;
  const size = Math.abs(x.v) + x.e;
  return number(
    v,
    e,
    own * U * (Math.abs(v) + e) + (least * U + SMALLEST) * size,
  );
}

const sizeOf = ({ v, e }) => Math.abs(v) + e;

/** Half to even. */
function rounded(x) {
  const near = Math.round(x);
  return near - x === 0.5 && near % 2 !== 0 ? near - 1 : near;
}

/** Functions that are exact where the value is. */
const steps = (f) => (x) => monotone(x, f, () => 0);

/** Functions whose slope is at most 1. */
const wave = (f) => (x) => number(f(x.v), x.e, 4 * U);

/** Functions of one value, by the tensor's method. */
export const UNARY = {
  relu: (x) =>
    monotone(
      x,
      (v) => Math.max(v, 0),
      () => 0,
    ),
  sigmoid: (x) => monotone(x, sigmoid, (v) => (16 + 4 * sizeOf(x)) * U * v),
  tanh: (x) => monotone(x, Math.tanh, (v) => 24 * U * v),
  silu: (x) => gentle(x, sigmoid(x.v), 16 + 4 * sizeOf(x)),
  gelu: (x) => gentle(x, normal(x.v), 32 + 8 * sizeOf(x) ** 2, 4),
  geluTanh: (x) => gentle(x, sigmoid(slope(x.v)), 32 + 16 * slope(sizeOf(x))),
  exp,
  log: (x) => monotone(x, Math.log, (v) => Math.max(6 * U * v, 2 ** -21)),
  sqrt,
  abs: ({ v, e }) => ({ v: Math.abs(v), e }),
  neg,
  sin: wave(Math.sin),
  cos: wave(Math.cos),
  floor: steps(Math.floor),
  ceil: steps(Math.ceil),
  round: steps(rounded),
  sign: steps(Math.sign),
};

function pow(x, y) {
  const v = x.v ** y.v;
  // Powers of what may be negative are steep, or none; nothing is said of them here.
  if (!(x.v - x.e > 0)) return number(v, Infinity, 0);
  let e = 0;
  for (const base of [x.v - x.e, x.v + x.e]) {
    for (const exponent of [y.v - y.e, y.v + y.e]) {
      e = Math.max(e, Math.abs(base ** exponent - v));
    }
  }
  const exponent = sizeOf(y) * Math.abs(Math.log2(x.v));
  const own = (16 + 16 * exponent) * U + sizeOf(y) * 2 ** -21;
  return number(v, e, own * (Math.abs(v) + e));
}

/** Between 0 and b: whatever else is not known, this is. */
function mod(a, b) {
  const rest = a.v % b.v; // Exact, with the sign of a.
  const v = rest !== 0 && rest < 0 !== b.v < 0 ? rest + b.v : rest;
  const moved = a.e + (Math.abs(Math.floor(a.v / b.v)) + 1) * b.e;
  const isSure =
    moved === 0 || (Math.abs(v) > moved && Math.abs(b.v) - Math.abs(v) > moved);
  let e = isSure ? moved : sizeOf(b);
  if (Math.abs(b.v) <= b.e) e = Infinity;
  return number(v, e, U * (Math.abs(v) + e));
}

/** The angle of the point (b, a). */
function atan2(a, b) {
  const v = Math.atan2(a.v, b.v);
  const away = Math.hypot(a.v, b.v) - a.e - b.e;
  const isCut = b.v - b.e <= 0 && Math.abs(a.v) <= a.e;
  let e = a.e + b.e === 0 ? 0 : Infinity;
  if (away > 0 && !isCut) e = (a.e + b.e) / away;
  return number(v, e, 16 * U * (Math.abs(v) + e));
}

/** 1 or 0, unless the values are so near that either may be. */
const truth = (holds) => (a, b) => {
  const isSure = Math.abs(a.v - b.v) > a.e + b.e || a.e + b.e === 0;
  return number(Number(holds(a.v, b.v)), isSure ? 0 : 1, 0);
};

/** One of two values, by a condition. */
export function where(condition, a, b) {
  const chosen = condition.v === 0 ? b : a;
  if (condition.e === 0 || Math.abs(condition.v) > condition.e) return chosen;
  return number(chosen.v, a.e + b.e + Math.abs(a.v - b.v), 0);
}

/** Functions of two values, by the tensor's method. */
export const BINARY = {
  add,
  sub: (a, b) => add(a, neg(b)),
  mul,
  div,
  minimum: (a, b) => number(Math.min(a.v, b.v), Math.max(a.e, b.e), 0),
  maximum: (a, b) => number(Math.max(a.v, b.v), Math.max(a.e, b.e), 0),
  pow,
  mod,
  atan2,
  less: truth((a, b) => a < b),
  lessEqual: truth((a, b) => a <= b),
  greater: truth((a, b) => a > b),
  greaterEqual: truth((a, b) => a >= b),
  equal: truth((a, b) => a === b),
  notEqual: truth((a, b) => a !== b),
};

/**
 * What sums of so many values may be off, relative to the sum of their magnitudes; up to
 * `narrow` they are summed one by one.
 */
function sumError(count, narrow) {
  if (count <= narrow) return count * U;
  if (count <= 4096) return (count / 64 + 8) * U;
  return 72 * U + sumError(Math.ceil(count / 4096), 32);
}

export function sum(values, narrow = 32) {
  let [v, e, size] = [0, 0, 0];
  for (const q of values) {
    v += q.v;
    e += q.e;
    size += Math.abs(q.v);
  }
  return number(v, e, sumError(values.length, narrow) * (size + e));
}

/** A sum from the first to the last. */
export function inOrder(values) {
  const size = values.reduce((all, q) => all + sizeOf(q), 0);
  const { v, e } = values.reduce(
    (all, q) => ({ v: all.v + q.v, e: all.e + q.e }),
    exact(0),
  );
  return number(v, e, values.length * U * size);
}

/** A weight that may be scaled as often as there are keys. */
export const rescaled = ({ v, e }, keys) =>
  number(v, e, 8 * keys * U * (Math.abs(v) + e));

export const mean = (values, narrow) =>
  div(sum(values, narrow), exact(values.length));

function extreme(values, pick) {
  const all = values.map(({ v }) => v);
  const e = values.reduce((most, q) => Math.max(most, q.e), 0);
  return number(pick(...all), e, 0);
}

/** Unknown where another one may be as large. */
function argmax(values) {
  let best = 0;
  values.forEach(({ v }, i) => {
    if (v > values[best].v) best = i;
  });
  const at = values[best];
  const isOpen = values.some(
    // NaN is the largest, and compares as nothing.
    ({ v, e }, i) => i !== best && !(v + e < at.v - at.e) && e + at.e > 0,
  );
  return { v: best, e: isOpen ? Infinity : 0 };
}

/** How many values are summed one by one: more along other axes than the last. */
export const narrow = (axes, rank) => (axes.includes(rank - 1) ? 32 : 512);

/** One value of many, by the tensor's method. */
export const REDUCTIONS = {
  sum,
  mean,
  max: (values) => extreme(values, Math.max),
  min: (values) => extreme(values, Math.min),
  argmax,
};

const scaled = (row, by) => row.map((q) => div(q, by));
const squares = (row) => row.map((q) => mul(q, q));

/** Each value of a row with all of it, by the tensor's method. */
export const NORMS = {
  softmax(row, narrow) {
    const most = neg(REDUCTIONS.max(row));
    const powers = row.map((q) => exp(add(q, most)));
    return scaled(powers, sum(powers, narrow));
  },
  layerNorm(row, narrow, epsilon = 1e-5) {
    const middle = neg(mean(row, narrow));
    const centered = row.map((q) => add(q, middle));
    const variance = mean(squares(centered), narrow);
    return scaled(centered, sqrt(add(variance, float(epsilon))));
  },
  rmsNorm: (row, narrow, epsilon = 1e-6) =>
    scaled(row, sqrt(add(mean(squares(row), narrow), float(epsilon)))),
  normalize: (row, narrow, epsilon = 1e-12) =>
    scaled(
      row,
      BINARY.maximum(sqrt(sum(squares(row), narrow)), float(epsilon)),
    ),
};

/** A number as it gets to a device. */
export const float = (value) => exact(Math.fround(value));
