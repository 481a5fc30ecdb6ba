// Where the time of one warm batch goes, from the first call to the last result.

import { open, type Session, type Tensor } from "framebatch";
import { check, repeat, type Terms } from "../measure.ts";
import type { Call, Op } from "../ops/op.ts";
import { medians, timed } from "../record.ts";
import { engineOf, hold } from "../systems/framebatch.ts";
import type { Shape, System } from "../systems/system.ts";
import type { Finding } from "../run.ts";
import { type Seen, settling, spent, Watch } from "./watch.ts";

export async function measureTrace(
  op: Op,
  shape: Shape,
  system: System,
  terms: Terms,
): Promise<Finding> {
  const calls = op.calls(shape.calls, shape.items);
  const watch = new Watch();
  const gpu = await open({ engine: engineOf(system), flush: "manual" });
  try {
    const held = hold(gpu, op, calls);
    const answers = calls.map((call) => op.framebatch(gpu, call, held));
    gpu.flush();
    const error = check(op, system, calls, await Promise.all(answers));
    const runs = await repeat(
      () => traced(op, gpu, [calls, held], watch),
      terms,
    );
    const totals = runs.map((run) =>
      Object.values(run).reduce((sum, part) => sum + part),
    );
    return { ...timed(totals), error, parts: medians(runs) };
  } finally {
    watch.stop();
    await gpu.dispose();
  }
}

/** The parts of one batch, in order; together they are all of its time. */
async function traced(
  op: Op,
  gpu: Session,
  [calls, held]: [Call[], Tensor[]],
  watch: Watch,
) {
  watch.clear();
  const start = performance.now();
  const answers = calls.map((call) => op.framebatch(gpu, call, held));
  const made = performance.now();
  gpu.flush();
  const flushed = performance.now();
  const sending = watch.seen.length;
  await Promise.all(answers);
  const end = performance.now();

  const inFlush = watch.seen.slice(0, sending);
  const after = watch.seen.slice(sending);
  const upload = spent(inFlush, "writeBuffer", "getMappedRange", "unmap");
  const encode = encoding(inFlush);
  const queue = spent(inFlush, "submit", "mapAsync");
  const settle = settling(after);
  const handed = after.filter(({ name }) => name === "handed out").at(-1);
  const reactions = end - (handed?.end ?? end);
  return {
    // TypeScript: checks, copies into wasm memory, one entry into Rust a call; and
    // the upload of large tensors, which does not wait for the flush.
    calls: made - start,
    // Rust: grouping, slots, segment tables, and the way into WebGPU.
    plan: flushed - made - upload - encode - queue,
    upload,
    encode,
    queue,
    // The GPU, the read-back, and the browser's notice of both.
    wait: end - flushed - settle - reactions,
    // Slices of the mapped range, promises resolved.
    settle,
    // The caller's reactions to its promises.
    reactions,
  };
}

/** Milliseconds from a new encoder to its end, without uploads in between. */
function encoding(seen: readonly Seen[]): number {
  let sum = 0;
  let from = NaN;
  for (const { name, start, end } of seen) {
    if (name === "createCommandEncoder") from = start;
    if (name === "writeBuffer" && !Number.isNaN(from)) sum -= end - start;
    if (name !== "finish") continue;
    sum += end - from;
    from = NaN;
  }
  return sum;
}
