// Whether there is WebGPU where this script runs.

import { FramebatchError } from "../checks/errors.js";

/**
 * Whether this page can use a GPU. Sessions open without one too, on the CPU.
 *
 * @example
 * const gpu = await open({ engine: (await isSupported()) ? "gpu" : "cpu" });
 */
export async function isSupported(): Promise<boolean> {
  try {
    return (await navigator.gpu.requestAdapter()) !== null;
  } catch {
    // No `navigator`, no `gpu`, or a GPU process that would not answer.
    return false;
  }
}

/** Throws where a GPU is asked for that the platform cannot have. */
export function checkPlatform(): void {
  if (globalThis.isSecureContext === false) {
    throw new FramebatchError(
      "insecure-context",
      "WebGPU needs a secure context, and this page is not one; serve it over https or from localhost, or open with engine 'auto'",
    );
  }
  if (globalThis.navigator?.gpu === undefined) {
    throw new FramebatchError(
      "unsupported",
      "there is no WebGPU here (navigator.gpu is missing); open with engine 'auto' or 'cpu' to run on the CPU",
    );
  }
}
