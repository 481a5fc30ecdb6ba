// What the core of the tests answers calls with, other than chains: sizes and results.
//
// `lerp` is computed truly, everything else by a formula that tells results apart.

export const aligned = (words) => (words + 3) & ~3;

/** How many words a call has of each operand, of all, and of its result. */
export function shapeOf(spec, rows) {
  const { op, width, each, layers, row: fields, isStored } = spec;
  if (op === "searching") {
    const { count, mask, pages } = spec;
    const words = aligned(rows * fields) + aligned(mask) + aligned(pages);
    return { operand: fields, words, result: rows * 2 * count };
  }
  if (op === "insertion") {
    const names = spec.hasSource ? 2 : 1;
    return { words: aligned(3 * rows) + aligned(names), result: 0 };
  }
  if (op === "sampling") {
    const words = aligned(rows * fields) + 4 + 4 * layers + 4;
    return { operand: fields, words, result: isStored ? 0 : rows * width };
  }
  if (op === "states.gradients") {
    return { operand: rows * 4, words: rows * 4, result: rows * 32 };
  }
  // A state of 16 bytes is 4 words.
  const row = op.startsWith("states.") ? 4 : width;
  const operand = rows * row;
  const t = each ? aligned(rows) : 0;
  const words = operandsOf(op) * aligned(operand) + t;
  let result = operand;
  if (op.startsWith("states.sequence")) result = operand * width;
  if (op.endsWith("istance")) result = rows;
  return { operand, words, result };
}

function operandsOf(op) {
  if (op.endsWith("bezier")) return 4;
  return op === "states.descend" ? 1 : 2;
}

/** Stores the result of a sampling in the tensor that the call names. */
export function storeSample(call, words, tensors) {
  const { spec, shape, rows, at } = call;
  const header = at + aligned(rows * spec.row);
  const number = words[header + 4 + 4 * spec.layers + 1];
  const result = rows * spec.width;
  const source = new Uint32Array(result);
  compute({ ...call, shape: { ...shape, result } }, words, source, 0);
  const stored = tensors.get(number).slice();
  stored.set(source, words[header + 2]);
  tensors.set(number, stored);
}

/** Writes rows of a tensor, or nobody's id, to the page that the call names, as `src/graph/insertion.rs` says. */
export function insert({ spec, rows, at }, words, tensors) {
  const { dim, hasSource } = spec;
  const names = words.subarray(at + aligned(3 * rows));
  const source = hasSource ? tensors.get(names[0]) : undefined;
  const page = tensors.get(names[hasSource ? 1 : 0]);
  const block = 128 + 64 * 4 * Math.ceil(dim / 4);
  for (let i = 0; i < rows; i += 1) {
    const [row, place, id] = words.subarray(at + 3 * i, at + 3 * i + 3);
    const [start, lane] = [Math.floor(place / 64) * block, place % 64];
    page[start + 64 + lane] = id;
    if (row === 2 ** 32 - 1) continue;
    for (let k = 0; k < dim; k += 1) {
      const quad = start + 128 + 4 * (64 * Math.floor(k / 4) + lane);
      page[quad + (k % 4)] = source[row * dim + k];
    }
  }
}

/** Writes the result of a call. */
export function compute(
  { spec, shape, rows, scalar, at },
  words,
  source,
  offset,
) {
  const floats = new Float32Array(words.buffer);
  const out = new Float32Array(source.buffer);
  const second = at + aligned(shape.operand);
  const third = second + aligned(shape.operand);
  const operands = operandsOf(spec.op);
  const last = at + operands * aligned(shape.operand);
  const tOf = (row) => (spec.each ? floats[last + row] : scalar);
  const byte = (operand, i) =>
    new Uint8Array(words.buffer)[
      (at + operand * aligned(shape.operand)) * 4 + i
    ];
  const bytesOut = new Uint8Array(source.buffer, offset * 4, shape.result * 4);
  if (spec.op === "searching") {
    // Ids from 7 on, all of the score of one half, or at no distance.
    const ids = new Uint32Array(source.buffer);
    for (let i = 0; i < shape.result; i += 1) {
      const place = i % (2 * spec.count);
      if (place < spec.count) ids[offset + i] = 7 + place;
      else out[offset + i] = spec.isDistance ? 0 : 0.5;
    }
  } else if (spec.op === "sampling") {
    // The first layer's time, and the float's number.
    for (let i = 0; i < shape.result; i += 1) {
      const row = Math.floor(i / spec.width);
      out[offset + i] = floats[at + row * spec.row] + (i % spec.width);
    }
  } else if (spec.op === "states.descend") {
    for (let i = 0; i < bytesOut.length; i += 1)
      bytesOut[i] = byte(0, i) - tOf(i >> 4);
  } else if (spec.op.endsWith("istance")) {
    for (let row = 0; row < rows; row += 1)
      out[offset + row] = byte(1, row * 16) - byte(0, row * 16);
  } else if (spec.op.startsWith("states.sequence")) {
    for (let i = 0; i < bytesOut.length; i += 1) {
      const [step, row] = [i >> 4, Math.floor((i >> 4) / spec.width)];
      const t = (step % spec.width) / (spec.width - 1);
      const from = row * 16 + (i & 15);
      bytesOut[i] = mix(byte(0, from), byte(1, from), t);
    }
  } else if (spec.op === "states.bezier") {
    // The points weigh 1, 2, 3 and 4, and t is added.
    for (let i = 0; i < bytesOut.length; i += 1) {
      const sum = [0, 1, 2, 3].reduce((n, k) => n + (k + 1) * byte(k, i), 0);
      bytesOut[i] = sum + tOf(i >> 4);
    }
  } else if (spec.op === "bezier") {
    const each = aligned(shape.operand);
    for (let i = 0; i < shape.operand; i += 1) {
      const points = [0, 1, 2, 3].map((k) => floats[at + k * each + i]);
      const sum = points.reduce((n, p, k) => n + (k + 1) * p, 0);
      out[offset + i] = sum + tOf(Math.floor(i / spec.width));
    }
  } else if (spec.op === "states.gradients") {
    const bytes = new Uint8Array(words.buffer, at * 4, rows * 16);
    bytes.forEach((byte, i) => out.set([byte, -byte], offset + 2 * i));
  } else if (!["lerp", "slerp", "nlerp"].includes(spec.op)) {
    const bytes = new Uint8Array(words.buffer);
    const result = new Uint8Array(source.buffer, offset * 4, rows * 16);
    for (let i = 0; i < result.length; i += 1) {
      const t = spec.each ? floats[third + (i >> 4)] : scalar;
      result[i] = mix(bytes[at * 4 + i], bytes[second * 4 + i], t);
    }
  } else {
    for (let i = 0; i < shape.operand; i += 1) {
      const t = spec.each ? floats[third + Math.floor(i / spec.width)] : scalar;
      out[offset + i] = mix(floats[at + i], floats[second + i], t);
    }
  }
}

const mix = (a, b, t) => a + (b - a) * t;
