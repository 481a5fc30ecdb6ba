// An application, as far as the compiler is concerned. It is never run.

import {
  type BatchSizes,
  type BufferOptions,
  type EncoderSizes,
  type CallOptions,
  type ComputeOptions,
  CODES,
  type Code,
  FramebatchError,
  type GradientsOptions,
  type Info,
  isSupported,
  type LerpOptions,
  type LostTensor,
  type RevertedTensor,
  type StorageOptions,
  type Mode,
  open,
  type OpenOptions,
  type ReduceOptions,
  type Points,
  type Session,
  shared,
  type SliceRange,
  type Stats,
  type StoreOptions,
  type Stream,
  type StreamOptions,
  type StreamProgress,
  type StreamSource,
  type Tensor,
  type TensorBuffer,
  type TensorOptions,
} from "framebatch";
import { open as openInWorker, type WorkerSession } from "framebatch/worker";
import { type Kernel, type Verification } from "framebatch/kernels";
import {
  type BlendLayer,
  type Clip,
  type Easing,
  fromThree,
  type SampleOptions,
  type Several,
  type Spring,
  type Track,
  type Tween,
  type Wrap,
} from "framebatch/animation";
import type {
  Embedder,
  EmbedderOptions,
  ModelFiles,
  Ranked,
  Reranker,
} from "framebatch/embeddings";
import {
  FramebatchProvider,
  type FramebatchProviderProps,
  useClip,
  useGpu,
  useSpring,
  type UseSpringOptions,
  useTween,
  type UseTweenOptions,
} from "framebatch/react";

const options: OpenOptions = {
  engine: (await isSupported()) ? "gpu" : "cpu",
  queueCapacity: { calls: 3 },
  flush: (flush) => flush(),
  wasm: new URL("https://example.com/framebatch_bg.wasm"),
};
const gpu: Session = shared({ flush: "frame" });
const floats = new Float32Array(4);
const bytes = new Uint8Array(16);
const { signal } = new AbortController();

// A fresh result is an array on an ArrayBuffer; `into` comes back as what it is.
const fresh: Float32Array<ArrayBuffer> = await gpu.lerp(floats, floats, 0.5);
const kept: Float32Array = floats;
const lerp: LerpOptions = { width: 2, into: kept, signal };
const same: Float32Array = await gpu.lerp(kept, kept, floats, lerp);
const on: Uint8Array<SharedArrayBuffer> = await gpu.states.lerp(
  bytes,
  bytes,
  0,
  {
    into: new Uint8Array(new SharedArrayBuffer(16)),
  },
);
const state: Uint8Array<ArrayBuffer> = await gpu.states.slerp(
  bytes,
  bytes,
  floats,
);
const call: CallOptions<Float32Array> = {
  label: "x",
  flush: "now",
  key: "k",
  engine: "cpu",
};
const gradients: Float32Array = await gpu.states.gradients(bytes, call);

const mode: Mode = "slerp";
const field: GradientsOptions = { field: "rho * theta", into: floats };
const ofField: Float32Array = await gpu.states.gradients(bytes, field);
const curve: Points<Float32Array> = [floats, floats, floats, floats];
const on2: Float32Array<ArrayBuffer> = await gpu.bezier(curve, floats, {
  width: 2,
});
const way: Uint8Array<ArrayBuffer> = await gpu.states.sequence(
  bytes,
  bytes,
  5,
  mode,
);
const apart: Float32Array<ArrayBuffer> = await gpu.states.distance(
  bytes,
  bytes,
);
const down: Uint8Array<ArrayBuffer> = await gpu.states.descend(bytes, floats);
const curved: Uint8Array = await gpu.states.bezier(
  [bytes, bytes, bytes, bytes],
  0,
);

// @ts-expect-error A cubic curve has four control points.
gpu.bezier([floats, floats, floats], 0);
// @ts-expect-error No such mode.
gpu.states.sequence(bytes, bytes, 5, "cubic");
// @ts-expect-error Sessions come from open and shared.
new Session();
// @ts-expect-error No such option.
gpu.slerp(floats, floats, 0, { width: 3 });
// @ts-expect-error States are bytes.
gpu.states.gradients(floats);
// @ts-expect-error The result is floats.
gpu.lerp(floats, floats, 0, { into: bytes });
// @ts-expect-error There is no t.
gpu.slerp(floats, floats);

