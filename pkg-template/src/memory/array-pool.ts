// New arrays for the next batch, as many of each length as the last one needed.
//
// A page that does the same every frame finds all of them ready; another finds none
// of its own, and they are replaced. They are few, and none is kept for long. When
// they are made is the preallocator's business.

import type { Environment } from "../platform/environment.js";
import type { Operand, Element } from "./arrays.js";

/** Arrays that are kept, at most. */
const MOST_ARRAYS = 4096;

/** Bytes that are kept: of any batch, and of one that is as large as the one before. */
const SOME_BYTES = 2 ** 20;
const MOST_BYTES = 2 ** 24;

/** They are let go after so long without a batch, in milliseconds. */
const KEPT_MS = 1000;

/** Arrays that nobody has had yet. */
export class ArrayPool {
  /** By {@link keyOf}. */
  private readonly arrays = new Map<number, Operand[]>();
  /** What the batch on its way needs, and what the one behind it took so far. */
  private needs = new Needs();
  private ahead = new Needs();
  /** Whether what lies here is left over from the batch before. */
  private isStale = false;
  private since = 0;
  private timer: unknown;

  constructor(private readonly environment: Environment) {}

  /** A batch is on its way, and will ask. */
  expect(): void {
    const now = this.environment.now();
    const before = now - this.since < KEPT_MS ? this.needs.asked : 0;
    this.needs = this.ahead;
    this.needs.most = Math.min(Math.max(before, SOME_BYTES), MOST_BYTES);
    this.ahead = new Needs();
    this.ahead.most = this.needs.most;
    this.isStale = true;
    this.since = now;
  }

  /** Whether the last batch needed what is not here yet. */
  get isWanted(): boolean {
    return this.needs.keys.length > 0;
  }

  /** A new array of so many bytes, if one is here. */
  take(gives: Element, bytes: number): Operand | undefined {
    this.needs.add(keyOf(gives, bytes), bytes);
    return this.arrays.get(keyOf(gives, bytes))?.pop();
  }

  /** The same before its batch is on its way, for what calls take along. */
  takeAhead(gives: Element, bytes: number): Operand | undefined {
    this.ahead.add(keyOf(gives, bytes), bytes);
    return this.arrays.get(keyOf(gives, bytes))?.pop();
  }

  /** Makes one array that the last batch needed; undefined when there are enough. */
  make(): Operand | undefined {
    if (this.isStale) this.arrays.clear();
    this.isStale = false;
    const key = this.environment.page?.hidden
      ? undefined
      : this.needs.keys.pop();
    if (key === undefined) return undefined;
    try {
      return made(key);
    } catch {
      // There is no memory to spare.
      this.clear();
      return undefined;
    }
  }

  /** Keeps an array for whoever asks first. Invariant: nothing writes to it any more. */
  put(array: Operand): void {
    const gives = array.BYTES_PER_ELEMENT === 4 ? "float32" : "uint8";
    const key = keyOf(gives, array.byteLength);
    const others = this.arrays.get(key);
    if (others === undefined) this.arrays.set(key, [array]);
    else others.push(array);
    this.timer ??= this.environment.setTimer(this.onTimer, KEPT_MS);
  }

  /** Lets go of everything. */
  clear(): void {
    this.arrays.clear();
    this.needs = new Needs();
    this.environment.clearTimer(this.timer);
    this.timer = undefined;
  }

  // Set again, not cleared, when there was a batch since.
  private readonly onTimer = (): void => {
    this.timer = undefined;
    const left = this.since + KEPT_MS - this.environment.now();
    if (left > 0) this.timer = this.environment.setTimer(this.onTimer, left);
    else this.clear();
  };
}

/** The keys of arrays that a batch needs, within bounds. */
class Needs {
  readonly keys: number[] = [];
  /** Bytes that are kept of it, at most. */
  most = SOME_BYTES;
  /** Bytes that it asked for. */
  asked = 0;
  private bytes = 0;

  add(key: number, bytes: number): void {
    this.asked += bytes;
    if (this.keys.length >= MOST_ARRAYS || this.bytes + bytes > this.most)
      return;
    this.keys.push(key);
    this.bytes += bytes;
  }
}

/** One number for a kind of array and its length. */
function keyOf(gives: Element, bytes: number): number {
  return gives === "float32" ? bytes : -bytes;
}

function made(key: number): Operand {
  return key > 0 ? new Float32Array(key / 4) : new Uint8Array(-key);
}
