// Indexes as callers hold them: `add`, `remove`, `search`, `save`.
//
// What may be wrong with a call is found here; how vectors lie in memory is in
// `vectors.ts`.

/// <reference lib="esnext.disposable" preserve="true" />

import { endedError } from "../calls/call-errors.js";
import type { CallOptions } from "../calls/call-options.js";
import { allocate } from "../checks/allocation.js";
import { detached, got, isDetached } from "../checks/arrays.js";
import { mark } from "../checks/brand.js";
import {
  FramebatchError,
  invalid,
  kindOf,
  subject,
  tagOf,
} from "../checks/errors.js";
import { checkOptions, labeled } from "../checks/options.js";
import type { Calls } from "../session/calls.js";
import { FLOATS } from "../tensor/codes.js";
import type { Node } from "../tensor/node.js";
import { text } from "../tensor/shape.js";
import { disposedError } from "../tensor/storage.js";
import { nodeOf, type Tensor } from "../tensor/tensor.js";
import { DeviceVectors } from "./device-vectors.js";
import { checkDim, load, save } from "./index-file.js";
import { TYPES, type VectorType } from "./packing.js";
import { SearchOperands } from "./search-operands.js";
import { IndexStore, IndexStores } from "./store.js";
import {
  checkVectors,
  type IndexKind,
  type Mask,
  MAX_FLOAT,
  type Metric,
  METRICS,
  NOBODY,
  placeOf,
  Vectors,
  wordsOf,
} from "./vectors.js";

/** What `gpu.index` takes. */
export interface IndexOptions {
  /** Floats of a vector, 1 to 4096. */
  dim: number;
  /**
   * What results are ordered by. `cosine`: the cosine of the angle, from -1 to 1, and 0
   * where a vector is zero; vectors are scaled to length 1 when they are added. `dot`:
   * Σ x·q. `l2`: Σ (x − q)², the squared distance, the smallest first. Default: `cosine`.
   */
  metric?: Metric;
  /**
   * How vectors are kept: 32-bit floats, 16-bit ones (`f16` off by 2⁻¹¹ of each, `bf16`
   * by 2⁻⁸), or `int8`: whole numbers from -127 to 127 times a scale that a vector has,
   * off by 1/254 of its largest magnitude. Queries and sums are 32-bit floats. Default: `f32`.
   */
  dtype?: VectorType;
  /** Appears in the message of errors. Default: none. */
  label?: string;
}

/**
 * The vectors that may be found: those of these ids; those whose bit is set in a mask, the
 * lowest id in the lowest bit; or those that a function says yes to, which is asked once
 * for every vector of the index. Whichever, a bit for each id that was ever given, or four
 * bytes for each vector where that is less, go to the device with the call.
 */
export type Filter =
  Uint32Array | { readonly mask: Uint32Array } | ((id: number) => boolean);

/** What `index.search` takes last. */
export type SearchOptions = Omit<CallOptions<never>, "into"> & {
  /** The vectors that may be found. Default: all. */
  filter?: Filter;
};

/** What was found for a query, best first, of equals the lower id. */
export interface Found {
  ids: Uint32Array<ArrayBuffer>;
  /** The score of each id, by the index's metric. */
  scores: Float32Array<ArrayBuffer>;
}

/** Results of a query at most. */
const MOST_RESULTS = 256;
const INDEX_NAMES: Record<keyof IndexOptions, true> = {
  dim: true,
  metric: true,
  dtype: true,
  label: true,
};

const stores = new WeakMap<Calls, IndexStores>();

/** Frees indexes that nobody disposes of. */
const collected = new FinalizationRegistry<IndexStore>((store) => store.drop());

/**
 * Vectors on the device that queries are compared with, all of them. Made by `gpu.index`
 * and `gpu.loadIndex`. The page keeps them as well, so that the index outlives a loss of
 * the device, but for those that were added as tensors, until `download`.
 *
 * @example
 * const index = gpu.index(new Float32Array([1, 0, 0, 1, 0.8, 0.6]), { dim: 2 });
 * const { ids, scores } = await index.search(new Float32Array([2, 0]), 2); // 0 and 2, 1 and 0.8
 */
export class VectorIndex {
  readonly dim: number;
  readonly metric: Metric;
  readonly dtype: VectorType;
  readonly #calls: Calls;
  readonly #store: IndexStore;
  readonly #device: DeviceVectors;
  readonly #label: string | undefined;

