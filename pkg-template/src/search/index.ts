// The entry `framebatch/search`: importing it gives every session indexes of vectors.
//
// An entry of its own, so that pages that search nothing do not load it.

import { callsOf, Session } from "../session/session.js";
import {
  type IndexOptions,
  loadIndex,
  makeIndex,
  type VectorIndex,
} from "./vector-index.js";

export type { VectorType } from "./packing.js";
export type {
  Filter,
  Found,
  IndexOptions,
  SearchOptions,
  VectorIndex,
} from "./vector-index.js";
export type { Metric } from "./vectors.js";

declare module "../session/session.js" {
  interface Session {
    /**
     * Takes vectors, laid end to end, to the device, where they stay until disposed; none
     * yet if they are left out. They are copied. Throws `invalid-input` saying what is
     * wrong with them. With `import "framebatch/search"`.
     *
     * @example
     * const index = gpu.index(vectors, { dim: 384 });
     * const { ids, scores } = await index.search(query, 10);
     */
    index(options: IndexOptions): VectorIndex;
    index(
      vectors: Float32Array | undefined,
      options: IndexOptions,
    ): VectorIndex;

    /**
     * The index that `index.save` gave these bytes of. Throws `invalid-input` saying what
     * is wrong with them. With `import "framebatch/search"`.
     */
    loadIndex(bytes: Uint8Array | ArrayBuffer): VectorIndex;
  }
}

Object.assign(Session.prototype, {
  index(
    this: Session,
    first: Float32Array | IndexOptions | undefined,
    ...rest: [IndexOptions?]
  ): VectorIndex {
    const calls = callsOf(this);
    if (rest.length === 0) {
      return makeIndex(calls, undefined, first as IndexOptions);
    }
    return makeIndex(calls, first as Float32Array, rest[0]!);
  },
  loadIndex(this: Session, bytes: Uint8Array | ArrayBuffer): VectorIndex {
    return loadIndex(callsOf(this), bytes);
  },
});
