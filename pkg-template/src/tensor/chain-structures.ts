// The core's numbers for the structures of chains, each asked for once.
//
// Found by the chain's words. What the words mean is not looked at here.

import { checked, type Core, forget } from "../core/core.js";
import { LruMap } from "../core/lru.js";
import type { ChainEncoder } from "./chain-encoder.js";
import type { Root } from "./chain-operands.js";
import type { Node } from "./node.js";

/** A structure that the core knows. */
export interface Known {
  readonly words: Uint32Array;
  readonly number: number;
  /** What is known of its results, of which there is one or more. */
  readonly roots: readonly Root[];
}

/** The structures that a session has seen lately. */
export class ChainStructures {
  /** By a hash of the words; of two with one hash, the one that came later. */
  private readonly known: LruMap<number, Known>;
  /** The one before, which the next call often repeats. */
  private last: Known | undefined;

  constructor(private readonly core: Core) {
    this.known = new LruMap((dropped) =>
      forget(
        core,
        dropped.map(({ number }) => number),
      ),
    );
  }

  /** The structure of the encoded chain, to be used before the next is asked for. */
  find({ words, length }: ChainEncoder, asked: readonly Node[]): Known {
    if (this.last !== undefined && isEqual(this.last.words, words, length)) {
      return this.last;
    }
    const hash = hashOf(words, length);
    let found = this.known.get(hash);
    if (found === undefined || !isEqual(found.words, words, length)) {
      const own = words.slice(0, length);
      const number = checked(this.core, this.core.chain(own));
      if (found !== undefined) forget(this.core, [found.number]);
      // Without the nodes, so that they can be collected.
      const roots = asked.map(({ shape, dtype }) => ({ shape, dtype }));
      found = { words: own, number, roots };
      this.known.add(hash, found);
    }
    this.last = found;
    return found;
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