const keep: TensorOptions = { keep: false, label: "w" };
const x: Tensor = gpu.tensor(floats, [2, 2], keep);
const nested: Tensor = gpu.tensor([
  [1, 2],
  [3, 4],
] as const);
const places: Tensor<Uint32Array> = gpu.tensor(new Uint32Array(2));
const halves: Tensor = gpu.tensor(new Uint16Array(2), [2], { dtype: "bf16" });
halves.add(nested);
const axes: ReduceOptions = { axis: [0, -1], keepDims: true };
const range: SliceRange = [0, undefined, 2];
const chained: Tensor = x
  .relu()
  .scale(2)
  .add(nested)
  .clamp(0, x)
  .sin()
  .mod(2)
  .atan2(x)
  .layerNorm({ axis: 0, epsilon: 1e-5 })
  .softmax(-1)
  .attention(gpu.tensor([[1]]), gpu.tensor([[1]]), {
    heads: 1,
    causal: true,
    window: 2,
  })
  .sum(axes)
  .gelu({ approximate: "tanh" });
const chosen: Tensor = gpu.where(x.less(0).round(), 1, x.equal(chained));
const best: Tensor<Uint32Array> = x.argmax(1).reshape([-1]);
const read: Float32Array<ArrayBuffer> = await chained.read({ signal });
const readKept: Float32Array = await chained.read({ into: kept });
const readBest: Uint32Array<ArrayBuffer> = await best.read();
const [a, b]: [Float32Array<ArrayBuffer>, Uint32Array<ArrayBuffer>] =
  await gpu.readAll([x.slice(range).gather(places), best], {
    into: [undefined, new Uint32Array(2)],
  });
const remembered: ComputeOptions = { keep: false, label: "c", signal };
const computed: Tensor = await x.exp().compute(remembered);
const computedBest: Tensor<Uint32Array> = await best.compute();
const [c, d]: [Tensor, Tensor<Uint32Array>] = await gpu.computeAll([x, best]);
const timed: StoreOptions = { deadlineMs: 5, priority: "high" };
const nothing: void = await x.add(c).computeInto(computed, timed);
await c.write(floats, 1, timed);
await c.write([[1], [2]]);
await d.write(new Uint32Array(2));
// @ts-expect-error The target holds indexes.
await x.computeInto(d);
// @ts-expect-error The tensor holds floats.
await c.write(new Uint32Array(2));
// @ts-expect-error The tensor holds indexes.
await d.write(floats);
// @ts-expect-error The tensor takes the result.
await x.compute({ into: floats });
const often: StorageOptions = { snapshotEvery: 60, ownBuffer: true };
const snapped: Tensor = await gpu.tensor(floats, [4], often).compute(often);
snapped.dispose();
gpu.on("restored", ({ lostTensors, revertedTensors }) => {
  const [last]: readonly RevertedTensor[] = revertedTensors;
  last.writes satisfies number;
  const [first]: readonly LostTensor[] = lostTensors;
  first.label satisfies string | undefined;
  first.error.code satisfies Code;
});
const buffer: TensorBuffer | undefined = x.gpuBuffer();
{
  using own = gpu.tensor(floats);
  own.dispose();
}
const at: BufferOptions = { offset: 16, label: "own" };
declare const ofPage: GPUBuffer;
const inBuffer: Tensor = gpu.tensor(ofPage, [2], at);
const inHalves: Tensor = gpu.tensor(ofPage, [2], { dtype: "f16" });
const inPlaces: Tensor<Uint32Array> = gpu.tensor(ofPage, [2], { dtype: "u32" });
inBuffer.add(inHalves).gather(inPlaces);
// @ts-expect-error A buffer has no shape of its own.
gpu.tensor(ofPage);
// @ts-expect-error A buffer is no data to keep.
gpu.tensor(ofPage, [2], { keep: false });
// @ts-expect-error The result is indexes.
best.read({ into: floats });
// @ts-expect-error Indexes cannot be computed with.
x.add(best);
// @ts-expect-error Indexes are whole numbers.
x.gather(nested);
// @ts-expect-error No such option.
gpu.tensor(floats, [4], { keeps: true });
// @ts-expect-error No such format.
gpu.tensor(floats, [4], { dtype: "f64" });
// @ts-expect-error Bytes are states.
gpu.tensor(bytes);

