// An index as bytes; what they are is said at `VectorIndex.save`. The twin of
// `src/ops/search/file.rs`.

import { type FramebatchError, invalid } from "../errors.js";
import { ELEMENTS, fromF16, TYPES, type VectorType } from "./packing.js";
import { MAX_DIM, MAX_FLOAT, METRICS, Vectors } from "./vectors.js";

const MAGIC = 0x7869_6266; // "fbix"
const VERSION = 1;
const HEADER = 7;

/** All of an index. */
export function save(vectors: Vectors): Uint8Array<ArrayBuffer> {
  const { dim, metric, dtype } = vectors.kind;
  const ids = Uint32Array.from(vectors.places.keys()).sort();
  const each = 1 + 4 * vectors.quads;
  const words = new Uint32Array(HEADER + ids.length * (1 + each));
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
  // Large ones are not copied for this: what a file was read to begins at a word.
  const { buffer, byteOffset } =
    bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes);
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
  const isGood = (x: number): boolean => x >= -MAX_FLOAT && x <= MAX_FLOAT;
  for (let at = 0; at < vector.length; at += 1) {
    const good =
      at === 0 || dtype === "f32"
        ? isGood(floats[at])
        : dtype === "int8" ||
          [vector[at] & 0xffff, vector[at] >>> 16].every((half) =>
            isGood(dtype === "f16" ? fromF16(half) : fromBf16(half)),
          );
    if (!good) throw wrong(`the vector of id ${id} holds what is no number`);
  }
}

function fromBf16(half: number): number {
  return new Float32Array(Uint32Array.of(half << 16).buffer)[0];
}

function wrong(problem: string): FramebatchError {
  return invalid("index: the bytes", problem);
}
