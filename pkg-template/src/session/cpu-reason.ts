// Says why a session that might have had a GPU computes on the CPU.
//
// What the reason is, the core finds out. That a GPU was lost is told by the events of the device.

import { isDevelopment } from "../clock/lonely-warning.js";
import type { CpuReason } from "../metrics/stats.js";

/** The reasons that a session may have as it opens, but for the CPU that was asked for. */
const WHY: Partial<Record<CpuReason, string>> = {
  // The words of `../core/webgpu.ts`, which refuses an engine that is not there.
  "insecure-context":
    "WebGPU needs a secure context, and this page is not one; serve it over https or from localhost",
  unsupported: "there is no WebGPU here",
  "no-adapter": "WebGPU found no GPU",
  "software-adapter": "the only GPU adapter is a software one",
};

let isTold = false;

/**
 * What to say of a session that opened on the CPU for this reason; undefined where the CPU was
 * asked for. A developer is told once a page, by the console: outside of browsers, where nobody
 * expects WebGPU, and in production nobody is.
 */
export function explainCpu(reason: CpuReason | undefined): string | undefined {
  const why = WHY[reason!];
  if (why === undefined) return undefined;
  const message = `calls run on the CPU, because ${why}`;
  if (!isTold && globalThis.isSecureContext !== undefined && isDevelopment()) {
    isTold = true;
    console.warn(
      `framebatch: ${message} (gpu.info.reason "${reason}"); open with engine "cpu" to ask for that`,
    );
  }
  return message;
}
