// A tensor whose node is made only when something asks for it.
//
// What such a tensor is computed by is known to whoever makes it: `kernels/application.ts`.

import type { Root } from "./chain-operands.js";
import type { Node } from "./node.js";
import type { ReadOperands } from "./read-operands.js";

/** What a tensor is, as long as it has no node. */
export interface Deferred {
  readonly root: Root;
  /** The tensor's node, for an operation; always the same. Throws where there is none for it. */
  node(op: string): Node;
  /** The operands of a call that reads this tensor alone. */
  reading(): ReadOperands;
}
