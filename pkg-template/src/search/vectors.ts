// The vectors of an index in the page, in the layout that the device has;
// `src/ops/search/mod.rs` describes the layout, and is the twin of this file.
//
// The page is the source of the device's copy: changes since the last upload are known,
// and everything can be uploaded again. The core is not known here.

import { allocate } from "../checks/allocation.js";
import { FramebatchError, invalid } from "../checks/errors.js";
import {
  ELEMENTS,
  scaleOf,
  toBf16,
  toF16,
  toInt8,
  type VectorType,
} from "./packing.js";

/** What results are ordered by, in the order of their numbers. */
export const METRICS = ["cosine", "dot", "l2"] as const;

/** What results are ordered by. */
export type Metric = (typeof METRICS)[number];

/** Floats that a vector may have. */
export const MAX_DIM = 4096;

/** The largest magnitude of a float of a vector. */
export const MAX_FLOAT = 1e17;

/** Takes the place of an id behind the last that was found; no vector has it. */
export const NOBODY = 0xffff_ffff;

const LARGEST_F16 = 65_504;
/** Words that a page has at most: half of what every WebGPU device binds at once. */
const PAGE = 2 ** 24;
/** Words of one upload, unless a block has more: the core's memory never shrinks. */
const MOST_WORDS = 2 ** 18;
/** Vectors of a block, and words in front of its quads: scales, then each id + 1, or 0. */
const BLOCK = 64;
const HEADER = 2 * BLOCK;

/** What an index holds. */
export interface IndexKind {
  readonly dim: number;
  readonly metric: Metric;
  readonly dtype: VectorType;
}

/** The ids that a search may give, as words of its call. */
export interface Mask {
  /** A bit for each id, the lowest first; or the ids, rising, and {@link NOBODY} behind. */
  readonly words: Uint32Array;
  readonly isListed: boolean;
}

/** Uploads what changed. */
export interface PageUploader {
  /** Uploads a whole page, which is new or has grown. */
  page(number: number, words: Uint32Array): void;
  /** Uploads words of a page, from word `at` on. */
  range(number: number, at: number, words: Uint32Array): void;
}

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** The vectors of an index. */
export class Vectors {
  /** The slot of each vector, by its id. */
  readonly slots = new Map<number, number>();
  /** The next id. None is given twice. */
  next = 0;
  /** Words of each page: all but the last are full. */
  readonly pages: Uint32Array<ArrayBuffer>[] = [];
  /** Elements of a vector, those that fill its last quad included. */
  readonly padded: number;
  readonly quads: number;
  /** Blocks of a page. */
  readonly pageBlocks: number;
  private readonly blockWords: number;
  private readonly free: number[] = [];
  private end = 0;
  /** Words of each page that were uploaded. */
  private uploaded: number[] = [];
  /** Blocks that changed since, and whether more than their ids did. */
  private readonly changed = new Map<number, boolean>();
  private readonly scratch: Uint32Array;

  constructor(readonly kind: IndexKind) {
    const elements = ELEMENTS[kind.dtype];
    this.quads = Math.ceil(kind.dim / elements);
    this.padded = this.quads * elements;
    this.blockWords = HEADER + 4 * BLOCK * this.quads;
    this.pageBlocks = Math.floor(PAGE / this.blockWords);
    this.scratch = new Uint32Array(1 + 4 * this.quads);
  }

  /** Adds vectors laid end to end; the id of the first. Throws for what is no vector. */
  add(floats: Float32Array): number {
    const { dim, dtype, metric } = this.kind;
    const isSmall = dtype === "f16" && metric !== "cosine";
    const most = isSmall ? LARGEST_F16 : MAX_FLOAT;
    const count = checkVectors("index.add", "vector", floats, dim, most);
    const first = this.next;
    if (first + count >= NOBODY) {
      throw invalid("index.add", "an index gives at most 2^32 - 2 ids");
    }
    const vector = new Float32Array(this.padded);
    let id = first;
    try {
      for (; id < first + count; id += 1) {
        this.scale(floats, (id - first) * dim, vector, 0);
        this.put(id, this.pack(vector));
      }
    } catch (error) {
      // The vector that failed has no slot, or a whole one like the vectors before it.
      if (!this.slots.has(id)) id -= 1;
      for (; id >= first; id -= 1) this.remove([id]);
      throw error;
    }
    this.next = id;
    return first;
  }

