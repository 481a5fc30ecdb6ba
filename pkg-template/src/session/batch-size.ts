// Checks the arguments of `gpu.optimalBatchSize`. The rule itself is the core's.

import { invalid, kindOf } from "../checks/errors.js";
import { checkNames } from "../checks/options.js";
import type { Core } from "../core/core.js";

/** What `gpu.optimalBatchSize` takes for items of a known size, in bytes. */
export interface BatchSizes {
  /** Memory that is taken whatever the batch: weights, an index. Default: 0. */
  modelBytes?: number;
  /** Memory that one item takes: its operands, intermediates and results together. */
  bytesPerItem: number;
}

/**
 * What `gpu.optimalBatchSize` takes for texts of an encoder. Layers and heads are not asked
 * for: each layer uses the memory of the one before, and scores are never in memory.
 * Intermediates are 32-bit floats, however the weights are kept.
 */
export interface EncoderSizes {
  /** Memory that the weights take, in bytes. Default: 0. */
  modelBytes?: number;
  /** Tokens of a text, `[CLS]` and `[SEP]` included. */
  sequenceLength: number;
  /** Floats of a token's vector: `hidden_size` of `config.json`. */
  hiddenSize: number;
  /** Floats inside the feed-forward network: `intermediate_size`. Default: `4 * hiddenSize`. */
  intermediateSize?: number;
}

const ABOUT = "optimalBatchSize";
const NAMES: Record<keyof BatchSizes, true> = {
  modelBytes: true,
  bytesPerItem: true,
};
const ENCODER_NAMES: Record<keyof EncoderSizes, true> = {
  modelBytes: true,
  sequenceLength: true,
  hiddenSize: true,
  intermediateSize: true,
};

/** Asks the core, once there is one. */
export function optimalBatchSize(
  core: Core | undefined,
  sizes: BatchSizes | EncoderSizes,
): number {
  if (typeof sizes !== "object" || sizes === null) {
    throw invalid(
      ABOUT,
      `it takes { modelBytes, bytesPerItem } or { modelBytes, sequenceLength, hiddenSize }, got ${kindOf(sizes)}`,
    );
  }
  const ofTexts = "sequenceLength" in sizes || "hiddenSize" in sizes;
  checkNames(ABOUT, sizes, ofTexts ? ENCODER_NAMES : NAMES);
  const { modelBytes = 0 } = sizes;
  check("modelBytes", "bytes", modelBytes, 0);
  if (!ofTexts) {
    const { bytesPerItem } = sizes;
    check("bytesPerItem", "bytes", bytesPerItem, 1);
    return opened(core).optimal_batch_size(modelBytes, bytesPerItem);
  }
  const { sequenceLength, hiddenSize } = sizes;
  check("sequenceLength", "tokens", sequenceLength, 1);
  check("hiddenSize", "floats", hiddenSize, 1);
  const { intermediateSize = 4 * hiddenSize } = sizes;
  check("intermediateSize", "floats", intermediateSize, 1);
  return opened(core).optimal_text_batch_size(
    modelBytes,
    sequenceLength,
    hiddenSize,
    intermediateSize,
  );
}

function opened(core: Core | undefined): Core {
  if (core !== undefined) return core;
  throw invalid(ABOUT, "the session is still opening; await gpu.ready first");
}

function check(name: string, unit: string, size: number, least: number): void {
  if (Number.isSafeInteger(size) && size >= least) return;
  throw invalid(
    ABOUT,
    `${name} must be a whole number of ${unit} from ${least}, got ${String(size)}`,
  );
}
