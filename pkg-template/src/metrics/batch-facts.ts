// The shape of what a session tells of a batch. The core measures; nothing is measured here.

/** A function that hears of batches. */
export type BatchListener = (facts: BatchFacts) => void;

/** A batch that came back: times in milliseconds, sizes in bytes; null is unknown. */
export interface BatchFacts {
  /** Calls that were sent. */
  calls: number;
  /** Chunks that they were sent in; a small batch is one. */
  subBatches: number;
  /** Where they ran. */
  engine: "gpu" | "cpu";
  /** Sent to the device. */
  bytesUp: number;
  /** Read back. */
  bytesDown: number;
  /** When its sending began, on the clock of `performance.now()`. */
  startTime: number;
  /** How long its oldest call waited until then. */
  waitMs: number;
  /** Planning and encoding its chunks. */
  encodeMs: number;
  /** Writing its operands where the device takes them from. */
  transferMs: number;
  /**
   * Its kernels, by the GPU's own timestamps; null where it has none, and where they took
   * less than `resolutionMs`. Good to `subBatches * resolutionMs`.
   */
  gpuMs: number | null;
  /**
   * From its last submission until its last result was there, less `gpuMs` where that is
   * known: the rest of the link, the read-back, and until the browser noticed. Of several
   * chunks the first kernels ran before that submission, so it is rather too small.
   */
  readMs: number;
  /** From its sending to its last result. */
  wallMs: number;
  /** Smallest step of the GPU's timestamps seen so far; browsers make them coarse. */
  resolutionMs: number | null;
  /** Bytes both ways, over `wallMs`. */
  bytesPerSecond: number | null;
  /** `gpuMs / (gpuMs + transferMs + readMs)`. */
  kernelEfficiency: number | null;
  /** `gpuMs / wallMs`. */
  utilization: number | null;
}
