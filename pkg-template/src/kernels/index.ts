// The entry `framebatch/kernels`: importing it gives every session runs of many items.
//
// An entry of its own, so that pages that run nothing of the kind do not load it.

import { Session } from "../session/session.js";
import {
  type ItemFunction,
  runAll,
  type RunAllOptions,
  type RunAllOutcome,
} from "./run-all.js";

export type {
  ItemContext,
  ItemFunction,
  Outcome,
  RunAllOptions,
  RunAllOutcome,
} from "./run-all.js";

declare module "../session/session.js" {
  interface Session {
    /**
     * Runs `fn` for each item, and says what became of each: a result, an error, or that
     * the item was skipped. `fn` makes the call, or the calls, of one item, or computes
     * something else; what it throws is that item's error. Items that begin together are
     * sent together.
     *
     * The run stops with `signal`, and at the first error with `stopOnFirstError`: no item
     * begins any more, the signals of those that have begun abort, and the run ends when
     * these have settled. An item that rejects with the reason of its signal is skipped.
     * Rejects with `invalid-input` for wrong arguments, and for nothing else. With
     * `import "framebatch/kernels"`.
     *
     * @example
     * const turns = [0.25, 0.5, 0.75].map((t) => ({ t, to: new Float32Array([1, 0, 0, 0]) }));
     * const from = new Float32Array([0, 0, 0, 1]);
     * const { succeeded, results } = await gpu.runAll(turns, ({ t, to }) => gpu.slerp(from, to, t));
     */
    runAll<Item, Result>(
      items: Iterable<Item>,
      fn: ItemFunction<Item, Result>,
      options?: RunAllOptions<Item, Awaited<Result>>,
    ): Promise<RunAllOutcome<Awaited<Result>>>;
  }
}

Object.assign(Session.prototype, {
  runAll<Item, Result>(
    this: Session,
    items: Iterable<Item>,
    fn: ItemFunction<Item, Result>,
    options?: RunAllOptions<Item, Awaited<Result>>,
  ): Promise<RunAllOutcome<Awaited<Result>>> {
    return runAll(this, items, fn, options);
  },
});