const easing: Easing = "cubic-bezier(0, 0, 1, 1)";
const track: Track = { times: [0, 1], values: floats, easing };
const clip: Clip = gpu.clip({ tracks: [track], duration: 2 });
const wrap: Wrap = "ping-pong";
const sampling: SampleOptions = { wrap: [wrap], into: floats };
const sampled: Float32Array = await clip.sample(floats, sampling);
const row: Float32Array<ArrayBuffer> = await clip.sample(0.5);
const layer: BlendLayer = { clip, times: 0, weight: floats, additive: true };
const blended: Float32Array<ArrayBuffer> = await gpu.blend([layer]);
const stored: void = await clip.sampleTo(x, floats, { offset: 4, signal });
const tween: Tween = gpu.tween(0, 1, { onUpdate: (x: number) => x });
const pair: Spring<Several> = gpu.spring([0, 0], floats, {
  onUpdate: ([x]) => x,
});
pair.to([1, 2]);
const place: Float32Array = pair.value;
const fraction: number = tween.value;
// @ts-expect-error A number does not become several.
gpu.tween(0, [1]);
fromThree({ name: "n", duration: 1, tracks: [] });
// @ts-expect-error No such easing.
gpu.clip({ tracks: [{ ...track, easing: "bounce" }] });
// @ts-expect-error The tensor takes the result.
clip.sampleTo(x, 0, { into: floats });
// @ts-expect-error Indexes are no floats.
clip.sampleTo(best, 0);
const streaming: StreamOptions = {
  depth: 2,
  signal,
  onProgress: ({ done, total, bytes }: StreamProgress) =>
    void [done, total, bytes],
};
const source: StreamSource<Uint8Array> = new ReadableStream<Uint8Array>();
const results: Stream<Uint8Array, Float32Array> = gpu.stream(
  source,
  (chunk, { index, signal }) =>
    gpu.states.gradients(chunk.subarray(index), { signal }),
  streaming,
);
for await (const result of results) result satisfies Float32Array;
for await (const length of gpu.stream([floats], ({ length }) => length))
  length satisfies number;
const piped: ReadableStream<Float32Array> =
  new ReadableStream<Uint8Array>().pipeThrough(
    gpu.transform((chunk: Uint8Array) => gpu.states.gradients(chunk)),
  );
// @ts-expect-error No such option.
gpu.stream([floats], ({ length }) => length, { deep: 2 });
// @ts-expect-error Numbers are no source.
gpu.stream(3, () => 1);

const reading: EmbedderOptions = {
  dtype: "int8",
  signal,
  onProgress: ({ loaded, total }) => void (loaded / total),
  cache: false,
  keep: false,
};
const files: ModelFiles = {
  "config.json": new Uint8Array(),
  vocab: new Blob(),
};
const embedder: Embedder = await gpu.embedder(files, reading);
const embedding: Float32Array<ArrayBuffer> = await embedder.embed("text", {
  priority: "high",
  truncate: false,
  prompt: "query",
  flush: "now",
});
const kept2: Float32Array = await embedder.embedIds([101, 102], {
  into: floats,
});
const embeddings: Float32Array[] = await embedder.embedMany(["a", "b"], {
  priority: "low",
  onProgress: ({ done, total, tokens }) => void [done, total, tokens],
});
for await (const vector of embedder.embedMany(new Set(["a"])))
  vector satisfies Float32Array;
