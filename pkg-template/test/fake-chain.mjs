// Chains in JavaScript: their words read, and computed with plain loops.
//
// Written from the wire's description and not from the encoder, so each tests the
// other. Every op is computed in float64 and rounded once; places are u32.

const UNARY = [
  (x) => (x < 0 ? 0 : x),
  (x) => 1 / (1 + Math.exp(-x)),
  Math.tanh,
  (x) => x / (1 + Math.exp(-x)),
  (x) => (x * (1 + erf(x * Math.SQRT1_2))) / 2,
  (x) =>
    (x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))) / 2,
  Math.exp,
  Math.log,
  Math.sqrt,
  Math.abs,
  (x) => -x,
  Math.sin,
  Math.cos,
  Math.floor,
  Math.ceil,
  halfToEven,
  Math.sign,
];
const BINARY = [
  (a, b) => a + b,
  (a, b) => a - b,
  (a, b) => a * b,
  (a, b) => a / b,
  Math.min,
  Math.max,
  Math.pow,
  (a, b) => a - b * Math.floor(a / b),
  Math.atan2,
  (a, b) => Number(a < b),
  (a, b) => Number(a <= b),
  (a, b) => Number(a > b),
  (a, b) => Number(a >= b),
  (a, b) => Number(a === b),
  (a, b) => Number(a !== b),
];
const sum = (values) => values.reduce((total, value) => total + value, 0);
const mean = (values) => sum(values) / values.length;
const REDUCE = [
  sum,
  mean,
  (values) => Math.max(...values),
  (values) => Math.min(...values),
  (values) => {
    const nan = values.findIndex(Number.isNaN);
    return nan >= 0 ? nan : values.indexOf(Math.max(...values));
  },
];
const squares = (values) => values.map((value) => value * value);
const NORM = [
  (row) => {
    const top = Math.max(...row);
    const powers = row.map((x) => Math.exp(x - top));
    return powers.map((power) => power / sum(powers));
  },
  (row, epsilon) => {
    const centered = row.map((x) => x - mean(row));
    const scale = Math.sqrt(mean(squares(centered)) + epsilon);
    return centered.map((x) => x / scale);
  },
  (row, epsilon) => {
    const scale = Math.sqrt(mean(squares(row)) + epsilon);
    return row.map((x) => x / scale);
  },
  (row, epsilon) => {
    const length = Math.max(Math.sqrt(sum(squares(row))), epsilon);
    return row.map((x) => x / length);
  },
];

/** The chain that words stand for. Throws for words that are none. */
export function decode(words) {
  let at = 2;
  const nodes = [];
  for (let id = 0; id < words[0]; id += 1) {
    const head = words[at];
    const end = at + 1 + ((head >>> 8) & 0xff);
    const operands = [...words.subarray(at + 1, end)];
    at = end + (head >>> 16);
    const attributes = [...words.subarray(end, at)];
    if (operands.some((operand) => operand >= id)) throw new Error("no chain");
    nodes.push({ code: head & 0xff, operands, attributes });
  }
  const places = [...words.subarray(at, at + words[1])];
  if (at + words[1] !== words.length) throw new Error("no chain");
  for (const node of nodes) Object.assign(node, infer(node, nodes));
  const outputs = places.map((place) => place & 0x7fff);
  const stores = places.filter((place) => place >= 0x8000).map(storeOf);
  stores.forEach((store, i) => checkStore(store, nodes[outputs[i]], nodes));
  if (stores.length % outputs.length !== 0) throw new Error("no chain");
  const inputs = nodes.filter(({ code }) => code === 0);
  return {
    nodes,
    outputs,
    stores,
    withCall: inputs.filter(({ attributes }) => attributes[1] === 0),
    resident: inputs.filter(({ attributes }) => attributes[1] >= 1),
    numbers: nodes.filter(({ code }) => code === 1),
  };
}

/** Where an output is stored, by its word. */
function storeOf(place) {
  return { target: (place >>> 16) - 1, isPart: (place & 0x8000) !== 0 };
}

function checkStore({ target, isPart }, result, nodes) {
  const { code, attributes, dims, isIndexes } = nodes[target];
  const isSame = String(dims) === String(result.dims);
  const isSmaller = count(result.dims) <= count(dims);
  const isRead = nodes.some(({ operands }) => operands.includes(target));
  const fits = isPart ? isSmaller && !isRead : isSame;
  const isResident = code === 0 && attributes[1] === 1;
  if (!isResident || !fits || isIndexes !== result.isIndexes) {
    throw new Error("no target");
  }
}

