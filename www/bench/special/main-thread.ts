// What a call costs on the main thread, and whether runs leave memory behind.
//
// The caller's work with the answers is not counted: its promise reactions come after.

import { open, type Session } from "framebatch";
import { check, pause, repeat, type Terms } from "../measure.ts";
import { lerp } from "../ops/lerp.ts";
import type { Call } from "../ops/op.ts";
import { medians, timed } from "../record.ts";
import { engineOf } from "../systems/framebatch.ts";
import type { Shape, System } from "../systems/system.ts";
import type { Finding } from "../run.ts";
import { settling, Watch } from "./watch.ts";

export async function measureMainThread(
  shape: Shape,
  system: System,
  terms: Terms,
): Promise<Finding> {
  const calls = lerp.calls(shape.calls, shape.items);
  const watch = new Watch();
  const gpu = await open({ engine: engineOf(system), flush: "manual" });
  try {
    const error = check(lerp, system, calls, await batch(gpu, calls));
    const runs = await repeat(() => watched(gpu, calls, watch), terms);
    watch.stop();
    const left = await growth(gpu, calls, terms);
    return {
      ...timed(runs.map((run) => run.submit + run.flush + run.settle)),
      error,
      parts: { ...medians(runs), ...left },
    };
  } finally {
    watch.stop();
    await gpu.dispose();
  }
}

function batch(gpu: Session, calls: Call[]): Promise<Float32Array[]> {
  const answers = calls.map((call) => lerp.framebatch(gpu, call, []));
  gpu.flush();
  return Promise.all(answers);
}

/** Microseconds a call. */
async function watched(gpu: Session, calls: Call[], watch: Watch) {
  watch.clear();
  const answers = new Array<Promise<Float32Array>>(calls.length);
  const start = performance.now();
  for (let i = 0; i < calls.length; i++) {
    answers[i] = lerp.framebatch(gpu, calls[i], []);
  }
  const made = performance.now();
  gpu.flush();
  const flushed = performance.now();
  await Promise.all(answers);
  const scale = 1000 / calls.length;
  return {
    submit: (made - start) * scale,
    flush: (flushed - made) * scale,
    settle: settling(watch.seen) * scale,
  };
}

/** Bytes that a batch leaves behind, where the browser tells; none where it does not. */
async function growth(
  gpu: Session,
  calls: Call[],
  terms: Terms,
): Promise<Record<string, number>> {
  const { batches } = terms.effort;
  const before = await memory();
  for (let n = 0; n < batches; n++) {
    terms.signal.throwIfAborted();
    await batch(gpu, calls);
  }
  const after = await memory();
  if (before === undefined || after === undefined) return {};
  return { leftBytesABatch: Math.round((after - before) / batches) };
}

interface Telling {
  measureUserAgentSpecificMemory?(): Promise<{ bytes: number }>;
  memory?: { usedJSHeapSize: number };
}

/** Bytes in use, garbage collected first. */
async function memory(): Promise<number | undefined> {
  const telling = performance as Telling;
  const { gc } = globalThis as { gc?: () => void };
  if (gc !== undefined && telling.memory !== undefined) {
    // What a task's promises and arrays leave is found by the second collection.
    for (let n = 0; n < 2; n++) {
      await pause(0);
      gc();
    }
    return telling.memory.usedJSHeapSize;
  }
  // Waits for a collection of the browser's own, which may take half a minute.
  if (crossOriginIsolated && telling.measureUserAgentSpecificMemory) {
    try {
      return (await telling.measureUserAgentSpecificMemory()).bytes;
    } catch (error) {
      // A browser without windows may have the method and not its answer.
      if (!(error instanceof DOMException)) throw error;
    }
  }
  return undefined;
}