const dimensions: number = embedder.info.dimensions;
// @ts-expect-error Numbers are no texts.
embedder.embedMany([3]);
// @ts-expect-error No such priority.
embedder.embed("text", { priority: "urgent" });
{
  using own = await gpu.embedder(new URL("https://models.test/"));
  own.dispose();
}

{
  using reranker: Reranker = await gpu.reranker("/model/", { dtype: "f16" });
  const ranked: Ranked[] = await reranker.rank("query", ["a", "b"], {
    topN: 1,
    signal,
    priority: "high",
    label: "search",
  });
  ranked[0].index satisfies number;
  const scores: Float32Array = await reranker.score([["a", "b"]]);
  scores satisfies Float32Array;
  // @ts-expect-error A reranker's scores are not cut.
  await gpu.reranker("/model/", { dimensions: 2 });
  // @ts-expect-error A pair is two strings.
  await reranker.score(["a", "b"]);
}

const sizes: BatchSizes = { modelBytes: 1, bytesPerItem: 2 };
const items: number = gpu.optimalBatchSize(sizes);
const texts: EncoderSizes = { sequenceLength: 128, hiddenSize: 384 };
gpu.optimalBatchSize({ ...texts, intermediateSize: 1536 }) satisfies number;
// @ts-expect-error Heads take no memory.
gpu.optimalBatchSize({ ...texts, heads: 12 });

const plan: string = gpu.explain(() => gpu.slerp(floats, floats, 1));
const stats: Stats = gpu.stats();
const median: number = stats.waitMs.p50;
const info: Info | undefined = gpu.info;
const device: GPUDevice | undefined = gpu.device;
const code: Code = CODES[0];
const error: Error = new FramebatchError(code, "m", { cause: info });
{
  await using own = await open(options);
  own.flush();
}

const springy: UseSpringOptions<Several> = { from: [0, 0], stiffness: 100 };
const slow: UseTweenOptions<number> = { duration: 1, easing: "linear" };
const props: FramebatchProviderProps = { session: gpu, options };
export function hooks(): number {
  const session: Session | undefined = useGpu();
  const made: Clip | undefined = useClip({
    tracks: [{ times: [0], values: floats }],
  });
  const moved: Float32Array = useSpring([1, 2], springy);
  return useTween(1, slow) + moved[0] + (made?.width ?? 0) + (session ? 1 : 0);
}
export const provided = FramebatchProvider(props);

const decay = gpu.kernel({
  name: "decay",
  inputs: { height: "f32", speed: "f32" },
  params: { dt: "f32", n: "u32" },
  output: "f32",
  code: "…",
  cpu: ({ height, speed }, { dt, n }) => height * speed * dt * n,
});
const decayed: Tensor = decay({ height: x, speed: 2 }, { dt: 1, n: 2 });
const plain = gpu.kernel({
  name: "plain",
  inputs: { x: "f32" },
  output: "f32",
  code: "…",
});
const kernel: Kernel<{ x: "f32" }, Record<never, never>> = plain;
const ofData = [plain({ x: floats }), plain({ x: [1, 2] }, {})];
// @ts-expect-error A value is missing.
decay({ height: x }, { dt: 1, n: 2 });
// @ts-expect-error Params are missing.
decay({ height: x, speed: x });
// @ts-expect-error No such param.
decay({ height: x, speed: x }, { dt: 1, n: 2, m: 3 });
// @ts-expect-error No such type.
gpu.kernel({ name: "", inputs: { x: "f64" }, output: "f32", code: "" });
const looking = gpu.kernel({
  name: "looking",
  inputs: { x: "f32" },
  params: { k: "f32" },
  output: "f32",
  code: "…",
  cpuAt: (i, { x }, { k }) =>
    k * x(i) + x.at(0, i) + x.size + x.rows + x.columns,
});
const looked: Tensor = looking({ x: [1] }, { k: 2 });
const verified: Promise<Verification> = gpu.verify(
  decay,
  [{ values: { height: floats, speed: 1 }, params: { dt: 1, n: 1 } }],
  { tolerance: 1e-6 },
);
// @ts-expect-error No such value.
void gpu.verify(decay, [{ values: { width: 1 } }]);
const wrong = {
  name: "",
  inputs: { x: "f32" },
  output: "f32",
  code: "",
} as const;
// @ts-expect-error No such value.
gpu.kernel({ ...wrong, cpu: ({ y }) => y });

