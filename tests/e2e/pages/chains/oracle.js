// What tensors should hold, in float64 with bounds: `{ dims, values }`, by NumPy's rules.
//
// Obvious rather than fast, and no code of the package. What does not fit gives
// undefined, where the package must throw.

import {
  add,
  BINARY,
  div,
  exact,
  exp,
  inOrder,
  mul,
  narrow,
  neg,
  NORMS,
  REDUCTIONS,
  rescaled,
  sum,
  UNARY,
  where as chosen,
} from "./bounds.js";

const countOf = (dims) => dims.reduce((product, dim) => product * dim, 1);

/** Calls `visit` for each place of a shape, in order. The place must not be kept. */
function eachPlace(dims, visit) {
  const place = dims.map(() => 0);
  const count = countOf(dims);
  for (let i = 0; i < count; i++) {
    visit(place, i);
    for (let axis = dims.length - 1; axis >= 0; axis--) {
      place[axis] += 1;
      if (place[axis] < dims[axis]) break;
      place[axis] = 0;
    }
  }
}

function make(dims, value) {
  const values = new Array(countOf(dims));
  eachPlace(dims, (place, i) => (values[i] = value(place)));
  return { dims, values };
}

/** The value at a place; a longer one is that of a shape that this broadcasts to. */
function at({ dims, values }, place) {
  const skipped = place.length - dims.length;
  let index = 0;
  for (let axis = 0; axis < dims.length; axis++) {
    const own = dims[axis] === 1 ? 0 : place[skipped + axis];
    index = index * dims[axis] + own;
  }
  return values[index];
}

export const tensor = (dims, data) => ({
  dims,
  values: Array.from(data, exact),
});

function broadcast(a, b) {
  const rank = Math.max(a.length, b.length);
  const dims = [];
  for (let axis = 0; axis < rank; axis++) {
    const [ofA, ofB] = [a, b].map((d) => d[axis - rank + d.length] ?? 1);
    if (ofA !== ofB && ofA !== 1 && ofB !== 1) return undefined;
    dims.push(ofA === 1 ? ofB : ofA);
  }
  return dims;
}

export const unary = (name, x) => ({
  dims: x.dims,
  values: x.values.map(UNARY[name]),
});

export function binary(name, a, b) {
  const dims = broadcast(a.dims, b.dims);
  return dims && make(dims, (p) => BINARY[name](at(a, p), at(b, p)));
}

export function where(condition, a, b) {
  const both = broadcast(condition.dims, a.dims);
  const dims = both && broadcast(both, b.dims);
  return (
    dims && make(dims, (p) => chosen(at(condition, p), at(a, p), at(b, p)))
  );
}

export function clamp(x, low, high) {
  for (const { dims } of [low, high]) {
    const whole = broadcast(x.dims, dims);
    if (whole === undefined || String(whole) !== String(x.dims))
      return undefined;
  }
  return make(x.dims, (p) =>
    BINARY.minimum(BINARY.maximum(at(x, p), at(low, p)), at(high, p)),
  );
}

export function dot(a, b) {
  const whole = broadcast(a.dims, b.dims);
  if (whole === undefined || whole.length === 0) return undefined;
  const count = whole.at(-1);
  return make(whole.slice(0, -1), (place) => {
    const product = (k) => mul(at(a, [...place, k]), at(b, [...place, k]));
    return sum(Array.from({ length: count }, (_, k) => product(k)));
  });
}

export function matmul(a, b) {
  const suits = ({ dims }) => dims.length >= 1 && dims.length < 8;
  if (!suits(a) || !suits(b)) return undefined;
  const count = a.dims.at(-1);
  const stack = broadcast(a.dims.slice(0, -2), b.dims.slice(0, -2));
  const isVector = b.dims.length === 1;
  if (count !== b.dims.at(isVector ? -1 : -2) || stack === undefined) {
    return undefined;
  }
  const rows = a.dims.slice(-2, -1);
  const columns = isVector ? [] : b.dims.slice(-1);
  return make([...stack, ...rows, ...columns], (place) => {
    const front = place.slice(0, stack.length);
    const row = place.slice(stack.length, stack.length + rows.length);
    const column = place.slice(stack.length + rows.length);
    const product = (k) =>
      mul(at(a, [...front, ...row, k]), at(b, [...front, k, ...column]));
    return inOrder(Array.from({ length: count }, (_, k) => product(k)));
  });
}

/**
 * softmax(q kT * scale) v for each head. Beside the errors of what it is made of, weights
 * are scaled again whenever a larger score is found, which is at most once a key. Neighboring heads
 * of queries share one of keys, where these have fewer.
 */
