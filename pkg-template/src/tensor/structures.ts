// The core's numbers for the structures of chains, each asked for once.
//
// Found by the chain's words. What the words mean is not looked at here.

import { checked, type Core } from "../core.js";
import type { Encoder } from "./encode.js";

interface Known {
  readonly words: Uint32Array;
  readonly number: number;
  /** Another one whose words have the same hash. */
  readonly next: Known | undefined;
}

/** The structures that a session has seen. */
export class ChainStructures {
  private readonly known = new Map<number, Known>();
  /** The one before, which the next call often repeats. */
  private last: Known | undefined;

  constructor(private readonly core: Core) {}

  /** The number of the encoded chain. */
  number({ words, length }: Encoder): number {
    if (this.last !== undefined && isEqual(this.last.words, words, length)) {
      return this.last.number;
    }
    const hash = hashOf(words, length);
    const first = this.known.get(hash);
    let found = first;
    while (found !== undefined && !isEqual(found.words, words, length)) {
      found = found.next;
    }
    if (found === undefined) {
      const own = words.slice(0, length);
      const number = checked(this.core, this.core.chain(own));
      found = { words: own, number, next: first };
      this.known.set(hash, found);
    }
    this.last = found;
    return found.number;
  }
}

function isEqual(a: Uint32Array, b: Uint32Array, length: number): boolean {
  if (a.length !== length) return false;
  for (let i = 0; i < length; i += 1) if (a[i] !== b[i]) return false;
  return true;
}

// FNV-1a over words instead of bytes, kept to what engines store without a box.
function hashOf(words: Uint32Array, length: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < length; i += 1) {
    hash = Math.imul(hash ^ words[i], 0x01000193);
    hash ^= hash >>> 15;
  }
  return hash & 0x3fffffff;
}
