// What may be said when opening a session and when making a call.
//
// Names are checked here, because the core cannot see a name it does not know;
// the values of a session's options are checked by the core, which gives each
// its meaning. Only `flush` and `wasm` are the face's own.

import type { WasmSource } from "./core.js";
import type { Operand } from "./check.js";
import { invalid, kindOf, subject } from "./errors.js";
import { LERP, type Method } from "./method.js";

/** Decides itself when queued calls are sent: called with `flush` when a batch gets its first call. */
export type Scheduler = (flush: () => void) => void;

/** What `open` and `shared` take. All of it is optional. */
export interface OpenOptions {
  /**
   * Where work runs. `auto` uses a GPU where there is one and the CPU otherwise;
   * `gpu` fails where there is none. Default: `auto`.
   */
  engine?: "auto" | "gpu" | "cpu";
  /**
   * When queued calls are sent: once at the end of each animation frame that has
   * calls; `eager`, as soon as the GPU is free; `manual`, only by `gpu.flush()`;
   * or a function that decides. Without frames (a hidden page, Node) `frame` means
   * the end of the current task. Default: `frame`.
   */
  flush?: "frame" | "eager" | "manual" | Scheduler;
  /** A named set of the four bounds below; each given one overrides it. Default: none. */
  preset?: "latency" | "balanced" | "throughput" | "embeddings";
  /** Items held before a batch is sent early. Default: as many as fit in memory. */
  maxBatchSize?: number;
  /** Items an idle GPU waits for under `eager`, at most `maxWaitMs`. Default: 1. */
  minBatchSize?: number;
  /** Longest wait of a batch's oldest call, in milliseconds. Default: none; 5 under `eager`. */
  maxWaitMs?: number;
  /**
   * Calls, or calls and bytes of input, that may be pending.
   * Default: 65,536 calls and 256 MiB.
   */
  queueCapacity?: number | { calls?: number; bytes?: number };
  /**
   * What a full queue does to a new call: `wait` accepts it (`gpu.ready` tells when
   * there is room), `reject` fails it with `queue-full`, `latest` drops the older
   * call of the same `key`. Default: `wait`.
   */
  overflow?: "wait" | "reject" | "latest";
  /** Bytes of memory the session may hold. Default: 512 MiB; 256 MiB on small devices. */
  memoryBudget?: number;
  /** Which adapter to prefer where there are two. Default: the browser's choice. */
  powerPreference?: "low-power" | "high-performance";
  /** WebGPU features the device must have, for the page's own use of `gpu.device`. Default: none. */
  requiredFeatures?: string[];
  /** WebGPU limits the device must offer, by their WebGPU names. Default: none. */
  requiredLimits?: Record<string, number>;
  /**
   * The WebAssembly file: an address, its bytes or a compiled module. The first
   * session of a page decides. Default: fetched from beside the package's scripts.
   */
  wasm?: WasmSource;
}

/** What every call takes last. All of it is optional. */
export interface CallOptions<Into extends Operand = Operand> {
  /** Gives the call up: it rejects with `signal.reason`. Default: none. */
  signal?: AbortSignal;
  /** Receives the result and is what the promise resolves to. Default: a new array. */
  into?: Into;
  /** Under `overflow: "latest"`, a full queue keeps the newest call of each key. Default: none. */
  key?: string;
  /** `now` sends the batch at once, this call included. Default: the session's policy. */
  flush?: "now";
  /** Appears in the message of every error of this call. Default: none. */
  label?: string;
}

/** What `gpu.lerp` takes last. */
export interface LerpOptions<
  Into extends Operand = Float32Array,
> extends CallOptions<Into> {
  /** Floats in an item: each item has its own `t` when `t` is an array. Default: 1. */
  width?: number;
}

/** A call's options once checked: what holds even if the caller changes its object. */
export interface Terms {
  readonly width: number;
  readonly signal: AbortSignal | undefined;
  readonly into: Operand | undefined;
  readonly key: string | undefined;
  readonly now: boolean;
  readonly label: string | undefined;
}

// A record with every name, so that the compiler finds a name that is missing.
const OPEN_NAMES: Record<keyof OpenOptions, true> = {
  engine: true,
  flush: true,
  preset: true,
  maxBatchSize: true,
  minBatchSize: true,
  maxWaitMs: true,
  queueCapacity: true,
  overflow: true,
  memoryBudget: true,
  powerPreference: true,
  requiredFeatures: true,
  requiredLimits: true,
  wasm: true,
};
const CALL_NAMES: Record<keyof CallOptions, true> = {
  signal: true,
  into: true,
  key: true,
  flush: true,
  label: true,
};
const LERP_NAMES: Record<keyof LerpOptions, true> = {
  width: true,
  ...CALL_NAMES,
};

/** Throws unless every name in `options` is one that `open` knows. */
export function checkOpenOptions(name: string, options: OpenOptions): void {
  if (typeof options !== "object" || options === null) {
    throw invalid(name, `options must be an object, got ${kindOf(options)}`);
  }
  checkNames(name, options, OPEN_NAMES);
}

/** The core's share of the options, without what was left undefined. */
export function coreConfig(options: OpenOptions): Record<string, unknown> {
  const { wasm: _wasm, flush = "frame", ...rest } = options;
  const config: Record<string, unknown> = {
    flush: typeof flush === "function" ? "manual" : flush,
  };
  for (const [name, value] of Object.entries(rest)) {
    if (value !== undefined) config[name] = value;
  }
  return config;
}

/** Checks a call's options and keeps what they say. */
export function checkCallOptions(
  method: Method,
  options: LerpOptions<Operand>,
): Terms {
  const label = labelOf(method, options);
  const about = subject(method.name, label);
  checkNames(about, options, method === LERP ? LERP_NAMES : CALL_NAMES);
  const { width = method.width, signal, into, key, flush } = options;
  if (!Number.isSafeInteger(width) || width < 1) {
    throw invalid(about, `width must be a whole number from 1, got ${width}`);
  }
  if (signal !== undefined && typeof signal?.addEventListener !== "function") {
    throw invalid(
      about,
      `signal must be an AbortSignal, got ${kindOf(signal)}`,
    );
  }
  if (key !== undefined && typeof key !== "string") {
    throw invalid(about, `key must be a string, got ${kindOf(key)}`);
  }
  if (flush !== undefined && flush !== "now") {
    throw invalid(about, `flush must be 'now' or left out, got '${flush}'`);
  }
  return { width, signal, into, key, now: flush === "now", label };
}

function labelOf(method: Method, options: unknown): string | undefined {
  if (typeof options !== "object" || options === null) {
    throw invalid(
      method.name,
      `options must be an object, got ${kindOf(options)}`,
    );
  }
  const { label } = options as CallOptions;
  if (label === undefined || typeof label === "string") return label;
  throw invalid(method.name, `label must be a string, got ${kindOf(label)}`);
}

function checkNames(about: string, options: object, known: object): void {
  for (const name in options) {
    if (Object.hasOwn(known, name)) continue;
    const names = Object.keys(known).join(", ");
    throw invalid(
      about,
      `there is no option '${name}'; the options are ${names}`,
    );
  }
}
