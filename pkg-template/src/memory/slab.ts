// Copies of short data, many in one array: an array of its own costs more than the copy.
//
// A copy keeps its whole slab alive, so what is kept for long is copied out of it
// (`TensorStorage.own`). Slabs are garbage-collected: none knows when its copies have
// served.

import type { ArrayPool } from "./array-pool.js";
import { copyFloats, type Span } from "./arrays.js";

/** Floats up to which data is copied to a slab. */
export const SHORT = 2048;

/** Floats of a slab. */
const SLAB = 8192;

/** The slab that takes the next copies of one session. */
export class Slab {
  private memory: Float32Array = new Float32Array(0);
  private used = 0;
  /** Undefined while the session opens. */
  private pool: ArrayPool | undefined;

  /** The session is open. From here on slabs are made ahead. */
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
    const made = this.pool?.takeAhead("float32", SLAB * 4);
    this.memory = (made as Float32Array | undefined) ?? new Float32Array(SLAB);
    this.used = 0;
  }
}
