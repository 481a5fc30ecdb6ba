// Who embeds: framebatch in each dtype and on the CPU, transformers.js as it runs best.
//
// The model is at `./models/`, the rival at `./rival/`; `tools/bench.mjs --page embeddings/`
// serves both there. What is not there cannot be opened, and its rows say so.

import { open, type OpenOptions, type Session } from "framebatch";
import type { EmbedderOptions } from "framebatch/embeddings";
import type { Named } from "../run.ts";

/** One embedder, its model loaded. */
export interface Opened {
  /** Each text by a call of its own, all at once. */
  each(texts: readonly string[]): Promise<Float32Array[]>;
  /** All texts as one array. */
  all(texts: string[]): Promise<Float32Array[]>;
  /** Bytes of the weights on the device, where they are told. */
  bytes?: number;
  /** The session it runs in, where it is one of ours. */
  session?: Session;
  close(): void | Promise<void>;
}

export interface Embeds extends Named {
  /** How far from the reference in float64 its answers may be: 1 less their cosine. */
  readonly bound: number;
  open(): Promise<Opened>;
}

/** The model's name, as transformers.js asks for it. */
const MODEL = "all-MiniLM-L6-v2";
const at = (path: string) => new URL(path, location.href).href;

function framebatch(
  engine: OpenOptions["engine"],
  dtype: EmbedderOptions["dtype"],
  about: string,
): Embeds {
  return {
    name: `framebatch-${engine}-${dtype}`,
    about,
    bound: dtype === "int8" ? 1e-3 : 1e-5,
    async open() {
      await import("framebatch/embeddings");
      const gpu = await open({ engine, flush: "manual" });
      const embedder = await gpu.embedder(at("./models/minilm/"), { dtype });
      return {
        async each(texts) {
          const answers = texts.map((text) => embedder.embed(text));
          gpu.flush();
          return Promise.all(answers);
        },
        all: async (texts) => await embedder.embedMany(texts),
        bytes: gpu.stats().tensors.bytes,
        session: gpu,
        close: () => gpu.dispose(),
      };
    },
  };
}

/** What is used of it. */
interface Transformers {
  env: {
    allowRemoteModels: boolean;
    allowLocalModels: boolean;
    localModelPath: string;
    useBrowserCache: boolean;
    useWasmCache: boolean;
    backends: { onnx: { wasm: Record<string, unknown> } };
  };
  pipeline(
    task: string,
    model: string,
    options: object,
  ): Promise<{
    (
      texts: string | string[],
      options: object,
    ): Promise<{ data: Float32Array; dims: number[] }>;
    dispose(): Promise<void>;
  }>;
}

function transformers(
  device: "webgpu" | "wasm",
  dtype: "fp32" | "fp16",
  about: string,
): Embeds {
  return {
    name: `transformers.js-${device}-${dtype}`,
    about,
    // The library's tokenizer takes some texts apart in other ways than the model was trained with.
    bound: 0.1,
    async open() {
      const { env, pipeline } = await load();
      env.allowRemoteModels = false;
      env.allowLocalModels = true;
      env.localModelPath = new URL("./models/onnx/", location.href).pathname;
      env.useBrowserCache = env.useWasmCache = false;
      Object.assign(env.backends.onnx.wasm, {
        numThreads: 1,
        wasmPaths: {
          mjs: at("./rival/ort-wasm-simd-threaded.asyncify.mjs"),
          wasm: at("./rival/ort-wasm-simd-threaded.asyncify.wasm"),
        },
      });
      const options = { device, dtype, model_file_name: "model_fused" };
      const embed = await pipeline("feature-extraction", MODEL, options);
      const pooled = { pooling: "mean", normalize: true };
      return {
        each: (texts) =>
          Promise.all(
            texts.map(async (text) => (await embed(text, pooled)).data),
          ),
        async all(texts) {
          const { data, dims } = await embed(texts, pooled);
          const width = dims[1];
          return texts.map((_, i) => data.slice(i * width, (i + 1) * width));
        },
        close: () => embed.dispose(),
      };
    },
  };
}

async function load(): Promise<Transformers> {
  const url = at("./rival/transformers.min.js");
  try {
    return await import(/* @vite-ignore */ url);
  } catch (cause) {
    throw new Error("transformers.js is not installed", { cause });
  }
}

/** In the order in which each workload is measured. */
export const SYSTEMS: readonly Embeds[] = [
  framebatch("gpu", "f32", "this package, on the GPU"),
  framebatch("gpu", "f16", "the same, weights as f16"),
  framebatch("gpu", "int8", "the same, weights as int8 in groups of 32"),
  framebatch("cpu", "f32", "this package, in WebAssembly, one thread"),
  transformers("webgpu", "fp32", "transformers.js 4.3.1, WebGPU, fused graph"),
  transformers("webgpu", "fp16", "the same, fp16"),
  transformers("wasm", "fp32", "transformers.js 4.3.1, wasm, one thread"),
];
