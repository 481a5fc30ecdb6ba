// Stand in for the methods of entries that were not imported, and name the import.
//
// The types of the methods come with their entries, so to compilers there are no stubs.

import { ONE_COPY } from "../checks/brand.js";
import { invalid } from "../checks/errors.js";

/** The methods that each entry gives to sessions. */
const ENTRIES = {
  animation: "clip blend blendTo tween spring",
  embeddings: "embedder reranker",
  kernels: "kernel fn verify runAll profileSizes",
  search: "index loadIndex",
};

/** Gives sessions the stubs, which entries replace. */
export function addStubs(prototype: object): void {
  for (const [entry, methods] of Object.entries(ENTRIES)) {
    for (const method of methods.split(" ")) {
      const value = (): never => {
        throw invalid(
          `gpu.${method}`,
          `it needs import "framebatch/${entry}", of the same copy of framebatch; where that is there, ${ONE_COPY}`,
        );
      };
      Object.defineProperty(prototype, method, { value, writable: true });
    }
  }
}
