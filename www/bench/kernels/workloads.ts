// What the page measures: calls of callers' own kernels, of traced chains, and a stencil that
// stays on the GPU. A table.

import { measureCalls } from "../special/calls.ts";
import type { Op } from "../ops/op.ts";
import type { Measured } from "../run.ts";
import { cpuLoop } from "../systems/cpu-loop.ts";
import { framebatchGpu } from "../systems/framebatch.ts";
import { oneBatch } from "../systems/one-batch.ts";
import { perCall } from "../systems/per-call.ts";
import type { System } from "../systems/system.ts";
import { gpuJs } from "./gpu-js.ts";
import { polynomial } from "./polynomial.ts";
import { measureStencil, type OpenCells } from "./stencil.ts";
import { openByFramebatch } from "./stencil-by-framebatch.ts";
import { openByHand } from "./stencil-by-hand.ts";
import { tracedChain } from "./traced-chain.ts";
import { typeGpu } from "./typegpu.ts";

export type Workload = Measured<System>;

export const SYSTEMS: readonly System[] = [
  oneBatch,
  framebatchGpu,
  typeGpu,
  gpuJs,
  perCall,
  cpuLoop,
];

/** So many callers of one operation, each on its own 64 floats. */
const callers = (
  name: string,
  op: Op,
  count: number,
  about: string,
): Workload => {
  const shape = { calls: count, items: 64 };
  return {
    name: `${name}-${count}x64`,
    about: `from the first call to the last result: ${count.toLocaleString("en")} callers of ${about}`,
    ...shape,
    systems: SYSTEMS,
    measure: (system, terms) => measureCalls(op, shape, system, terms),
  };
};

const COUNTS = [10, 1000];

const STEPS = 100;

const STENCILS: Record<string, OpenCells> = {
  [oneBatch.name]: openByHand,
  [framebatchGpu.name]: openByFramebatch,
};

const stencil = (side: number, more: Partial<Workload> = {}): Workload => ({
  name: `stencil-${side}x${side}-${STEPS}`,
  about: `${STEPS} steps of a stencil of four neighbors on ${side} x ${side} cells that stay on the GPU, and one read of four of them`,
  calls: STEPS,
  items: side * side,
  systems: [oneBatch, framebatchGpu],
  measure: ({ name }, terms) =>
    measureStencil(STENCILS[name], { side, steps: STEPS }, terms),
  ...more,
});

export const WORKLOADS: readonly Workload[] = [
  ...COUNTS.map((count) =>
    callers(
      "kernel",
      polynomial,
      count,
      "one kernel of 20 floating-point operations, each on 64 floats of two operands and with a number of its own",
    ),
  ),
  ...COUNTS.map((count) =>
    callers(
      "fn",
      tracedChain,
      count,
      "relu, scale and add on 64 floats, which framebatch records once by gpu.fn",
    ),
  ),
  stencil(256),
  stencil(1024, { isLong: true }),
];
