// Independent calls, awaited together, on any system.

import { check, clocked, repeat, type Terms } from "../measure.ts";
import type { Op } from "../ops/op.ts";
import { timed } from "../record.ts";
import type { Shape, System } from "../systems/system.ts";
import type { Finding } from "../run.ts";

export async function measureCalls(
  op: Op,
  shape: Shape,
  system: System,
  terms: Terms,
): Promise<Finding> {
  const calls = op.calls(shape.calls, shape.items);
  // Open alone: a GPU that changes between the devices of two takes longer for either.
  const opened = await system.open(op, calls);
  try {
    const error = check(op, system, calls, await opened.run(calls));
    const times = await repeat(() => clocked(() => opened.run(calls)), terms);
    return { ...timed(times), error };
  } finally {
    await opened.close();
  }
}
