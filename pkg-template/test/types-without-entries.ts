// An application that imports no entry, as far as the compiler is concerned. It is never run.

import { type CpuReason, type Info, open } from "framebatch";

const gpu = await open();
const info: Info | undefined = gpu.info;
export const reason: CpuReason | undefined = info?.reason;

// @ts-expect-error Clips come with framebatch/animation.
gpu.clip({ tracks: [] });
// @ts-expect-error Tweens likewise.
gpu.tween(0, 1);
// @ts-expect-error Embedders come with framebatch/embeddings.
gpu.embedder("/model/");
// @ts-expect-error Rerankers likewise.
gpu.reranker("/model/");
// @ts-expect-error Kernels come with framebatch/kernels.
gpu.kernel({});
// @ts-expect-error Indexes come with framebatch/search.
gpu.index({ dim: 2 });