  /** Removes vectors. Throws for an id that no vector has; then none is removed. */
  remove(ids: Iterable<number>): void {
    const gone = [...ids];
    for (const id of gone) {
      if (!this.slots.has(id)) {
        throw invalid("index.remove", `no vector has the id ${String(id)}`);
      }
    }
    for (const id of gone) {
      const slot = this.slots.get(id);
      if (slot === undefined) continue; // The id was given twice.
      this.slots.delete(id);
      const block = Math.floor(slot / BLOCK);
      const at = this.locate(block) + BLOCK + (slot % BLOCK);
      this.pages[this.pageOf(block)][at] = 0;
      if (!this.changed.has(block)) this.changed.set(block, false);
      this.free.push(slot);
    }
  }

  /** Blocks that a search looks through. */
  get blocks(): number {
    const used = Math.max(1, Math.ceil(this.end / BLOCK));
    const full = Math.floor((used - 1) / this.pageBlocks) * this.pageBlocks;
    const last = this.pages.at(-1)!.length / this.blockWords;
    return full + Math.min(rounded(used - full), last);
  }

  /** A mask of these ids. */
  mask(ids: Iterable<number>): Mask {
    const mask = this.emptyMask();
    const { words, isListed } = mask;
    if (isListed) {
      const known = [...new Set(ids)].filter((id) => this.slots.has(id));
      words.set(Uint32Array.from(known).sort());
      return mask;
    }
    for (const id of ids) {
      if (id < 32 * words.length) words[id >>> 5] |= 1 << (id & 31);
    }
    return mask;
  }

  /** A mask of the ids whose bits are set. */
  maskOfBits(bits: Uint32Array): Mask {
    const mask = this.emptyMask();
    const { words, isListed } = mask;
    if (isListed) {
      const isSet = (id: number) => ((bits[id >>> 5] >>> (id & 31)) & 1) === 1;
      return this.mask([...this.slots.keys()].filter(isSet));
    }
    words.set(bits.subarray(0, words.length));
    return mask;
  }

  /**
   * A mask that allows nothing: a bit for each id that was given, unless these are more
   * words than there are vectors. So a mask grows with vectors, however high ids are.
   */
  private emptyMask(): Mask {
    const bits = rounded(Math.ceil(this.next / 32));
    const ids = rounded(this.slots.size);
    const isListed = ids < bits;
    const words = isListed ? wordsOf(ids).fill(NOBODY) : wordsOf(bits);
    return { words, isListed };
  }

  /** The floats that stand for a vector: by its angle, those of length 1. */
  scale(from: Float32Array, at: number, to: Float32Array, start: number): void {
    const { dim, metric } = this.kind;
    let length = 1;
    if (metric === "cosine") {
      let squares = 0;
      for (let i = at; i < at + dim; i += 1) squares += from[i] * from[i];
      // A length of 0 means that all floats are 0, whatever they are divided by.
      length = Math.sqrt(squares) || 1;
    }
    for (let i = 0; i < dim; i += 1) to[start + i] = from[at + i] / length;
  }

  /** Has everything uploaded that changed since the last upload. */
  upload(uploader: PageUploader): void {
    this.pages.forEach((page, number) => {
      if (this.uploaded[number] === page.length) return;
      uploader.page(number, page);
      this.uploaded[number] = page.length;
      const first = number * this.pageBlocks;
      for (const block of this.changed.keys()) {
        if (block >= first && block < first + this.pageBlocks) {
          this.changed.delete(block);
        }
      }
    });
    const most = Math.max(1, Math.floor(MOST_WORDS / this.blockWords));
    const blocks = [...this.changed.keys()].sort((a, b) => a - b);
    for (let i = 0; i < blocks.length;) {
      const first = blocks[i];
      const isWhole = this.changed.get(first)!;
      let end = i + 1;
      // Neighboring blocks of a page go together.
      while (
        isWhole &&
        end - i < most &&
        blocks[end] === blocks[end - 1] + 1 &&
        this.changed.get(blocks[end]) &&
        blocks[end] % this.pageBlocks !== 0
      ) {
        end += 1;
      }
      const page = this.pageOf(first);
      const at = this.locate(first);
      const words = isWhole ? (end - i) * this.blockWords : HEADER;
      uploader.range(page, at, this.pages[page].subarray(at, at + words));
      for (; i < end; i += 1) this.changed.delete(blocks[i]);
    }
  }

  /** Another device took over, which has nothing yet. */
  forget(): void {
    this.uploaded = [];
  }

