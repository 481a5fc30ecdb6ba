// The core's numbers for the structures of chains, each asked for once.
//
// A structure is found by the words of its chain, whose meaning is not looked at here.

import { checked, type Core, forget } from "../core/core.js";
import { LruMap } from "../core/lru.js";
import type { ChainEncoder } from "./chain-encoder.js";
import type { Root } from "./chain-operands.js";
import type { Node } from "./node.js";

/** The number of a structure that was not used for long. */
export const FORGOTTEN = -1;

/** A structure that the core knows. */
export interface Known {
  readonly words: Uint32Array;
  /** The core's number; {@link FORGOTTEN} once the core knows the structure no more. */
  number: number;
  /** Shapes and types of the structure's results, of which there is one or more. */
  readonly roots: readonly Root[];
}

/** The structures that a session has seen lately. */
export class ChainStructures {
  /** By a hash of the words; of two structures with one hash, the newer. */
  private readonly known: LruMap<number, Known>;
  /** The structure that was asked for last, which the next call often repeats. */
  private last: Known | undefined;

  constructor(private readonly core: Core) {
    this.known = new LruMap((dropped) => this.forget(dropped));
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
      if (found !== undefined) this.forget([found]);
      // Nodes are not kept, so that they can be collected.
      const roots = asked.map(({ shape, dtype }) => ({ shape, dtype }));
      found = { words: own, number, roots };
      this.known.add(hash, found);
    }
    this.last = found;
    return found;
  }

  private forget(dropped: readonly Known[]): void {
    const numbers = dropped.map(({ number }) => number);
    for (const known of dropped) known.number = FORGOTTEN;
    forget(this.core, numbers);
  }
}

function isEqual(a: Uint32Array, b: Uint32Array, length: number): boolean {
  if (a.length !== length) return false;
  for (let i = 0; i < length; i += 1) if (a[i] !== b[i]) return false;
  return true;
}

// FNV-1a over words instead of bytes, cut to 30 bits, which engines store unboxed.
function hashOf(words: Uint32Array, length: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < length; i += 1) {
    hash = Math.imul(hash ^ words[i], 0x01000193);
    hash ^= hash >>> 15;
  }
  return hash & 0x3fffffff;
}
