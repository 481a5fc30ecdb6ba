// Something of each entry's types, in an app that installed the package. It is never run.
// Entries that import libraries whose types have errors are in ../libraries.

import { type Session, shared } from "framebatch";
import { type Clip, fromThree } from "framebatch/animation";
import { type Embedder } from "framebatch/embeddings";
import { type RunAllOutcome } from "framebatch/kernels";
import { embeddingModel, type EmbeddingResult } from "framebatch/ai-sdk";
import { FramebatchEmbeddingFunction } from "framebatch/chroma";
import { type PluginFramebatch, pluginFramebatch } from "framebatch/orama";
import { FramebatchProvider, useGpu } from "framebatch/react";
import { type VectorIndex } from "framebatch/search";
import { type MotionStore, spring, tween } from "framebatch/svelte";
import { useClip, useTween } from "framebatch/vue";

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
export const asked: Promise<EmbeddingResult> = embeddingModel({
  embedder,
}).doEmbed({ values: ["a"] });
export const generated: Promise<number[][]> = new FramebatchEmbeddingFunction({
  embedder,
}).generate(["a"]);
export const plugin: PluginFramebatch = pluginFramebatch({
  embedder,
  properties: ["title"],
});
export const stores: [MotionStore<number>, MotionStore<number[]>] = [
  tween(0, { duration: 1 }),
  spring([0, 0]),
];
export const opacity: number = useTween(() => 1, { from: 0 }).value;
export const wave: Clip | undefined = useClip({ tracks: [] }).value;
export const used: Session | undefined = useGpu();
export const parts = [FramebatchProvider, fromThree];
