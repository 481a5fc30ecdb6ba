// The options of `open` and `shared`.
//
// Names are checked here; values are checked by the core, which gives them their meaning.
// `wasm`, `devtools`, a scheduler and the shape of `queueCapacity` concern TypeScript
// alone, and never reach the core as they are.

import { invalid, kindOf } from "../checks/errors.js";
import { checkNames, checkOptions } from "../checks/options.js";
import type { FlushPolicy } from "../clock/clock.js";
import type { WasmSource } from "../core/core.js";

/** What `open` and `shared` take. All of it is optional. */
export interface OpenOptions {
  /**
   * Where work runs. `auto` sends each group of equal calls of a flush where it is
   * answered sooner, GPU or CPU, and to the CPU where there is no GPU in hardware; a
   * structure keeps its route for 60 flushes, its first two for 8, unless its group
   * becomes four times larger or smaller. `gpu` is the GPU for every call that does not
   * ask for the CPU, a software one included, and fails where there is none. Results of
   * floats may differ in their last bits between devices. Default: `auto`.
   */
  engine?: "auto" | "gpu" | "cpu";
  /**
   * When queued calls are sent: once at the end of each animation frame that has
   * calls; `eager`, as soon as the GPU is free; `manual`, by `gpu.flush()`; or a function
   * that decides. A full batch, a stream and a call with `flush: "now"` go by themselves. Without frames (a hidden page, Node) `frame` means
   * the end of the current task. Default: the preset's.
   */
  flush?: FlushPolicy;
  /**
   * A named set of the settings below, each of which overrides it when given. All but
   * `frame` flush as `eager` does. Default: `frame`; `eager` under `flush: "eager"`.
   */
  preset?:
    "frame" | "eager" | "latency" | "balanced" | "throughput" | "embeddings";
  /**
   * Items held before a batch is sent early. Default: as many as have 64 MiB of operands
   * and results, fewer where the device or the budget holds less; 256 under `latency`,
   * 1,024 under `balanced`, 2,048 under `throughput`.
   */
  maxBatchSize?: number;
  /** Items an idle GPU waits for under `eager`, at most `maxWaitMs`. Default: 1. */
  minBatchSize?: number;
  /**
   * Longest wait of a batch's oldest call, in milliseconds: for its frame, or under `eager`
   * for `minBatchSize`. Under `manual` and a function nothing goes by time. Default: none
   * with frames; 5 under `eager` and `balanced`, 1 under `latency`, else 10.
   */
  maxWaitMs?: number;
  /**
   * Calls, or calls and bytes of operands and results, that may be pending. Default:
   * 65,536 calls, 128 under `latency`, `balanced` and `throughput`, 512 under
   * `embeddings`; and 256 MiB.
   */
  queueCapacity?: number | { calls?: number; bytes?: number };
  /**
   * What a full queue does to a new call: `wait` accepts it (`gpu.ready` tells when
   * there is room), `reject` fails it with `queue-full`, `latest` drops the older
   * call of the same `key`. Default: `wait`; `reject` under `latency`.
   */
  overflow?: "wait" | "reject" | "latest";
  /**
   * Bytes of memory that the session may use, from 1 MiB, 80 % of it for live data.
   * Default: 512 MiB; 256 MiB where the device offers no more than WebGPU guarantees.
   */
  memoryBudget?: number;
  /** Which adapter to prefer where there are two. Default: the browser's choice. */
  powerPreference?: "low-power" | "high-performance";
  /**
   * WebGPU features the device must have, for the page's own use of `gpu.device`, such as
   * `float32-filterable` or `texture-compression-bc`. Opening fails where the adapter
   * lacks one, and says which there are for a name that it does not know. Default: none.
   */
  requiredFeatures?: string[];
  /**
   * What the device must offer of the limits that `gpu.info.limits` has. The device has
   * every limit as its adapter offers it. Default: nothing.
   */
  requiredLimits?: Record<string, number>;
  /**
   * What to use at most of `maxBufferSize`, `maxStorageBufferBindingSize` (65,536 bytes
   * or more) and `maxComputeWorkgroupsPerDimension`: larger work goes in chunks, as on
   * a device that offers no more. Default: what the device offers.
   */
  maxLimits?: Record<string, number>;
  /** Milliseconds without an answer after which a GPU counts as lost. Default: 10,000. */
  stallMs?: number;
  /**
   * Whether each batch becomes an entry of the browser's performance timeline
   * (`performance.measure`), which DevTools shows. Default: false.
   */
  devtools?: boolean;
  /**
   * The WebAssembly file: an address, its bytes or a compiled module. The first
   * session of a page decides. Default: fetched from beside the package's scripts.
   */
  wasm?: WasmSource;
}

// Records with every name, so that the compiler finds a name that is missing.
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
  maxLimits: true,
  stallMs: true,
  devtools: true,
  wasm: true,
};
const CAPACITY_NAMES: Record<"calls" | "bytes", true> = {
  calls: true,
  bytes: true,
};

/** Throws unless every name in `options` is one that `open` knows. */
export function checkOpenOptions(about: string, options: OpenOptions): void {
  checkOptions(about, options, OPEN_NAMES);
  const { devtools = false } = options;
  if (typeof devtools !== "boolean") {
    throw invalid(about, `devtools must be a boolean, got ${kindOf(devtools)}`);
  }
  const capacity = capacityOf(options.queueCapacity);
  checkNames(about, capacity, CAPACITY_NAMES);
  for (const [name, value] of Object.entries(capacity)) {
    if (value === undefined || (Number.isSafeInteger(value) && value >= 1)) {
      continue;
    }
    throw invalid(
      about,
      `queueCapacity must be a whole number of ${name} from 1, got ${value}`,
    );
  }
}

/** The flush policy that the options come to. */
export function flushPolicy({ flush, preset }: OpenOptions): FlushPolicy {
  if (flush !== undefined) return flush;
  return preset === undefined || preset === "frame" ? "frame" : "eager";
}

/** The options that concern the core, without those that are undefined. */
export function coreConfig(options: OpenOptions): Record<string, unknown> {
  const {
    wasm: _wasm,
    flush: _flush,
    devtools: _devtools,
    queueCapacity,
    ...rest
  } = options;
  const policy = flushPolicy(options);
  const capacity = capacityOf(queueCapacity);
  const config: Record<string, unknown> = {
    ...rest,
    flush: typeof policy === "function" ? "manual" : policy,
    queueCalls: capacity.calls,
    queueBytes: capacity.bytes,
  };
  for (const name of Object.keys(config)) {
    if (config[name] === undefined) delete config[name];
  }
  return config;
}

function capacityOf(capacity: OpenOptions["queueCapacity"]): {
  calls?: number;
  bytes?: number;
} {
  const isObject = typeof capacity === "object" && capacity !== null;
  return isObject ? { ...capacity } : { calls: capacity };
}
