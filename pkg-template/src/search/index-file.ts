// An index as bytes, in the format that `VectorIndex.save` describes.
//
// The twin of `src/ops/search/file.rs`. Nothing is uploaded here.

import { allocate } from "../checks/allocation.js";
import { type FramebatchError, invalid } from "../checks/errors.js";
import {
  ELEMENTS,
  scaleOf,
  toBf16,
  TYPES,
  type VectorType,
} from "./packing.js";
import {
  MAX_DIM,
  MAX_FLOAT,
  METRICS,
  NOBODY,
  Vectors,
  wordsOf,
} from "./vectors.js";

const MAGIC = 0x7869_6266; // "fbix"
const VERSION = 1;
const HEADER = 7;

const INFINITE_F16 = 0x7c00;
// The largest float, packed.
const MAX_BF16 = toBf16(MAX_FLOAT);
const MAX_SCALE = scaleOf(Float32Array.of(MAX_FLOAT));

/** All of an index. */
export function save(vectors: Vectors): Uint8Array<ArrayBuffer> {
  const { dim, metric, dtype } = vectors.kind;
  const ids = wordsOf(vectors.slots.size);
  let known = 0;
  for (const id of vectors.slots.keys()) ids[known++] = id;
  ids.sort();
  const each = 1 + 4 * vectors.quads;
  const words = wordsOf(HEADER + ids.length * (1 + each));
  words.set([MAGIC, VERSION, METRICS.indexOf(metric), TYPES.indexOf(dtype)]);
  words.set([dim, ids.length, vectors.next], 4);
  words.set(ids, HEADER);
  let at = HEADER + ids.length;
  for (const id of ids) {
    vectors.copy(id, words, at);
    at += each;
  }
  return new Uint8Array(words.buffer);
}

/** What {@link save} gave. Throws where it did not. */
export function load(bytes: Uint8Array): Vectors {
  const whole = Math.floor(bytes.length / 4);
  // Bytes that begin within a word are copied; the bytes of a file begin at a word.
  const { buffer, byteOffset } =
    bytes.byteOffset % 4 === 0 ? bytes : copyOf(bytes);
  const words = new Uint32Array(buffer, byteOffset, whole);
  if (words.length < HEADER || words[0] !== MAGIC) {
    throw wrong("they are no index that was saved");
  }
  const [, version, metric, dtype, dim, count, next] = words;
  if (version !== VERSION) {
    throw wrong(
      `they are of version ${version}, but this release reads version ${VERSION}`,
    );
  }
  if (metric >= METRICS.length || dtype >= TYPES.length) {
    throw wrong("there is no such metric or type");
  }
  checkDim(dim);
  const kind = { dim, metric: METRICS[metric], dtype: TYPES[dtype] };
  const vectors = new Vectors(kind);
  const each = 1 + 4 * vectors.quads;
  const need = 4 * (HEADER + count * (1 + each));
  if (bytes.length !== need) {
    throw wrong(
      `there are ${bytes.length}, but ${count} vectors of ${dim} floats take ${need}`,
    );
  }
  if (next === NOBODY) throw wrong("the next id is too large");
  const ids = words.subarray(HEADER, HEADER + count);
  for (let i = 0; i < count; i += 1) {
    if (ids[i] >= next || (i > 0 && ids[i] <= ids[i - 1])) {
      throw wrong("the ids do not rise, or one is too large");
    }
  }
  for (let i = 0; i < count; i += 1) {
    const at = HEADER + count + i * each;
    const vector = words.subarray(at, at + each);
    checkVector(vector, ids[i], kind.dtype, dim);
    vectors.put(ids[i], vector);
  }
  vectors.next = next;
  return vectors;
}

function copyOf(given: Uint8Array): Uint8Array {
  const { length: bytes } = given;
  const instead = "give bytes that begin at a word of their buffer";
  return allocate(
    { about: "index", bytes, instead },
    () => new Uint8Array(given),
  );
}

/** Throws unless vectors may be so wide. */
export function checkDim(dim: unknown): void {
  if (
    Number.isInteger(dim) &&
    1 <= (dim as number) &&
    (dim as number) <= MAX_DIM
  )
    return;
  throw invalid(
    "index",
    `dim is ${String(dim)}, but vectors have 1 to ${MAX_DIM} floats`,
  );
}

function checkVector(
  vector: Uint32Array,
  id: number,
  dtype: VectorType,
  dim: number,
): void {
  const each = ELEMENTS[dtype] / 4;
  for (let at = 1; at < vector.length; at += 1) {
    const left = dim - each * (at - 1);
    const behind =
      left <= 0
        ? vector[at]
        : left < each
          ? vector[at] >>> ((32 / each) * left)
          : 0;
    if (behind !== 0) {
      throw wrong(`the vector of id ${id} goes on behind its ${dim} floats`);
    }
  }
  const floats = new Float32Array(
    vector.buffer,
    vector.byteOffset,
    vector.length,
  );
  for (let at = 0; at < vector.length; at += 1) {
    const good =
      at === 0
        ? floats[0] >= 0 && floats[0] <= MAX_SCALE
        : isKnown(vector[at], floats[at], dtype);
    if (!good) throw wrong(`the vector of id ${id} holds what is no number`);
  }
}

/** Whether packing gives such a word; with others, sums of products could be NaN. */
function isKnown(word: number, float: number, dtype: VectorType): boolean {
  const half = Math.max(word & 0x7fff, (word >>> 16) & 0x7fff);
  switch (dtype) {
    case "f32":
      return float >= -MAX_FLOAT && float <= MAX_FLOAT;
    case "f16":
      return half < INFINITE_F16;
    case "bf16":
      return half <= MAX_BF16;
    case "int8":
      return true;
  }
}

function wrong(problem: string): FramebatchError {
  return invalid("index: the bytes", problem);
}