export function attention(q, k, v, { heads, scale, causal, window }) {
  const all = [q, k, v];
  if (all.some(({ dims }) => dims.length < 2 || dims.length > 7))
    return undefined;
  const [rows, width] = q.dims.slice(-2);
  const keys = k.dims.at(-2);
  const stacks = all.map(({ dims }) => dims.slice(0, -2));
  const stack = stacks.reduce((a, b) => a && broadcast(a, b));
  const size = width / heads;
  const ofKeys = k.dims.at(-1) / size;
  const sharing = heads / ofKeys;
  const fits =
    v.dims.at(-1) === k.dims.at(-1) &&
    v.dims.at(-2) === keys &&
    [size, ofKeys, sharing].every((x) => Number.isInteger(x) && x >= 1) &&
    size <= 512 &&
    keys > 0;
  if (
    !fits ||
    ((causal || window !== undefined) && rows > keys) ||
    stack === undefined
  )
    return undefined;
  let known;
  let weights;
  return make([...stack, rows, width], (place) => {
    const [row, column] = place.slice(-2);
    const front = place.slice(0, -2);
    const first = Math.floor(column / size) * size;
    const shared = Math.floor(first / size / sharing) * size;
    const own = row + keys - rows;
    const from = window === undefined ? 0 : Math.max(0, own - window);
    const near = window === undefined ? keys : Math.min(keys, own + window + 1);
    const end = causal ? own + 1 : near;
    const seen = end - from;
    if (known !== String([front, row, first])) {
      known = String([front, row, first]);
      const scores = Array.from({ length: seen }, (_, i) => {
        const key = from + i;
        const product = (i) =>
          mul(
            at(q, [...front, row, first + i]),
            at(k, [...front, key, shared + i]),
          );
        return mul(
          inOrder(Array.from({ length: size }, (_, i) => product(i))),
          scale,
        );
      });
      const most = neg(REDUCTIONS.max(scores));
      weights = scores.map((score) => rescaled(exp(add(score, most)), seen));
    }
    const values = Array.from({ length: keys }, (_, key) =>
      at(v, [...front, key, shared + column - first]),
    );
    // The value may be NaN, and NaN times 0 is NaN.
    if (
      values.some(({ e }, key) => (key < from || key >= end) && e === Infinity)
    )
      return { v: NaN, e: Infinity };
    const weighed = weights.map((weight, i) => mul(weight, values[from + i]));
    return div(inOrder(weighed), inOrder(weights));
  });
}

/** `axes` are from 0 on, each once. */
export function reduce(name, x, axes, keepDims) {
  const { dims } = x;
  const kept = dims.map((dim, axis) => (axes.includes(axis) ? 1 : dim));
  const rows = Array.from({ length: countOf(kept) }, () => []);
  eachPlace(dims, (place, i) => {
    let row = 0;
    for (let axis = 0; axis < dims.length; axis++) {
      row = row * kept[axis] + (axes.includes(axis) ? 0 : place[axis]);
    }
    rows[row].push(x.values[i]);
  });
  const shape = keepDims
    ? kept
    : kept.filter((_, axis) => !axes.includes(axis));
  const most = narrow(axes, dims.length);
  return {
    dims: shape,
    values: rows.map((row) => REDUCTIONS[name](row, most)),
  };
}

export function norm(name, x, axis, epsilon) {
  const { dims } = x;
  const result = { dims, values: new Array(x.values.length) };
  const step = countOf(dims.slice(axis + 1));
  eachPlace(dims, (place, i) => {
    if (place[axis] !== 0) return;
    const row = Array.from(
      { length: dims[axis] },
      (_, k) => x.values[i + k * step],
    );
    NORMS[name](row, narrow([axis], dims.length), epsilon).forEach(
      (q, k) => (result.values[i + k * step] = q),
    );
  });
  return result;
}

export function transpose(x, order) {
  const dims = order.map((axis) => x.dims[axis]);
  return make(dims, (place) => {
    const from = [];
    order.forEach((axis, i) => (from[axis] = place[i]));
    return at(x, from);
  });
}

/** Ranges as Python's `slice(...)`, one an axis, picked from a list of places. */
export function slice(x, ranges) {
  const places = ranges.map((range, axis) => sliced(x.dims[axis], range));
  const dims = places.map(({ length }) => length);
  return make(dims, (place) =>
    at(
      x,
      place.map((k, axis) => places[axis][k]),
    ),
  );
}

function sliced(dim, [start, end, step = 1]) {
  const count = (place) => (place < 0 ? place + dim : place);
  const places = [];
  if (step > 0) {
    const last = Math.min(end === undefined ? dim : count(end), dim);
    for (let k = Math.max(0, count(start ?? 0)); k < last; k += step)
      places.push(k);
  } else {
    const last = end === undefined ? -1 : count(end);
    const first = Math.min(dim - 1, count(start ?? dim - 1));
    for (let k = first; k > last && k >= 0; k += step) places.push(k);
  }
  return places;
}

export const reshape = (x, dims) =>
  countOf(dims) === x.values.length ? { dims, values: x.values } : undefined;

/** Indexes may be unknown, where what is picked is. */
export function gather(x, indexes, axis) {
  const rank = indexes.dims.length;
  const dims = [
    ...x.dims.slice(0, axis),
    ...indexes.dims,
    ...x.dims.slice(axis + 1),
  ];
  return make(dims, (place) => {
    const { v, e } = at(indexes, place.slice(axis, axis + rank));
    if (e > 0 || v >= x.dims[axis]) return { v: NaN, e: Infinity };
    return at(x, [...place.slice(0, axis), v, ...place.slice(axis + rank)]);
  });
}

export function concat(parts, axis) {
  const [{ dims: first }] = parts;
  const outside = (dims) =>
    String(dims.map((dim, k) => (k === axis ? 0 : dim)));
  if (parts.some(({ dims }) => outside(dims) !== outside(first)))
    return undefined;
  const dims = [...first];
  dims[axis] = parts.reduce((sum, part) => sum + part.dims[axis], 0);
  return make(dims, (place) => {
    const from = [...place];
    const part = parts.find((part) => {
      if (from[axis] < part.dims[axis]) return true;
      from[axis] -= part.dims[axis];
      return false;
    });
    return at(part, from);
  });
}
