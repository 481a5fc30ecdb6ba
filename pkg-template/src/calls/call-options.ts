// The options of a call: as callers give them, and as they hold while the call waits.
//
// Everything that may be wrong with options is found here, except whether `into` fits
// the result, which depends on the operands (`operands.ts` and its kinds).

import { invalid, kindOf } from "../checks/errors.js";
import {
  checkFunction,
  checkNames,
  checkObject,
  checkSignal,
  labeled,
} from "../checks/options.js";
import { checkPriority, type Priority } from "../checks/priority.js";
import {
  checkStorageOptions,
  STORAGE_NAMES,
  type StorageOptions,
} from "../checks/storage-options.js";
import type { Operand, Result } from "../memory/arrays.js";
import type { BatchFacts } from "../metrics/batch-facts.js";
import type { CallMethod } from "./operands.js";

/** What every call takes last. Every option may be left out. */
export interface CallOptions<Into = Operand> {
  /** Gives the call up: it rejects with `signal.reason`. Default: none. */
  signal?: AbortSignal;
  /** Milliseconds from the call after which it rejects with `timeout`. Default: none. */
  deadlineMs?: number;
  /** Receives the result and is what the promise resolves to. Default: a new array. */
  into?: Into;
  /** Under `overflow: "latest"`, a full queue keeps the newest call of each key. Default: none. */
  key?: string;
  /**
   * Where it runs. `gpu` rejects with `no-adapter` on a session without one, `cpu` with
   * `invalid-input` for a tensor that only the GPU has: one of more than 262,144 floats,
   * however they are kept, one made when 32 MiB of others were there, or one that clips
   * write. Default: where it is answered sooner under `engine: "auto"`, else on the
   * session's device.
   */
  engine?: "gpu" | "cpu";
  /**
   * `now` sends the batch, this call included, whatever the session's policy; while three
   * batches are on their way, as soon as one of them is back. Default: the policy decides.
   */
  flush?: "now";
  /**
   * `high` goes at the end of its task, whatever the policy, before all that waits; of such
   * batches one may pass `maxInFlight`. `low` fills what others leave, in slices: for a
   * second after a call of high priority each takes at most 4 ms of the device, by what
   * those before took, and otherwise 12.5 ms. Where others keep the device busy, low work
   * gets a tenth of its time. Under `manual` and functions a flush sends it. Calls that read
   * or write a tensor that one of them writes keep their order. Default: that of the stream
   * whose function makes the call, else `normal`.
   */
  priority?: Priority;
  /** Hears what the batch of this call was, once all of it is back. Default: none. */
  onMetrics?: (facts: BatchFacts) => void;
  /** Appears in the message of every error of this call. Default: none. */
  label?: string;
}

/** What `gpu.lerp` and `gpu.bezier` take last. */
export interface LerpOptions<
  Into extends Operand = Float32Array,
> extends CallOptions<Into> {
  /** Floats in an item: each item has its own `t` when `t` is an array. Default: 1. */
  width?: number;
}

/** What `gpu.states.gradients` takes last. */
export interface GradientsOptions<
  Into extends Float32Array = Float32Array,
> extends CallOptions<Into> {
  /** A formula of `rho`, `theta` and `layer` to differentiate. Default: the magnitude. */
  field?: string;
}

/** What calls take last whose results go to tensors that are there. */
export type StoreOptions = Omit<CallOptions, "into">;

/** What `tensor.compute` and `gpu.computeAll` take last. */
export interface ComputeOptions extends StoreOptions, StorageOptions {
  /**
   * Remembers how the tensor was computed, to compute it again on another device when this
   * one is lost: as long as no operand is disposed of or written, and at most 32 calls deep.
   * Default: true.
   */
  keep?: boolean;
  /** Appears in the message of every error of this call, and about the tensor. Default: none. */
  label?: string;
}

/** The options of any call. */
export type AnyOptions = CallOptions &
  Pick<LerpOptions, "width"> &
  Pick<GradientsOptions, "field">;

/** A call's options once checked: a copy that holds even if the caller changes its object. */
export interface CheckedOptions {
  readonly width: number;
  readonly field: string | undefined;
  readonly signal: AbortSignal | undefined;
  readonly deadlineMs: number | undefined;
  readonly into: Result | readonly Result[] | undefined;
  readonly key: string | undefined;
  readonly engine: "gpu" | "cpu" | undefined;
  readonly now: boolean;
  readonly priority: Priority;
  readonly onMetrics: ((facts: BatchFacts) => void) | undefined;
  readonly label: string | undefined;
}

// Records with every name, so that the compiler finds a name that is missing.
/** The names of the options that all calls have. */
export const CALL_NAMES: Record<keyof CallOptions, true> = {
  signal: true,
  deadlineMs: true,
  into: true,
  key: true,
  engine: true,
  flush: true,
  priority: true,
  onMetrics: true,
  label: true,
};
const LERP_NAMES: Record<keyof LerpOptions, true> = {
  width: true,
  ...CALL_NAMES,
};
const GRADIENTS_NAMES: Record<keyof GradientsOptions, true> = {
  field: true,
  ...CALL_NAMES,
};
const { into: _into, ...STORE_NAMES } = CALL_NAMES;
/** The names of the options of calls whose results new tensors take. */
export const COMPUTE_NAMES: Record<keyof ComputeOptions, true> = {
  ...STORAGE_NAMES,
  ...STORE_NAMES,
};
const NAMES = {
  none: CALL_NAMES,
  target: STORE_NAMES,
  keep: COMPUTE_NAMES,
  width: LERP_NAMES,
  field: GRADIENTS_NAMES,
};

/** Checks a call's options and copies them; `inherited` is the priority of a call that says none. */
export function checkCallOptions(
  method: CallMethod,
  options: AnyOptions | CallOptions<CheckedOptions["into"]>,
  inherited: Priority = "normal",
): CheckedOptions {
  checkObject(method.name, options);
  const { label } = options;
  const about = labeled(method.name, label);
  checkNames(about, options, NAMES[method.option ?? "none"]);
  const {
    width = method.width,
    field,
    signal,
    deadlineMs,
    into,
    key,
    engine,
    flush,
    priority = inherited,
    onMetrics,
  } = options as Omit<AnyOptions, "into"> & {
    into?: CheckedOptions["into"];
  };
  if (!Number.isSafeInteger(width) || width < 1) {
    throw invalid(about, `width must be a whole number from 1, got ${width}`);
  }
  if (field !== undefined && typeof field !== "string") {
    throw invalid(about, `field must be a string, got ${kindOf(field)}`);
  }
  if (method.option === "keep") {
    checkStorageOptions(about, options as ComputeOptions);
  }
  checkSignal(about, signal);
  if (deadlineMs !== undefined && !(deadlineMs >= 0)) {
    throw invalid(
      about,
      `deadlineMs must be a number from 0, got ${String(deadlineMs)}`,
    );
  }
  if (key !== undefined && typeof key !== "string") {
    throw invalid(about, `key must be a string, got ${kindOf(key)}`);
  }
  if (engine !== undefined && engine !== "gpu" && engine !== "cpu") {
    throw invalid(
      about,
      `engine must be 'gpu', 'cpu' or left out, got '${String(engine)}'`,
    );
  }
  if (flush !== undefined && flush !== "now") {
    throw invalid(about, `flush must be 'now' or left out, got '${flush}'`);
  }
  checkPriority(about, priority);
  checkFunction(about, "onMetrics", onMetrics);
  return {
    width,
    field,
    signal,
    deadlineMs,
    into,
    key,
    engine,
    now: flush === "now",
    priority,
    onMetrics,
    label,
  };
}
