// The reading of a snapshot: a call of low priority that nobody awaits.
//
// When a snapshot is due, and what is kept of it, is decided in `snapshots.ts`.

import { input } from "./node.js";
import { READ, ReadOperands } from "./read-operands.js";
import type { TensorStorage } from "./storage.js";
import type { TensorSession } from "./tensor-session.js";

/** Reads a tensor behind the calls that were made so far. What fails skips the snapshot. */
export function takeSnapshot(
  calls: TensorSession,
  storage: TensorStorage,
): void {
  const { snapshots, words } = storage;
  if (snapshots === undefined) return; // The tensor was disposed of meanwhile.
  const root = input({ dims: [words], count: words }, storage);
  const operands = new ReadOperands(calls.chains, READ, [root]);
  const controller = new AbortController();
  const { signal } = controller;
  snapshots.begin();
  calls
    .take<Float32Array | Uint32Array>(operands, { priority: "low", signal })
    .then(
      (data) => snapshots.finish(data),
      () => snapshots.skip(),
    )
    .finally(() => calls.yielding.delete(controller));
  calls.yielding.add(controller);
}