const counted = gpu.kernel({
  name: "counted",
  inputs: { n: "u32", p: "vec2i" },
  shared: { table: "vec3f" },
  output: { sum: "i32", hash: "vec2u", size: "f32" },
  constants: { taps: 3, isFast: true },
  code: "…",
  cpu: ({ n, p, table }) => ({
    sum: n + p[0] + table.size,
    hash: [n, n],
    size: table(n)[2] + table.at(0, 1)[0],
  }),
});
const { sum, hash, size } = counted({
  n: new Uint32Array(2),
  p: gpu.tensor(new Int32Array(2)),
  table: [1, 2, 3],
});
const counts: [
  Promise<Int32Array<ArrayBuffer>>,
  Promise<Uint32Array<ArrayBuffer>>,
  "int32",
  Tensor,
] = [sum.read(), hash.read(), sum.dtype, size];
// @ts-expect-error A shared tensor is missing.
counted({ n: 1, p: [1, 2] });
// @ts-expect-error Floats are no whole numbers.
counted({ n: x, p: x, table: x });
// @ts-expect-error A vector is a list.
gpu.kernel({ ...wrong, output: "vec2f", cpu: ({ x }) => x });
const ahead = gpu.kernel({
  name: "ahead",
  inputs: { p: "vec3f", n: "i32" },
  output: "vec2f",
  code: "…",
  cpuAt: (i, { p, n }) => [p(i)[0], n(i)],
});
const aheads: Tensor = ahead({ p: floats, n: new Int32Array(1) });
const ranked = gpu.tensor([1]).gather(gpu.tensor(new Int32Array(1)));
export { aheads, counts, ranked };

const step = gpu.fn((x, y) => x.relu().mul(2).add(y));
const stepped: Tensor = step([1, 2], 3);
const picked = gpu.fn((x: Tensor, places: Tensor<Uint32Array>) => ({
  rows: x.gather(places),
  best: x.argmax(),
}));
const { rows: pickedRows, best: pickedBest } = picked(
  new Float32Array(2),
  new Uint32Array([0]),
);
const pickedPlaces: Promise<Uint32Array<ArrayBuffer>> = pickedBest.read();
const pairOf = gpu.fn((x) => [x, x.sum()] as const);
const pairSum: Tensor = pairOf(stepped)[1];
// @ts-expect-error There is a second parameter.
step([1, 2]);
// @ts-expect-error Text is no data.
step([1, 2], "3");
// @ts-expect-error Places are whole numbers.
picked(new Float32Array(2), new Float32Array(1));
// @ts-expect-error A function gives tensors.
gpu.fn((x) => x.shape);
const dt = gpu.fn((x, dt) => decay({ height: x, speed: 1 }, { dt, n: 1 }));
export { dt, pairSum, pickedPlaces, pickedRows };
export { decayed, kernel, looked, ofData, verified };
export { fraction, place };
export { dimensions, embedding, embeddings, kept2 };
export { blended, row, sampled, stored };
export { computedBest, nothing };
export { apart, ofField, curved, down, on2, way };

// Sessions in a worker are sessions, whose plans are promises.
const far: WorkerSession = await openInWorker({
  flush: "frame",
  worker: () => new Worker("/worker.js", { type: "module" }),
});
const asSession: Session = far;
const farPlan: Promise<string> = far.explain(() => far.lerp(a, a, 0));
const farRead: Float32Array = await far.tensor([1, 2]).exp().read();
// @ts-expect-error There is no such option.
void openInWorker({ wroker: "/worker.js" });
export { asSession, farPlan, farRead };
export {
  a,
  b,
  buffer,
  device,
  error,
  fresh,
  gradients,
  items,
  median,
  on,
  piped,
  plan,
  read,
  readBest,
  readKept,
  same,
  state,
};
