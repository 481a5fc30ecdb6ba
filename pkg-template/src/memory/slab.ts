// Copies of short data, many in one piece of memory: an array of its own costs more
// than the copy.
//
// Who keeps a copy for long takes it out (`Leaf.own`), because it keeps its whole
// piece. Nothing here knows when a copy is needed no more; pieces are collected.

import type { ArrayPool } from "./array-pool.js";
import { copyFloats, type Span } from "./arrays.js";

/** Floats up to which a copy goes on the slab. */
export const SHORT = 2048;

/** Floats of a piece. */
const PIECE = 8192;

/** The memory that the next copies of one session go to. */
export class Slab {
  private memory: Float32Array = new Float32Array(0);
  private used = 0;
  /** Undefined while the session opens. */
  private pool: ArrayPool | undefined;

  /** The session is open. From here on pieces are made ahead. */
  open(pool: ArrayPool): void {
    this.pool = pool;
  }

  /** A copy of at most {@link SHORT} floats. */
  put(data: Float32Array): Span {
    const words = data.length;
    if (this.used + words > this.memory.length) this.begin();
    const { memory, used: start } = this;
    copyFloats(data, memory, start);
    this.used += words;
    return { memory, start, words };
  }

  private begin(): void {
    const made = this.pool?.takeAhead("float32", PIECE * 4);
    this.memory = (made as Float32Array | undefined) ?? new Float32Array(PIECE);
    this.used = 0;
  }
}
