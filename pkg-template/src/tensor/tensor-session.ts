// What tensors ask of the session that they belong to.

import type { CallOptions, CheckedOptions } from "../calls/call-options.js";
import type { Operands } from "../calls/operands.js";
import type { FramebatchError } from "../checks/errors.js";
import type { Core } from "../core/core.js";
import type { Slab } from "../memory/slab.js";
import type { ChainWriter } from "./chain-writer.js";
import type { ResidentTensors } from "./resident-tensors.js";

/** A session, as far as tensors know it. */
export interface TensorSession {
  /** Undefined while the session opens, and after its end. */
  readonly core: Core | undefined;
  /** Why no more calls are taken; undefined while they are. */
  readonly ended: FramebatchError | undefined;
  /** Where copies of short data go. */
  readonly slab: Slab;
  readonly chains: ChainWriter;
  readonly residents: ResidentTensors;
  /** Aborts the calls that give their places in a full queue to others. */
  readonly yielding: Set<AbortController>;
  /** Takes a call. Never throws: what is wrong with it rejects the promise. */
  take<Answer>(
    operands: Operands,
    options: CallOptions<CheckedOptions["into"]> | undefined,
  ): Promise<Answer>;
}