  /** A vector's scale and its words, to `to` from `at` on. */
  copy(id: number, to: Uint32Array, at: number): void {
    const slot = this.slots.get(id)!;
    const block = Math.floor(slot / BLOCK);
    const page = this.pages[this.pageOf(block)];
    const lane = slot % BLOCK;
    const start = this.locate(block);
    to[at] = page[start + lane];
    for (let quad = 0; quad < this.quads; quad += 1) {
      const from = start + HEADER + 4 * (BLOCK * quad + lane);
      for (let k = 0; k < 4; k += 1) to[at + 1 + 4 * quad + k] = page[from + k];
    }
  }

  /** Puts a vector, its scale and its words, where there is room. */
  put(id: number, words: Uint32Array): void {
    const slot = this.free.at(-1) ?? this.end;
    const block = Math.floor(slot / BLOCK);
    const page = this.grow(block);
    this.know(id, slot);
    // The slot is taken only now, because there may have been no memory for the vector.
    if (this.free.pop() === undefined) this.end += 1;
    const lane = slot % BLOCK;
    const start = this.locate(block);
    page[start + lane] = words[0];
    page[start + BLOCK + lane] = id + 1;
    for (let quad = 0; quad < this.quads; quad += 1) {
      const to = start + HEADER + 4 * (BLOCK * quad + lane);
      for (let k = 0; k < 4; k += 1) page[to + k] = words[1 + 4 * quad + k];
    }
    this.changed.set(block, true);
  }

  // Engines bound how many entries a map holds.
  private know(id: number, slot: number): void {
    const { slots } = this;
    try {
      slots.set(id, slot);
    } catch (cause) {
      throw new FramebatchError(
        "limit-exceeded",
        `index: the page holds no more than the places of ${slots.size} vectors; divide them between several indexes`,
        { cause },
      );
    }
  }

  /** A vector's scale and its words, in memory that the next vector overwrites. */
  private pack(vector: Float32Array): Uint32Array {
    const { scratch } = this;
    const { dtype } = this.kind;
    if (dtype === "f32") {
      scratch.set(new Uint32Array(vector.buffer), 1);
      return scratch;
    }
    scratch.fill(0);
    const each = ELEMENTS[dtype] / 4;
    const width = 32 / each;
    const scale = dtype === "int8" ? scaleOf(vector) : 0;
    float[0] = scale;
    scratch[0] = bits[0];
    for (let i = 0; i < this.kind.dim; i += 1) {
      const x = vector[i];
      const packed =
        dtype === "int8"
          ? toInt8(x, scale)
          : dtype === "f16"
            ? toF16(x)
            : toBf16(x);
      scratch[1 + Math.floor(i / each)] |= packed << (width * (i % each));
    }
    return scratch;
  }

  /** The page of a block, with room for it: the last one doubles until it is full. */
  private grow(block: number): Uint32Array {
    const number = this.pageOf(block);
    const { blockWords } = this;
    const page = this.pages[number] ?? new Uint32Array(0);
    const within = block % this.pageBlocks;
    const had = page.length / blockWords;
    if (within < had) return page;
    const has = Math.min(this.pageBlocks, Math.max(2 * had, within + 1));
    const longer = wordsOf(has * blockWords);
    longer.set(page);
    return (this.pages[number] = longer);
  }

  private pageOf(block: number): number {
    return Math.floor(block / this.pageBlocks);
  }

  /** The word of its page where a block begins. */
  private locate(block: number): number {
    return (block % this.pageBlocks) * this.blockWords;
  }
}

/** Throws unless floats are vectors of this width; how many there are. */
export function checkVectors(
  about: string,
  item: string,
  floats: Float32Array,
  dim: number,
  most: number,
): number {
  if (floats.length % dim !== 0) {
    throw invalid(
      about,
      `${floats.length} floats are not a multiple of ${dim}, the width of the index's vectors`,
    );
  }
  for (let i = 0; i < floats.length; i += 1) {
    // NaN fails both comparisons.
    if (floats[i] >= -most && floats[i] <= most) continue;
    throw invalid(
      about,
      `${item} ${Math.floor(i / dim)} has ${floats[i]} at ${i % dim}; give numbers from -${most} to ${most}`,
    );
  }
  return floats.length / dim;
}

/** An array of this many words. Throws where the page has no memory for them. */
export function wordsOf(count: number): Uint32Array<ArrayBuffer> {
  const instead = "keep fewer vectors in it, or as int8";
  return allocate(
    { about: "index", bytes: 4 * count, instead },
    () => new Uint32Array(count),
  );
}

/** Rounds a count up, so that one that grows takes few values. */
export function rounded(count: number): number {
  const step = 2 ** Math.floor(Math.log2(Math.max(1, Math.floor(count / 8))));
  return Math.ceil(count / step) * step;
}
