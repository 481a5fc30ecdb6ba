// Counts what the page asks of WebGPU, by wrapping the methods of its prototypes.
//
// Empty submissions do no work (framebatch sends some to hurry a read-back), so
// they are not counted.

export interface Counts {
  submissions: number;
  readbacks: number;
  dispatches: number;
}

const counts: Counts = { submissions: 0, readbacks: 0, dispatches: 0 };

/** Starts counting. Call it once, before anything uses WebGPU. */
export function startCounting(): void {
  if (!("gpu" in navigator)) return;
  const { submit } = GPUQueue.prototype;
  GPUQueue.prototype.submit = function (buffers) {
    const list = [...buffers];
    if (list.length > 0) counts.submissions++;
    return submit.call(this, list);
  };
  const { mapAsync } = GPUBuffer.prototype;
  GPUBuffer.prototype.mapAsync = function (mode, ...range) {
    if (mode & GPUMapMode.READ) counts.readbacks++;
    return mapAsync.call(this, mode, ...range);
  };
  const { dispatchWorkgroups } = GPUComputePassEncoder.prototype;
  GPUComputePassEncoder.prototype.dispatchWorkgroups = function (...grid) {
    counts.dispatches++;
    return dispatchWorkgroups.apply(this, grid);
  };
}

/** What `work` asked for, and how long it took in milliseconds. */
export async function counted(
  work: () => Promise<void>,
): Promise<Counts & { milliseconds: number }> {
  const before = { ...counts };
  const start = performance.now();
  await work();
  return {
    milliseconds: performance.now() - start,
    submissions: counts.submissions - before.submissions,
    readbacks: counts.readbacks - before.readbacks,
    dispatches: counts.dispatches - before.dispatches,
  };
}
