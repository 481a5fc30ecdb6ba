// The core's numbers for the structures of chains, each asked for once.
//
// Found by the chain's words. What the words mean is not looked at here.

import { checked, type Core, forget } from "../core.js";
import { Recent } from "../recent.js";
import type { Encoder } from "./encode.js";

interface Known {
  readonly words: Uint32Array;
  readonly number: number;
}

/** The structures that a session has seen lately. */
export class ChainStructures {
  /** By a hash of the words; of two with one hash, the one that came later. */
  private readonly known: Recent<number, Known>;
  /** The one before, which the next call often repeats. */
  private last: Known | undefined;

  constructor(private readonly core: Core) {
    this.known = new Recent((dropped) =>
      forget(
        core,
        dropped.map(({ number }) => number),
      ),
    );
  }

  /** The number of the encoded chain, to be used before the next is asked for. */
  number({ words, length }: Encoder): number {
    if (this.last !== undefined && isEqual(this.last.words, words, length)) {
      return this.last.number;
    }
    const hash = hashOf(words, length);
    let found = this.known.get(hash);
    if (found === undefined || !isEqual(found.words, words, length)) {
      const own = words.slice(0, length);
      const number = checked(this.core, this.core.chain(own));
      if (found !== undefined) forget(this.core, [found.number]);
      found = { words: own, number };
      this.known.add(hash, found);
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
