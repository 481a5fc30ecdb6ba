// Something of each entry's types, in an app that installed the package. It is never run.

import { type Session, shared } from "framebatch";
import { type Clip, fromThree } from "framebatch/animation";
import { type Embedder } from "framebatch/embeddings";
import { type RunAllOutcome } from "framebatch/kernels";
import { FramebatchProvider, useGpu } from "framebatch/react";
import { type VectorIndex } from "framebatch/search";

export const gpu: Session = shared();
export const clip: Clip = gpu.clip({
  tracks: [{ times: [0, 1], values: [0, 1] }],
});
export const embedder: Promise<Embedder> = gpu.embedder("/models/some/");
export const index: VectorIndex = gpu.index(new Float32Array([1, 0]), {
  dim: 2,
});
export const run: Promise<RunAllOutcome<Float32Array>> = gpu.runAll(
  [0.25, 0.5],
  (t, { signal }) =>
    gpu.lerp(new Float32Array(1), new Float32Array(1), t, { signal }),
  { maxConcurrent: 1, onSettled: ({ status }, t) => [status, t.toFixed()] },
);
export const used: Session | undefined = useGpu();
export const parts = [FramebatchProvider, fromThree];
