// New arrays for the next batch, as many of each length as the last batch needed.
//
// A page that does the same every frame finds all of its arrays in the pool; a page that
// does something else finds none, and the pool is filled anew. The pool's arrays are
// few, and none is kept for long. When arrays are made is decided in
// `results/preallocator.ts`.

import type { Environment } from "../platform/environment.js";
import type { Operand, Element } from "./arrays.js";

/** Arrays in the pool, at most. */
const MOST_ARRAYS = 4096;

/** Bytes in the pool: for any batch, and for one as large as the batch before. */
const SOME_BYTES = 2 ** 20;
const MOST_BYTES = 2 ** 24;

/** Milliseconds without a batch after which the pool is emptied. */
const KEPT_MS = 1000;

/** Arrays that nobody has had yet. */
export class ArrayPool {
  /** By {@link keyOf}. */
  private readonly arrays = new Map<number, Operand[]>();
  /** What the batch in flight needs, and what the next batch took so far. */
  private needs = new Needs();
  private ahead = new Needs();
  /** Whether the arrays are left over from the batch before. */
  private isStale = false;
  private since = 0;
  private timer: unknown;

  constructor(private readonly environment: Environment) {}

  /** A batch was sent, and will ask for arrays. */
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

  /** Whether the last batch needed arrays that are not in the pool yet. */
  get isWanted(): boolean {
    return this.needs.keys.length > 0;
  }

  /** A new array of so many bytes, if the pool has one. */
  take(gives: Element, bytes: number): Operand | undefined {
    this.needs.add(keyOf(gives, bytes), bytes);
    return this.arrays.get(keyOf(gives, bytes))?.pop();
  }

  /** A new array for operands of the next batch, which is not sent yet, if the pool has one. */
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

  /** Puts an array into the pool. Invariant: nothing writes to it any more. */
  put(array: Operand): void {
    const gives = array.BYTES_PER_ELEMENT === 4 ? "float32" : "uint8";
    const key = keyOf(gives, array.byteLength);
    const others = this.arrays.get(key);
    if (others === undefined) this.arrays.set(key, [array]);
    else others.push(array);
    this.timer ??= this.environment.setLooseTimer(this.onTimer, KEPT_MS);
  }

  /** Empties the pool. */
  clear(): void {
    this.arrays.clear();
    this.needs = new Needs();
    this.environment.clearTimer(this.timer);
    this.timer = undefined;
  }

  // The timer is set again, and not cleared, when there was a batch since.
  private readonly onTimer = (): void => {
    this.timer = undefined;
    const left = this.since + KEPT_MS - this.environment.now();
    if (left <= 0) return this.clear();
    this.timer = this.environment.setLooseTimer(this.onTimer, left);
  };
}

/** The keys of arrays that a batch needs, within bounds. */
class Needs {
  readonly keys: number[] = [];
  /** Bytes of its arrays that the pool holds, at most. */
  most = SOME_BYTES;
  /** Bytes that the batch asked for. */
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
