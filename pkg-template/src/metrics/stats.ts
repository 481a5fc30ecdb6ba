// The shapes of what a session reports about itself.
//
// Numbers are counted by the core; nothing is counted here. Only a session that
// is still opening answers from this file, because it has no core to ask.

/** Counts since the session opened, times in milliseconds, sizes in bytes; null is unknown. */
export interface Stats {
  /** Calls taken. */
  calls: number;
  /** Calls that resolved. */
  settled: number;
  /** Calls that rejected. */
  rejected: number;
  /** Calls taken and not yet answered. */
  pending: number;
  /** Batches sent. */
  batches: number;
  /** Chunks that batches were sent in; a small batch is one. */
  subBatches: number;
  /** Submissions with work in them. */
  submits: number;
  /** Empty submissions, by which completed work is noticed sooner. */
  nudges: number;
  /** Buffers written. */
  uploads: number;
  /** Buffers mapped for reading. */
  readbacks: number;
  /** Dispatches encoded. */
  dispatches: number;
  /** Bytes sent to the device. */
  bytesUp: number;
  /** Bytes read back. */
  bytesDown: number;
  /** Calls a batch. */
  meanBatchSize: number;
  /** How full batches were against their limit, from 0 to 1, on average. */
  fillRate: number;
  /** How long a batch's oldest call waited until it was sent. */
  waitMs: { p50: number; p95: number };
  /** Spent planning and encoding a batch, on average. */
  encodeMs: number;
  /** Writing a batch's operands, on average of those that were measured (see `gpu.on`). */
  transferMs: number | null;
  /** A batch's kernels, likewise, where that is known. */
  gpuMs: number | null;
  /** From a batch's last submission to its last result, less its kernels. */
  readMs: number | null;
  /** Kernels' share of the time of kernels and transfers, 0 to 1. */
  kernelEfficiency: number | null;
  /** Kernels' share of the time in which a measured batch was on its way, 0 to 1. */
  utilization: number | null;
  /** Calls by the device that ran them. */
  ranOn: { gpu: number; cpu: number };
  /** Batches that the CPU took because the GPU had no memory for them. */
  fallbacks: number;
  /**
   * Memory held: bytes of device buffers now and at most, and their number; how many of
   * these bytes were asked for, the rest being rounding; and bytes of the host's memory for
   * operands and what the CPU keeps.
   */
  pool: {
    bytes: number;
    peakBytes: number;
    buffers: number;
    liveBytes: number;
    hostBytes: number;
  };
  /**
   * Bytes of the tensors that lie on the device: all of them, and by what their elements
   * are kept as (`f32` counts indexes too). The CPU takes those of f32 whatever that is.
   */
  tensors: {
    bytes: number;
    f32: number;
    f16: number;
    bf16: number;
    int8: number;
    int4: number;
  };
  /** Pipelines made, and uses of one that was there. */
  pipelines: { compiled: number; reused: number };
}

/**
 * Why calls run on the CPU: the session was opened with `engine: "cpu"` (`asked`); the page's
 * address is not secure, and browsers give WebGPU to no other (`insecure-context`); there is no
 * WebGPU (`unsupported`); WebGPU found no GPU (`no-adapter`), or one in software alone
 * (`software-adapter`), which computes no sooner than the CPU; or the GPU was lost, and none
 * could be kept (`device-lost`).
 */
export type CpuReason =
  | "asked"
  | "insecure-context"
  | "unsupported"
  | "no-adapter"
  | "software-adapter"
  | "device-lost";

/** Where a session runs. */
export interface Info {
  /** The adapter's name. */
  adapter: string;
  /** The driver's name, where it tells. */
  driver: string;
  /** Whether the adapter is software. */
  software: boolean;
  /** The device in use; under `engine: "auto"` with a GPU, calls may go to the CPU too. */
  engine: "gpu" | "cpu";
  /** Why the device in use is the CPU; undefined where it is a GPU. */
  reason?: CpuReason;
  /** WebGPU features of the device that the library uses or the page asked for. */
  features: string[];
  /** WebGPU limits of the device that decide what a batch can hold, by their WebGPU names. */
  limits: Record<string, number>;
  /** The library's version. */
  version: string;
  /** What is tuned to the load. */
  tuning: Tuning;
  /** What the devices are chosen by; undefined where nothing is chosen. */
  routing?: Routing;
}

/**
 * Values that are tuned by what batches of a GPU took, and what they are tuned by. Null is a
 * value that an option or its preset gives, or that the flush policy has no use for.
 */
export interface Tuning {
  /**
   * Longest wait of a batch's oldest call, in milliseconds: under `targetLatencyMs` in any
   * case, otherwise while the device is busy and no frames set the pace.
   */
  waitMs: number | null;
  /** Bytes of operands and results at which a batch is sent early. */
  batchBytes: number | null;
  /** Milliseconds that a batch takes whatever its size. */
  fixedMs: number;
  /** Milliseconds that a million bytes of operands and results add. */
  msPerMegabyte: number;
  /** Milliseconds that sending a batch takes of the main thread. */
  encodeMs: number;
  /** Batches that were observed: those that were alone on the GPU. */
  batches: number;
}

/**
 * What a call takes on each device, in milliseconds: `flush` for a flush of the GPU that
 * does nothing, `dispatch` for a kernel run, and the others for a million: bytes `up` and
 * `down`, calls, terms of an expression, floats blended, quaternions turned, layers of
 * states, products of a matrix product.
 */
export interface Routing {
  /** Whether the numbers were measured on this machine, now or in an earlier visit. */
  calibrated: boolean;
  flush: number;
  dispatch: number;
  up: number;
  down: number;
  gpuCall: number;
  gpuTerm: number;
  gpuBlend: number;
  gpuTurn: number;
  gpuLayer: number;
  gpuProduct: number;
  cpuCall: number;
  cpuTerm: number;
  cpuBlend: number;
  cpuTurn: number;
  cpuLayer: number;
  cpuProduct: number;
}

/** The numbers of a session that is still opening and holds this many calls. */
export function openingStats(calls: number): Stats {
  return {
    calls,
    settled: 0,
    rejected: 0,
    pending: calls,
    batches: 0,
    subBatches: 0,
    submits: 0,
    nudges: 0,
    uploads: 0,
    readbacks: 0,
    dispatches: 0,
    bytesUp: 0,
    bytesDown: 0,
    meanBatchSize: 0,
    fillRate: 0,
    waitMs: { p50: 0, p95: 0 },
    encodeMs: 0,
    transferMs: null,
    gpuMs: null,
    readMs: null,
    kernelEfficiency: null,
    utilization: null,
    ranOn: { gpu: 0, cpu: 0 },
    fallbacks: 0,
    pool: { bytes: 0, peakBytes: 0, buffers: 0, liveBytes: 0, hostBytes: 0 },
    tensors: { bytes: 0, f32: 0, f16: 0, bf16: 0, int8: 0, int4: 0 },
    pipelines: { compiled: 0, reused: 0 },
  };
}