/** Words of a call's arguments, and of its result. */
export function sizes({ nodes, outputs, stores, ...chain }) {
  const { withCall, resident, numbers } = chain;
  const total = (list) =>
    list.reduce((words, { dims }) => words + aligned(count(dims)), 0);
  return {
    words:
      total(withCall) +
      aligned(numbers.length) +
      aligned(resident.length + Number(stores.length > 0)),
    // The last output ends where it ends.
    result: (stores.length > 0 ? [] : outputs).reduce(
      (end, id) => aligned(end) + count(nodes[id].dims),
      0,
    ),
  };
}

/** The tensors that a call's arguments at word `at` name. */
export function names(chain, words, at) {
  const { words: all } = sizes(chain);
  const isStored = Number(chain.stores.length > 0);
  const start = at + all - aligned(chain.resident.length + isStored);
  return [...words.subarray(start, start + chain.resident.length)];
}

/** Computes a call's outputs into `source`, from word `offset` on. */
export function run(chain, words, at, tensors, source, offset) {
  const floats = new Float32Array(words.buffer);
  const data = (node) => (node.isIndexes ? words : floats);
  const values = new Map();
  for (const node of chain.withCall) {
    values.set(node, data(node).slice(at, at + count(node.dims)));
    at += aligned(count(node.dims));
  }
  for (const node of chain.numbers) values.set(node, floats.slice(at, ++at));
  at = (at + 3) & ~3;
  const numbers = new Map();
  for (const node of chain.resident) {
    numbers.set(node, words[at]);
    const held = tensors.get(words[at++]);
    // Words on the device are bits, whatever they stand for.
    if (!(held instanceof Uint32Array)) throw new Error("no words");
    const Kind = node.isIndexes ? Uint32Array : Float32Array;
    values.set(node, new Kind(held.buffer, held.byteOffset, held.length));
  }
  for (const node of chain.nodes) {
    if (values.has(node)) continue;
    const operands = node.operands.map((id) => ({
      dims: chain.nodes[id].dims,
      values: values.get(chain.nodes[id]),
    }));
    const Kind = node.isIndexes ? Uint32Array : Float32Array;
    values.set(node, Kind.from(evaluate(node, operands)));
  }
  if (chain.stores.length > 0) {
    const results = chain.outputs.map((id) => values.get(chain.nodes[id]));
    chain.stores.forEach(({ target, isPart }, i) => {
      const number = numbers.get(chain.nodes[target]);
      // Copies: other calls may read what was there, and results may be inputs.
      const stored = tensors.get(number).slice();
      const { buffer, byteOffset, length } = results[i].slice();
      stored.set(
        new Uint32Array(buffer, byteOffset, length),
        isPart ? words[at] : 0,
      );
      tensors.set(number, stored);
    });
    return;
  }
  for (const id of chain.outputs) {
    const node = chain.nodes[id];
    const Kind = node.isIndexes ? Uint32Array : Float32Array;
    new Kind(source.buffer).set(values.get(node), offset);
    offset += aligned(count(node.dims));
  }
}

function infer({ code, operands, attributes }, nodes) {
  const [x, y] = operands.map((id) => nodes[id]);
  const dims = x?.dims;
  const [first] = attributes;
  const plain = (dims) => ({ dims, isIndexes: false });
  switch (code) {
    case 0:
      return { dims: attributes.slice(2), isIndexes: first >= 1 };
    case 1:
      return plain([]);
    case 3:
      return plain(broadcast(dims, y.dims));
    case 15:
      return plain(operands.map((id) => nodes[id].dims).reduce(broadcast));
    case 5:
      return plain(broadcast(dims, y.dims).slice(0, -1));
    case 6: {
      const axes = attributes.slice(2);
      const kept = dims.map((dim, axis) => (axes.includes(axis) ? 1 : dim));
      const left = dims.filter((_, axis) => !axes.includes(axis));
      return { dims: attributes[1] ? kept : left, isIndexes: first === 4 };
    }
    case 8:
      return {
        isIndexes: x.isIndexes,
        dims: attributes.map((axis) => dims[axis]),
      };
    case 9:
      return {
        isIndexes: x.isIndexes,
        dims: dims.map((_, axis) => range(attributes, axis).length),
      };
    case 10:
      return { isIndexes: x.isIndexes, dims: attributes };
    case 11:
      return {
        isIndexes: x.isIndexes,
        dims: dims.toSpliced(first, 1, ...y.dims),
      };
    case 12: {
      const along = operands.map((id) => nodes[id].dims[first]);
      return { isIndexes: x.isIndexes, dims: dims.with(first, sum(along)) };
    }
    default:
      return plain(dims);
  }
}