  /** Indexes come from `gpu.index`. */
  constructor(calls: Calls, vectors: Vectors, label: string | undefined) {
    ({ dim: this.dim, metric: this.metric, dtype: this.dtype } = vectors.kind);
    this.#calls = calls;
    this.#store = new IndexStore(vectors, storesOf(calls));
    this.#device = new DeviceVectors(calls, this.#store);
    this.#label = label;
    collected.register(this, this.#store, this);
  }

  /** How many vectors there are. */
  get size(): number {
    return this.#store.vectors.slots.size;
  }

  /**
   * Adds vectors laid end to end; their ids, which rise and are never given again. Throws
   * `invalid-input` for another width, and for what is no number of a magnitude up to
   * 1e17 (in `f16`, but by `cosine`, 65,504), and `out-of-memory` where the page has no
   * room for them; then none is added.
   *
   * Of a tensor of shape `[dim]` or `[n, dim]` each row is a vector, which goes from the
   * tensor to the index on the device, in the order of calls, and never through the page. A
   * vector with what is no number, or too large, is never found. After a lost device such
   * vectors come back where their tensor does, as long as it is neither disposed of nor
   * written; others are {@link lost}.
   *
   * @example
   * const rows = gpu.tensor(new Float32Array([3, 4, 0, 2]), [2, 2]);
   * const ids = index.add(rows.add(1)); // [n, n + 1]
   * const { ids: near } = await index.search(new Float32Array([1, 3]), 1);
   */
  add(vectors: Float32Array | Tensor): Uint32Array<ArrayBuffer> {
    this.#check("index.add");
    // A list is told how it becomes an array, and not that it is no tensor.
    if (!ArrayBuffer.isView(vectors) && !Array.isArray(vectors)) {
      return this.#addTensor(vectors);
    }
    checkFloats("index.add", "vectors", vectors);
    const held = this.#store.vectors;
    // The array is made before anything is added, because there may be no memory for it.
    const ids = wordsOf(Math.floor(vectors.length / this.dim));
    const first = held.add(vectors);
    for (let i = 0; i < ids.length; i += 1) ids[i] = first + i;
    return ids;
  }

  /** Removes vectors. Throws `invalid-input` for an id of none; then none is removed. */
  remove(ids: Iterable<number>): void {
    this.#check("index.remove");
    if (
      typeof (ids as Iterable<number> | null)?.[Symbol.iterator] !== "function"
    ) {
      throw invalid("index.remove", `give ids, as in [7], got ${kindOf(ids)}`);
    }
    const { vectors } = this.#store;
    const gone = [...new Set(ids)];
    for (const id of gone) {
      if (!vectors.slots.has(id)) {
        throw invalid("index.remove", `no vector has the id ${String(id)}`);
      }
    }
    const isOnDevice = (id: number): boolean =>
      placeOf(vectors.slots.get(id)!) >= 0;
    const onDevice = gone.filter(isOnDevice);
    vectors.remove(gone.filter((id) => !isOnDevice(id)));
    if (onDevice.length > 0) this.#device.remove(onDevice);
  }

  /**
   * The ids of vectors that were added as tensors and went with a device, because their
   * tensors could not be had again. While there are any, searches reject with
   * `device-lost`: remove these ids, and add the vectors anew.
   */
  get lost(): Uint32Array<ArrayBuffer> {
    return Uint32Array.from(this.#device.lost).sort();
  }

  /**
   * Brings the vectors that were added as tensors to the page, which keeps them from then
   * on as all others: a lost device costs nothing, and {@link save} is possible. Vectors
   * that no search could find are gone after it. Rejects with `device-lost` where vectors
   * are {@link lost}, and with `out-of-memory` where the page has no room; what was brought
   * until then stays.
   *
   * @example
   * await index.download();
   * const bytes = index.save();
   */
  async download(): Promise<void> {
    this.#check("index.download");
    await this.#device.download("index.download");
  }

  /**
   * The `k` vectors most like a query, fewer where the filter allows fewer. It looks at
   * the index as it is when the search is made; what is added or removed between that and
   * the flush may count or not, and leave fewer. A frame's searches of one index are one
   * pass over it for every eight of them (for `k` above 32 every two). A score is off by
   * at most `dim` · 2⁻²⁴ of the sum of absolute products (by `l2`, of squares), besides
   * what `dtype` costs. Rejects with `invalid-input` for a query of another width or with
   * what is no number, and for a `k` above 256 or above the number of vectors.
   */
  async search(
    query: Float32Array,
    k: number,
    options?: SearchOptions,
  ): Promise<Found> {
    const about = subject("search", options?.label);
    checkFloats(about, "the query", query);
    if (query.length !== this.dim) {
      throw invalid(
        about,
        `the query has ${query.length} floats, but the index's vectors have ${this.dim}`,
      );
    }
    const [found] = await this.searchMany(query, k, options);
    return found;
  }

  /** The same for several queries laid end to end: what was found for each. */
  async searchMany(
    queries: Float32Array,
    k: number,
    options?: SearchOptions,
  ): Promise<Found[]> {
    const { filter, ...rest } = options ?? {};
    const about = subject("search", rest.label);
    this.#check(about);
    checkFloats(about, "queries", queries);
    const { vectors } = this.#store;
    const rows = checkVectors(about, "query", queries, this.dim, MAX_FLOAT);
    checkCount(about, k, this.size);
    const fewer = { about, instead: "search for fewer queries at a time" };
    const floats = rows * vectors.padded;
    const padded = allocate(
      { ...fewer, bytes: 4 * floats },
      () => new Float32Array(floats),
    );
    for (let i = 0; i < rows; i += 1) {
      vectors.scale(queries, i * this.dim, padded, i * vectors.padded);
    }
    const mask =
      filter === undefined ? undefined : maskOf(about, vectors, filter);
    this.#check(about); // A filter may do anything.
    this.#device.mend();
    this.#device.check(about);
    const operands = new SearchOperands(this.#store, padded, k, mask);
    const bytes = await this.#calls.take<Uint8Array<ArrayBuffer>>(
      operands,
      options && rest,
    );
    // Vectors may have been lost since, and have been missed.
    this.#device.check(about);
    const isDistance = this.metric === "l2";
    return allocate({ ...fewer, bytes: bytes.length }, () =>
      Array.from({ length: rows }, (_, i) => foundIn(bytes, i, k, isDistance)),
    );
  }

  /**
   * All of it as bytes for `gpu.loadIndex`, in a browser or natively: 32-bit words in
   * little-endian order. `fbix`, the version 1, the metric (cosine, dot, l2), the dtype
   * (f32, f16, bf16, int8), floats of a vector, how many there are, the next id; the ids,
   * rising; then for each vector the scale of int8 as a float, and its elements as they
   * are packed, filled up with zeros to 16 bytes. Throws `unsupported` while vectors are on
   * the device alone: await {@link download} first.
   */
  save(): Uint8Array<ArrayBuffer> {
    this.#check("index.save");
    const { count } = this.#device;
    if (count > 0) {
      throw new FramebatchError(
        "unsupported",
        `index.save: ${count} vectors are on the device alone; await index.download() first`,
      );
    }
    return save(this.#store.vectors);
  }

  /** Gives its memory back as soon as no pending search needs it. Using it after that rejects. */
  dispose(): void {
    collected.unregister(this);
    if (!this.#store.dropped) this.#store.drop();
  }

  /** Lets `using` dispose of the index. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  static {
    mark(this.prototype, "an index");
  }

  #addTensor(tensor: Tensor): Uint32Array<ArrayBuffer> {
    const about = "index.add";
    const calls = this.#calls;
    if (calls.ended !== undefined) throw endedError(about, calls.ended);
    const node = nodeOf(about, calls, tensor);
    const ids = wordsOf(rowsOf(about, node, this.dim));
    if (ids.length === 0) return ids;
    const first = this.#store.vectors.giveIds(ids.length);
    for (let i = 0; i < ids.length; i += 1) ids[i] = first + i;
    this.#device.add(node, ids);
    return ids;
  }

  #check(about: string): void {
    if (!this.#store.dropped) return;
    throw new FramebatchError(
      "disposed",
      `${about}: ${subject("the index", this.#label)} is disposed; make it anew`,
    );
  }
}

/** Makes an index. Throws where its vectors or options are wrong. */
export function makeIndex(
  calls: Calls,
  vectors: Float32Array | undefined,
  options: IndexOptions,
): VectorIndex {
  checkOptions("index", options, INDEX_NAMES);
  const { dim, metric = "cosine", dtype = "f32", label } = options;
  const about = labeled("index", label);
  if (calls.ended !== undefined) throw endedError(about, calls.ended);
  checkDim(dim);
  checkOneOf(about, "metric", METRICS, metric);
  checkOneOf(about, "dtype", TYPES, dtype);
  const kind: IndexKind = { dim, metric, dtype };
  const held = new Vectors(kind);
  if (vectors !== undefined) {
    checkFloats(about, "vectors", vectors);
    held.add(vectors);
  }
  return new VectorIndex(calls, held, label);
}

/** The index that bytes were saved of. Throws where they are none. */
export function loadIndex(
  calls: Calls,
  bytes: Uint8Array | ArrayBuffer,
): VectorIndex {
  if (calls.ended !== undefined) throw endedError("index", calls.ended);
  const tag = tagOf(bytes);
  if (tag !== "ArrayBuffer" && tag !== "Uint8Array") {
    throw invalid("index", `bytes must be a Uint8Array, got ${kindOf(bytes)}`);
  }
  // Bytes without a `buffer` are an ArrayBuffer themselves.
  const { buffer = bytes as ArrayBuffer } = bytes as Partial<Uint8Array>;
  if (isDetached({ buffer, length: bytes.byteLength })) {
    throw invalid("index", detached("bytes"));
  }
  const given = tag === "Uint8Array" ? bytes : new Uint8Array(bytes);
  return new VectorIndex(calls, load(given as Uint8Array), undefined);
}

/** The results of one query. */
function foundIn(
  { buffer, byteOffset }: Uint8Array<ArrayBuffer>,
  row: number,
  k: number,
  isDistance: boolean,
): Found {
  const at = byteOffset + row * 8 * k;
  const ids = new Uint32Array(buffer, at, k);
  const scores = new Float32Array(buffer, at + 4 * k, k);
  // Subtracted from 0, so that no distance is -0.
  if (isDistance) scores.forEach((score, i) => (scores[i] = 0 - score));
  const nobody = ids.indexOf(NOBODY);
  const count = nobody < 0 ? k : nobody;
  return { ids: ids.slice(0, count), scores: scores.slice(0, count) };
}

function maskOf(about: string, vectors: Vectors, filter: Filter): Mask {
  if (typeof filter === "function") {
    const allowed = [...vectors.slots.keys()].filter((id) => filter(id));
    return vectors.mask(allowed);
  }
  const words = isWords(filter)
    ? filter
    : (filter as { mask?: unknown } | null)?.mask;
  if (!isWords(words)) {
    throw invalid(
      about,
      `filter must be a Uint32Array of ids, { mask } with a Uint32Array of bits, or a function, ${got("Uint32Array", "filter", filter)}`,
    );
  }
  if (isDetached(words)) throw invalid(about, detached("the filter's array"));
  return words === filter ? vectors.mask(words) : vectors.maskOfBits(words);
}

/** How many vectors a tensor has. Throws where its rows are no vectors of this width. */
function rowsOf(
  about: string,
  { shape: { dims }, dtype, storage }: Node,
  dim: number,
): number {
  if (storage?.dropped) throw disposedError(about, storage.label);
  if (dtype !== FLOATS) {
    throw invalid(about, "the tensor holds whole numbers; give one of floats");
  }
  const isFitting = dims.length === 1 || dims.length === 2;
  if (!isFitting || dims.at(-1) !== dim) {
    throw invalid(
      about,
      `the tensor has shape ${text(dims)}, but the index's vectors have ${dim} floats; reshape it to [${dim}] or [n, ${dim}]`,
    );
  }
  return dims.length === 1 ? 1 : dims[0];
}

function checkCount(about: string, k: unknown, vectors: number): void {
  if (!Number.isInteger(k) || (k as number) < 1) {
    const given = typeof k === "number" ? k : kindOf(k);
    throw invalid(about, `k must be a whole number from 1, got ${given}`);
  }
  if ((k as number) > MOST_RESULTS) {
    throw invalid(
      about,
      `k is ${k}, but a search gives at most ${MOST_RESULTS} results`,
    );
  }
  if ((k as number) > vectors) {
    throw invalid(about, `k is ${k}, but the index has ${vectors} vectors`);
  }
}

function checkFloats(
  about: string,
  name: string,
  floats: unknown,
): asserts floats is Float32Array {
  const isView = ArrayBuffer.isView(floats);
  const tag = isView && (floats as Float32Array)[Symbol.toStringTag];
  if (tag !== "Float32Array") {
    throw invalid(
      about,
      `${name} must be a Float32Array, ${got("Float32Array", name.replace("the ", ""), floats)}`,
    );
  }
  if (isDetached(floats as Float32Array)) {
    throw invalid(about, detached(name));
  }
}

function checkOneOf(
  about: string,
  name: string,
  known: readonly string[],
  given: unknown,
): void {
  if (known.includes(given as string)) return;
  const kind = typeof given === "string" ? `'${given}'` : kindOf(given);
  throw invalid(
    about,
    `${name} must be one of ${known.join(", ")}, got ${kind}`,
  );
}

// By name, because an array of another realm has that realm's class.
function isWords(value: unknown): value is Uint32Array {
  return (
    ArrayBuffer.isView(value) &&
    (value as Uint32Array)[Symbol.toStringTag] === "Uint32Array"
  );
}

function storesOf(calls: Calls): IndexStores {
  let known = stores.get(calls);
  if (known === undefined) {
    known = new IndexStores((thrown) => calls.fail("search", thrown));
    stores.set(calls, known);
    calls.join(known);
  }
  return known;
}
