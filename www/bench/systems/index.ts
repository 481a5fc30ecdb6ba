// Every system, in the order in which each workload is measured.

import { cpuLoop } from "./cpu-loop.ts";
import { framebatchAuto, framebatchCpu, framebatchGpu } from "./framebatch.ts";
import { jaxJs } from "./jax-js.ts";
import { oneBatch } from "./one-batch.ts";
import { perCall } from "./per-call.ts";
import type { System } from "./system.ts";
import { tfjsDefault, tfjsGpu } from "./tfjs.ts";

/** What the others are compared with: the practical limit. */
export const REFERENCE = oneBatch.name;

export const SYSTEMS: readonly System[] = [
  oneBatch,
  framebatchGpu,
  framebatchCpu,
  framebatchAuto,
  cpuLoop,
  perCall,
  tfjsDefault,
  tfjsGpu,
  jaxJs,
];
