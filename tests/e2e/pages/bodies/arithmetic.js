// What bodies of kernels compute with: numbers as JavaScript has them, and numbers with what a
// device may be off. No code of the package.

/** As JavaScript computes. */
export const PLAIN = {
  exactly: (x) => x,
  neg: (x) => -x,
  abs: Math.abs,
  sqrt: (x) => Math.sqrt(Math.abs(x) + 0.5),
  exp: (x) => Math.exp(Math.min(Math.max(x, -4), 4)),
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / (Math.abs(b) + 0.5),
  min: Math.min,
  max: Math.max,
  below: (a, b, then, other) => (a < b ? then : other),
};

/** Half the distance of floats at 1. */
const U = 2 ** -24;
/** Below this a device may take a float as zero. */
const SMALLEST = 1.2e-38;
/** How often a sum's or a product's rounding counts, because of the order that is not known. */
const ORDERS = 4;
/** Beyond this magnitude nothing is said: it may be more than floats hold. */
const LARGEST = 1e30;

/**
 * A value, what a device may be off, and the same sums and products of magnitudes: compilers of
 * devices put these in another order, so that a sum of numbers that cancel one another is off by
 * as much as the magnitudes of all that is summed allow.
 */
function bounded(v, error, roundings, size = Math.abs(v) + error) {
  const e = error + (size + error) * roundings * U + SMALLEST;
  return size < LARGEST && e < LARGEST
    ? { v, e, size }
    : { v: 0, e: Infinity, size: LARGEST };
}

const exact = (v) => ({ v, e: 0, size: Math.abs(v) });
const neg = (x) => ({ ...x, v: -x.v });
const abs = (x) => ({ ...x, v: Math.abs(x.v) });
const add = (a, b) => bounded(a.v + b.v, a.e + b.e, ORDERS, a.size + b.size);

/** Whether a device may have another order of two numbers. */
function isOpen(a, b) {
  const error = a.e + b.e;
  return error > 0 && Math.abs(a.v - b.v) <= error;
}

/** The first of two numbers, or the second if the device takes that. */
const either = (a, b) => ({
  v: a.v,
  e: Math.max(a.e, Math.abs(a.v - b.v) + b.e),
  size: Math.max(a.size, b.size),
});

/** What a device has of two numbers, of which the first should be chosen. */
const chosen = (a, b) => (isOpen(a, b) ? either(a, b) : a);

/** The magnitude and a half, and the least of it that a device may have. */
function away(x) {
  const by = add(abs(x), exact(0.5));
  return { by, least: Math.max(by.v - by.e, 0.49) };
}

/** With what a device may be off, by WGSL's table of accuracies. */
export const BOUNDED = {
  exactly: exact,
  neg,
  abs,
  sqrt(x) {
    const { by, least } = away(x);
    const root = Math.sqrt(by.v);
    const [low, high] = [Math.sqrt(least), Math.sqrt(by.v + by.e)];
    // 2 units of the last place for the inverse root, 2.5 for the division.
    return bounded(root, Math.max(root - low, high - root), 9);
  },
  exp({ v, e }) {
    const of = Math.min(Math.max(v, -4), 4);
    // WGSL allows 3 units of the last place, and 2 for each of the argument. Mesa's software
    // adapter, which Firefox takes, is off by more.
    const units = 2 * (3 + 2 * Math.min(Math.abs(of) + e, 4));
    const power = Math.exp(of);
    return bounded(power, power * Math.expm1(Math.min(e, 8)), 2 * units);
  },
  add,
  sub: (a, b) => add(a, neg(b)),
  mul(a, b) {
    const e = Math.abs(a.v) * b.e + (Math.abs(b.v) + b.e) * a.e;
    return bounded(a.v * b.v, e, ORDERS, a.size * b.size);
  },
  div(a, b) {
    const { by, least } = away(b);
    const v = a.v / by.v;
    const e = (a.e + Math.abs(v) * by.e) / least;
    // 2.5 units for the division.
    return bounded(v, e, ORDERS + 5, a.size / least);
  },
  min: (a, b) => (a.v < b.v ? chosen(a, b) : chosen(b, a)),
  max: (a, b) => (a.v < b.v ? chosen(b, a) : chosen(a, b)),
  below(a, b, then, other) {
    const [first, rest] = a.v < b.v ? [then, other] : [other, then];
    return isOpen(a, b) ? either(first, rest) : first;
  },
};