function evaluate(node, operands) {
  const { code, attributes, dims } = node;
  const [x, y, z] = operands;
  const [first] = attributes;
  const each = (value) =>
    Array.from({ length: count(dims) }, (_, i) => value(place(i, dims)));
  switch (code) {
    case 2:
      return Array.from(x.values, UNARY[first]);
    case 3:
      return each((at) => BINARY[first](pick(x, at), pick(y, at)));
    case 4:
      return each((at) =>
        Math.min(Math.max(pick(x, at), pick(y, at)), pick(z, at)),
      );
    case 5: {
      const whole = broadcast(x.dims, y.dims);
      return each((at) =>
        sum(
          Array.from({ length: whole.at(-1) }, (_, i) => {
            return pick(x, [...at, i]) * pick(y, [...at, i]);
          }),
        ),
      );
    }
    case 6: {
      const axes = attributes.slice(2);
      const rows = new Map();
      x.values.forEach((value, i) => {
        const kept = place(i, x.dims).filter((_, axis) => !axes.includes(axis));
        rows.set(String(kept), [...(rows.get(String(kept)) ?? []), value]);
      });
      return each((at) => {
        const left = attributes[1]
          ? at.filter((_, axis) => !axes.includes(axis))
          : at;
        return REDUCE[first](rows.get(String(left)) ?? []);
      });
    }
    case 7: {
      const axis = attributes[1];
      const row = (at) =>
        Array.from({ length: dims[axis] }, (_, i) => pick(x, at.with(axis, i)));
      return each((at) => NORM[first](row(at), y?.values[0])[at[axis]]);
    }
    case 8:
      return each((at) => {
        const from = [];
        attributes.forEach((axis, i) => (from[axis] = at[i]));
        return pick(x, from);
      });
    case 9:
      return each((at) =>
        pick(
          x,
          at.map((i, axis) => range(attributes, axis)[i]),
        ),
      );
    case 10:
      return x.values;
    case 11:
      return each((at) => {
        const rank = y.dims.length;
        const index = pick(y, at.slice(first, first + rank));
        return index < x.dims[first]
          ? pick(x, at.toSpliced(first, rank, index))
          : NaN;
      });
    case 12:
      return each((at) => {
        let i = at[first];
        const part = operands.find(({ dims }) => {
          if (i < dims[first]) return true;
          i -= dims[first];
          return false;
        });
        return pick(part, at.with(first, i));
      });
    case 15:
      return each((at) => pick(pick(x, at) === 0 ? z : y, at));
  }
  throw new Error(`no chain: op ${code}`);
}

// Of two whole numbers that are as near the even one.
function halfToEven(x) {
  const near = Math.round(x);
  return near - x === 0.5 && near % 2 !== 0 ? near - 1 : near;
}

// The places of a range, all within its axis: start, step as a signed word, count.
function range(attributes, axis) {
  const [start, step, count] = attributes.slice(axis * 3, axis * 3 + 3);
  return Array.from({ length: count }, (_, i) => start + i * (step | 0));
}

function broadcast(a, b) {
  const rank = Math.max(a.length, b.length);
  const full = (dims) => [...new Array(rank - dims.length).fill(1), ...dims];
  const [left, right] = [full(a), full(b)];
  return left.map((dim, axis) => (dim === 1 ? right[axis] : dim));
}

function place(index, dims) {
  const at = [];
  for (let axis = dims.length - 1; axis >= 0; axis -= 1) {
    at[axis] = index % dims[axis];
    index = Math.floor(index / dims[axis]);
  }
  return at;
}

// The element at a place of a shape that this one broadcasts to.
function pick({ dims, values }, at) {
  const own = at.slice(at.length - dims.length);
  return values[
    dims.reduce(
      (index, dim, axis) => index * dim + (dim === 1 ? 0 : own[axis]),
      0,
    )
  ];
}

const count = (dims) => dims.reduce((product, dim) => product * dim, 1);
const aligned = (words) => (words + 3) & ~3;

// The series, which is exact enough up to 4; beyond, it is 1 to a float's last place.
function erf(x) {
  if (Math.abs(x) > 4) return Math.sign(x);
  let term = x;
  let total = x;
  for (let n = 1; n < 100; n += 1) {
    term *= (-x * x) / n;
    total += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * total;
}
