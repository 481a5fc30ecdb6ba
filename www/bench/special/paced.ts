// A page's rhythm: one batch a frame, sent by the session's own clock.

import { open, type Session } from "framebatch";
import { check, frame, repeat, type Terms } from "../measure.ts";
import { lerp } from "../ops/lerp.ts";
import type { Call } from "../ops/op.ts";
import { medians, timed } from "../record.ts";
import { engineOf } from "../systems/framebatch.ts";
import type { Shape, System } from "../systems/system.ts";
import type { Finding } from "../run.ts";
import { type Seen, settling, spent, Watch } from "./watch.ts";

export async function measurePaced(
  flush: "frame" | "eager",
  shape: Shape,
  system: System,
  terms: Terms,
): Promise<Finding> {
  const calls = lerp.calls(shape.calls, shape.items);
  const watch = new Watch();
  const gpu = await open({ engine: engineOf(system), flush });
  try {
    const answers = calls.map((call) => lerp.framebatch(gpu, call, []));
    const error = check(lerp, system, calls, await Promise.all(answers));
    const runs = await repeat(() => paced(gpu, calls, watch), terms);
    return {
      ...timed(runs.map((run) => run.flushToLast)),
      error,
      parts: medians(runs),
    };
  } finally {
    watch.stop();
    await gpu.dispose();
  }
}

async function paced(gpu: Session, calls: Call[], watch: Watch) {
  await frame();
  watch.clear();
  const start = performance.now();
  const answers = calls.map((call) => lerp.framebatch(gpu, call, []));
  const made = performance.now();
  await Promise.all(answers);
  const end = performance.now();
  const sent = flushOf(watch.seen, made);
  const submit = made - start;
  const flush = sent.end - sent.start;
  const settle = settling(watch.seen);
  // What is done for the next batch belongs to this one.
  await frame();
  const tasks = watch.seen.filter(
    (seen) => seen.name === "task" && seen !== sent,
  );
  const aside = spent(tasks, "task");
  return {
    flushToLast: end - sent.start,
    mainThread: submit + flush + settle + aside,
    submit,
    flush,
    settle,
    // In tasks of its own, while nobody waits for them.
    aside,
    // When the clock flushed, counted from the last call.
    wait: sent.start - made,
  };
}

/** The task that sent the batch: the one that submitted, or on the CPU the first. */
function flushOf(seen: readonly Seen[], made: number): Seen {
  const later = seen.filter(({ start }) => start >= made);
  const submit = later.find(({ name }) => name === "submit");
  const task = later.find(
    ({ name, start, end }) =>
      name === "task" &&
      (submit === undefined || (start <= submit.start && end >= submit.end)),
  );
  const sent = task ?? submit;
  if (sent === undefined) throw new Error("nobody saw the batch being sent");
  return sent;
}
