// Matrices that are more than a device holds, in one call or as a stream of rows.

const floats = (length, seed) =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + i * 12.9898) / 4);

/** A software GPU on a busy machine may take so long for a call, and is not lost. */
export const SLOW_MS = 120_000;

/** A device of 1 MiB a buffer and 4 MiB in all. */
export const LOWERED = {
  maxLimits: { maxBufferSize: 1 << 20, maxStorageBufferBindingSize: 1 << 20 },
  memoryBudget: 4 << 20,
  stallMs: SLOW_MS,
};

/** Every call with several MiB of rows, by name: what it resolves to. */
export function* large(gpu) {
  const rows = 30_001;
  const points = [1, 2, 3, 4].map((seed) => floats(rows * 4, seed));
  const each = floats(rows, 5).map((t) => t * 2 + 0.5);
  const states = [7, 11, 13, 17].map((step) =>
    new Uint8Array(rows * 16).map((_, i) => i * step + (i >> 8)),
  );
  const [a, b] = points;
  const [s, t] = states;
  yield ["lerp", gpu.lerp(a, b, 0.25)];
  yield ["lerp of items", gpu.lerp(a, b, each, { width: 4 })];
  yield ["slerp", gpu.slerp(a, b, each)];
  yield ["nlerp", gpu.nlerp(a, b, each)];
  yield ["bezier", gpu.bezier(points, 0.3)];
  yield ["gradients", gpu.states.gradients(s)];
  yield ["field", gpu.states.gradients(s, { field: "rho * sin(theta)" })];
  yield ["states.lerp", gpu.states.lerp(s, t, 0.7)];
  yield ["states.slerp", gpu.states.slerp(s, t, each)];
  yield ["states.bezier", gpu.states.bezier(states, 0.6)];
  yield ["sequence", gpu.states.sequence(s, t, 5, "slerp")];
  yield ["distance", gpu.states.distance(s, t)];
  yield ["geodesic", gpu.states.geodesicDistance(s, t)];
  yield ["descend", gpu.states.descend(s, 0.5)];
  const x = gpu.tensor(floats(5001 * 64, 6), [5001, 64]);
  const w = gpu.tensor(floats(64 * 64, 7), [64, 64]);
  const network = x.matmul(w).gelu().add(x).layerNorm();
  yield ["network", network.matmul(w).softmax().read()];
  yield ["sums", x.mul(x).sum(1).read()];
  yield ["columns", x.reshape([5001, 8, 8]).max(1).read()];
}

/**
 * Streams so many rows of 64 floats through two layers, with 1 GiB of memory. How many
 * results differ from those of the first chunk, which is the same as the others.
 */
export async function stream(rows, each = 16_384) {
  const gpu = await framebatch.open({
    engine: "gpu",
    memoryBudget: 1 << 30,
    maxLimits: {
      maxBufferSize: 1 << 30,
      maxStorageBufferBindingSize: 1 << 30,
    },
  });
  const [w1, b1, w2, b2] = [[64, 64], [64], [64, 10], [10]].map((shape) =>
    gpu.tensor(floats(shape[0] * (shape[1] ?? 1), shape.length), shape),
  );
  const chunk = floats(each * 64, 3);
  const network = (count) =>
    gpu
      .tensor(chunk.subarray(0, count * 64), [count, 64])
      .matmul(w1)
      .add(b1)
      .gelu()
      .matmul(w2)
      .add(b2)
      .softmax()
      .read();
  const counts = function* () {
    for (let left = rows; left > 0; left -= each) yield Math.min(left, each);
  };
  const first = await network(Math.min(rows, each));
  const start = performance.now();
  let done = 0;
  let wrong = 0;
  for await (const result of gpu.stream(counts(), network)) {
    done += result.length / 10;
    for (let i = 0; i < result.length; i += 997)
      wrong += Number(!Object.is(result[i], first[i]));
  }
  const seconds = (performance.now() - start) / 1000;
  const peak = gpu.stats().pool.peakBytes;
  await gpu.dispose();
  return { rows: done, seconds, wrong, peak };
}
