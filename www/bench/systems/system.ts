// What is compared: a system is opened for a workload, answers its calls, and is closed.
//
// An answer is one new array a call. Nothing here is timed or checked.

import type { Bounds, Call, Op } from "../ops/op.ts";
import type { Named } from "../run.ts";

/** How many calls of how many items a run has. */
export interface Shape {
  readonly calls: number;
  readonly items: number;
}

/** A system, open for one operation. */
export interface Opened {
  /** All answers, once the last is there. */
  run(calls: Call[]): Promise<Float32Array[]>;
  close(): void | Promise<void>;
}

export interface System extends Named {
  /** The bound that its answers are held to. */
  readonly bound: keyof Bounds;
  /**
   * Opens it for these calls, and others of the same lengths. Throws where it lacks
   * the operation, or what it runs on.
   */
  open(op: Op, calls: readonly Call[]): Promise<Opened>;
}

/** A device of its own, with all that the adapter has. */
export async function openDevice(): Promise<GPUDevice> {
  const adapter = await navigator.gpu?.requestAdapter({
    powerPreference: "high-performance",
  });
  if (!adapter) throw new Error("no WebGPU adapter");
  const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
  return adapter.requestDevice({
    requiredLimits: { maxBufferSize, maxStorageBufferBindingSize },
  });
}
