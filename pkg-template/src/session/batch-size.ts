// Checks the arguments of `gpu.optimalBatchSize`. The rule itself is the core's.

import { invalid, kindOf } from "../checks/errors.js";
import { checkNames } from "../checks/options.js";
import type { Core } from "../core/core.js";

/** What `gpu.optimalBatchSize` takes, in bytes. */
export interface BatchSizes {
  /** Memory that is taken whatever the batch: weights, an index. Default: 0. */
  modelBytes?: number;
  /** Memory that one item takes: its operands, intermediates and results together. */
  bytesPerItem: number;
}

const ABOUT = "optimalBatchSize";
const NAMES: Record<keyof BatchSizes, true> = {
  modelBytes: true,
  bytesPerItem: true,
};

/** Asks the core, once there is one. */
export function optimalBatchSize(
  core: Core | undefined,
  sizes: BatchSizes,
): number {
  if (typeof sizes !== "object" || sizes === null) {
    throw invalid(
      ABOUT,
      `it takes { modelBytes, bytesPerItem }, got ${kindOf(sizes)}`,
    );
  }
  checkNames(ABOUT, sizes, NAMES);
  const { modelBytes = 0, bytesPerItem } = sizes;
  check("modelBytes", modelBytes, 0);
  check("bytesPerItem", bytesPerItem, 1);
  if (core === undefined) {
    throw invalid(ABOUT, "the session is still opening; await gpu.ready first");
  }
  return core.optimal_batch_size(modelBytes, bytesPerItem);
}

function check(name: string, bytes: number, least: number): void {
  if (Number.isSafeInteger(bytes) && bytes >= least) return;
  throw invalid(
    ABOUT,
    `${name} must be a whole number of bytes from ${least}, got ${String(bytes)}`,
  );
}
