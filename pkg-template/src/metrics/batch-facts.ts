// The shape of what a session tells of a batch. The core measures; nothing is measured here.

/** A function that hears of batches. */
export type BatchListener = (facts: BatchFacts) => void;

/** A batch that came back: times in milliseconds, sizes in bytes; null is unknown. */
export interface BatchFacts {
  /** The batch's number. Numbers of a session rise, and wrap after 2³² batches. */
  id: number;
  /** Calls that were sent. */
  calls: number;
  /**
   * Items of these calls, as `maxBatchSize` counts: floats, quaternions, states, rows of
   * queries, tokens of texts; a tensor's call is one.
   */
  items: number;
  /** Calls that rejected, those included that were refused before the batch was sent. */
  failed: number;
  /** Chunks that the batch was sent in; a small batch is one. */
  subBatches: number;
  /** Submissions with work in them; 0 where the CPU computed all calls. */
  submits: number;
  /** Where the calls ran. */
  engine: "gpu" | "cpu";
  /** Bytes that were sent to the device. */
  bytesUp: number;
  /** Bytes that were read back. */
  bytesDown: number;
  /**
   * Floating-point operations of the kernels, by what was planned: each function of an element
   * is one, an `exp` too, and so is each value that a sum takes; a product of m × k and k × n
   * elements has 2·m·k·n, an attention those of its two products. Null where a kernel of the
   * page's own gives no `flops`, and of clips and of vectors that are inserted.
   */
  flops: number | null;
  /**
   * Bytes that kernels read and wrote: each operand and each result of every kernel once for
   * each call. Null of clips and of vectors that are inserted.
   */
  kernelBytes: number | null;
  /**
   * Bytes of device buffers that the session held when the last chunk was encoded, those of
   * its tensors included.
   */
  memoryBytes: number;
  /** When the sending of the batch began, on the clock of `performance.now()`. */
  startTime: number;
  /** How long the oldest call waited until `startTime`. */
  waitMs: number;
  /** Planning and encoding the chunks. */
  encodeMs: number;
  /** Writing the operands where the device takes them from. */
  transferMs: number;
  /**
   * The kernels, by the GPU's own timestamps; null where a GPU has none, and where kernels
   * took less than `resolutionMs`. Good to `subBatches * resolutionMs`.
   */
  gpuMs: number | null;
  /**
   * From the last submission until the last result was there, less `gpuMs` where that is
   * known: the rest of the link, the read-back, and until the browser noticed. Of several
   * chunks the first kernels ran before that submission, so the number is rather too small.
   */
  readMs: number;
  /** From the sending of the batch to its last result. */
  wallMs: number;
  /** Smallest step of the GPU's timestamps seen so far; browsers make them coarse. */
  resolutionMs: number | null;
  /** `items`, over `wallMs`. */
  itemsPerSecond: number | null;
  /** `items`, over `wallMs`, which is in milliseconds. */
  itemsPerMs: number | null;
  /** Bytes both ways, over `wallMs`. */
  bytesPerSecond: number | null;
  /** `kernelBytes`, over `gpuMs`: what caches hold counts, too. A billion is 1 GB/s. */
  kernelBytesPerSecond: number | null;
  /** `flops`, over `gpuMs`. A billion is 1 GFLOP/s. */
  flopsPerSecond: number | null;
  /** `gpuMs / (gpuMs + transferMs + readMs)`. */
  kernelEfficiency: number | null;
  /** `gpuMs / wallMs`. */
  utilization: number | null;
}
