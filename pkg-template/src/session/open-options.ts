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
   * When queued calls are sent. `auto`: while the page makes calls in frame callbacks, once
   * at the end of each frame; otherwise at the end of the task that made them, or while the
   * device is busy with what gathers until it is free, at the latest at the frame's end.
   * `frame`: once at the end of each frame that has calls, whatever the page does; without
   * frames (a hidden page, Node) at the end of the task. `eager`: as `auto` does without
   * frames. `manual`: by `gpu.flush()`. Or a function that decides. A full batch, a stream
   * and a call with `flush: "now"` go by themselves. Default: the preset's.
   */
  flush?: FlushPolicy;
  /**
   * A named set of the settings below, each of which overrides it when given. `frame` and
   * `eager` flush as their names say, the others as `auto` does. Default: `auto`; `eager`
   * under `flush: "eager"`.
   */
  preset?:
    | "auto"
    | "frame"
    | "eager"
    | "latency"
    | "balanced"
    | "throughput"
    | "embeddings";
  /**
   * Items held before a batch is sent early. Default: as many as have 64 MiB of operands
   * and results, fewer where the device or the budget holds less or `gpu.info.tuning` says
   * so; 256 under `latency`, 1,024 under `balanced`, 2,048 under `throughput`.
   */
  maxBatchSize?: number;
  /**
   * Items that an idle device waits for under `auto` and `eager`, at most `maxWaitMs`, or
   * 16 ms under `auto` without it.
   * Default: 1; 8 under `throughput` and `embeddings`.
   */
  minBatchSize?: number;
  /**
   * Longest wait of a batch's oldest call, in milliseconds, whether the device is busy or
   * not, as far as `maxInFlight` lets. Under `manual` and a function nothing goes by time.
   * Default: none under `frame`; under `auto` until the frame's end, or without frames as
   * long as `gpu.info.tuning` says, which is 16 at first and 1 at least; 5 under `eager` and `balanced`, 1 under `latency`, 10 under `throughput` and
   * `embeddings`.
   */
  maxWaitMs?: number;
  /**
   * Milliseconds from a call to its answer that batches are to keep to. The longest wait and
   * the bytes of a batch are tuned so that the largest batches do, by what was measured. What
   * `maxWaitMs` or `maxBatchSize` gives is not tuned, and both with a target are
   * `invalid-input`; what a preset says of either makes way. A target that the device cannot
   * meet, and calls beyond what it can do at all, are answered later. Default: none.
   */
  targetLatencyMs?: number;
  /**
   * What the calls of a batch may cost together: a text to be embedded costs as much as it
   * has tokens, other calls nothing. One that costs more goes alone. Default: 16,384.
   */
  maxBatchCost?: number;
  /** Batches that are sent and not answered, at most. Default: 3. */
  maxInFlight?: number;
  /**
   * Pieces of large batches that are sent and not answered, at most. With 1 nothing
   * overlaps, to see what overlap gives. Default: as many as memory lets.
   */
  maxPiecesInFlight?: number;
  /**
   * Calls, or calls and bytes of operands and results, that may wait to be sent; no fewer
   * calls than `maxBatchSize`. Default: 65,536 calls, 256 under `latency`, 2,048 under
   * `balanced`, 4,096 under `throughput`, 512 under `embeddings`; and 256 MiB.
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
  /** The adapter to prefer where there are two. Default: the browser's choice. */
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
  /**
   * Milliseconds without an answer after which a GPU counts as lost. Default: 10,000, and
   * 60,000 for a GPU in software.
   */
  stallMs?: number;
  /**
   * Whether each batch becomes an entry of the browser's performance timeline
   * (`performance.measure`), which DevTools shows. Default: false.
   */
  devtools?: boolean;
  /**
   * The WebAssembly file: an address, in Node a path too, its bytes or a compiled module. The
   * first session of a page decides. Default: what `framebatch/inline` holds, or else the file
   * of the package.
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
  maxBatchCost: true,
  maxInFlight: true,
  maxPiecesInFlight: true,
  maxWaitMs: true,
  targetLatencyMs: true,
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

/** Throws unless every name in `options` is one that `open` knows, or one of `more`. */
export function checkOpenOptions(
  about: string,
  options: OpenOptions,
  more?: Readonly<Record<string, true>>,
): void {
  checkOptions(about, options, { ...OPEN_NAMES, ...more });
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
  return preset === "frame" || preset === "eager" ? preset : "auto";
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
