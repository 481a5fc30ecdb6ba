// A session: what people hold, and call `gpu`.
//
// Every method that makes a call returns a promise and never throws; checking,
// entering and answering is done in `calls.ts`, and opening in `open.ts`.

/// <reference lib="esnext.disposable" preserve="true" />

import type { Fraction } from "../calls/arguments.js";
import { endedError } from "../calls/call-errors.js";
import type { AnyOptions, ComputeOptions } from "../calls/call-options.js";
import type { Method } from "../calls/methods.js";
import { mark } from "../checks/brand.js";
import { FramebatchError } from "../checks/errors.js";
import type { DeviceEvent } from "../core/core.js";
import type { Operand } from "../memory/arrays.js";
import type { BatchListener } from "../metrics/batch-facts.js";
import {
  type Profile,
  profile,
  type Profiled,
  type ProfileOptions,
} from "../metrics/profile.js";
import type { Info, Stats } from "../metrics/stats.js";
import type { StreamSource } from "../stream/source.js";
import {
  type ChunkFunction,
  Stream,
  type StreamOptions,
} from "../stream/stream.js";
import { transformPair } from "../stream/transform.js";
import type { BufferOptions } from "../tensor/buffer-input.js";
import type { TensorData } from "../tensor/copy-in.js";
import type { TensorOptions } from "../tensor/input.js";
import type { ArraysOf, Elements, KindOf, TensorsOf } from "../tensor/kinds.js";
import {
  computeTensors,
  makeTensor,
  type ReadAllOptions,
  readTensors,
  whereTrue,
} from "../tensor/session-methods.js";
import type { Tensor } from "../tensor/tensor.js";
import {
  type BatchSizes,
  type EncoderSizes,
  optimalBatchSize,
} from "./batch-size.js";
import type { Calls } from "./calls.js";
import { startOn } from "./control-points.js";
import type { DeviceListener } from "./device-listeners.js";
import { addStubs } from "./entry-stubs.js";
import { Interpolation } from "./interpolation.js";
import { States } from "./states.js";

/** The calls of a session, for the package's other entries. */
export let callsOf!: (session: Session) => Calls;

/**
 * A device and the calls that share it. Calls made by anyone in a page during a
 * frame are sent together, and each gets its own answer.
 *
 * @example
 * const gpu = await open();
 * const [a, b] = await Promise.all([
 *   gpu.lerp(new Float32Array([0]), new Float32Array([8]), 0.25),
 *   gpu.slerp(new Float32Array([0, 0, 0, 1]), new Float32Array([1, 0, 0, 0]), 0.5),
 * ]); // one batch
 */
export class Session extends Interpolation {
  /** Calls on states: 16 bytes each, a magnitude and a phase in every byte. */
  readonly states: States;
  readonly #calls: Calls;

  /** Sessions come from `open` and `shared`. */
  constructor(calls: Calls) {
    super();
    this.#calls = calls;
    this.states = new States(calls);
  }

  /**
   * A tensor of `data`, row-major; its `shape` is that of the data unless given. Floats
   * compute; whole numbers (`Uint32Array`, `Int32Array`) are places for `gather`, and values
   * for kernels of one's own.
   *
   * What is computed from it is recorded, and sent by `read`. Data of 16,384 elements or
   * more lies on the device at once, or as soon as there is one; unless `keep: false` its
   * array is kept to restore it after a loss, and must not change while the tensor lives.
   * Shorter data is copied, travels with the first call, and stays on the device from
   * the second on; kept in fewer bits it lies there at once. Data that no buffer of the
   * device holds lies there in parts, by rows along the first axis: what reads it row by
   * row computes on it, and the reading of anything else rejects with `limit-exceeded`.
   * Throws `invalid-input` where data and
   * shape do not fit, and `out-of-memory` where the memory budget has no room.
   *
   * @example
   * const weights = gpu.tensor(new Float32Array([1, 2, 3, 4]), [2, 2]);
   * await weights.mul(10).sum(1).read(); // [30, 70]
   * weights.dispose();
   */
  tensor<Data extends TensorData>(
    data: Data,
    shape?: readonly number[],
    options?: TensorOptions,
  ): Tensor<KindOf<Data>>;
  /**
   * A tensor of this shape that lies in a `GPUBuffer` of `gpu.device`, row-major from
   * `offset` on, without a copy: calls read what lies there when they are sent, whoever
   * wrote it; `gpu.flush()` sends those whose kernels are compiled. `dtype` says what lies
   * there, floats (`f32`, `f16`, `bf16`) or places for `gather` (`u32`).
   *
   * The buffer needs the usages `STORAGE` and `COPY_SRC`, and as many bytes from `offset`
   * on as the elements take, up to a multiple of 16. It is never written or destroyed here,
   * counts nothing against the memory budget, and `dispose` only lets go of it. Calls that
   * read it go to the GPU. Once the buffer is destroyed, or where it is of another device,
   * calls that read it reject with `invalid-input`, and no others; after a lost device they
   * reject with `device-lost`, until there is a tensor of a new buffer.
   *
   * Throws `invalid-input` for a buffer of other usages, too small or mapped, for another
   * offset than a multiple of 16, while the session opens, and where calls run on the CPU;
   * `device-lost` until a lost device is restored, and `limit-exceeded` for more bytes than
   * the device binds at once.
   *
   * @example
   * const size = 256 + 16;
   * const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
   * const buffer = gpu.device.createBuffer({ size, usage });
   * gpu.device.queue.writeBuffer(buffer, 256, new Float32Array([1, 2, 3, 4]));
   * await gpu.tensor(buffer, [4], { offset: 256 }).sum().read(); // [10]
   */
  tensor<Dtype extends BufferOptions["dtype"] = "f32">(
    buffer: GPUBuffer,
    shape: readonly number[],
    options?: BufferOptions & { dtype?: Dtype },
  ): Tensor<
    Dtype extends "u32"
      ? Uint32Array
      : Dtype extends "i32"
        ? Int32Array
        : Float32Array
  >;
  tensor(
    data: TensorData | GPUBuffer,
    shape?: readonly number[],
    options?: TensorOptions | BufferOptions,
  ): Tensor<Elements> {
    return makeTensor(this.#calls, data, shape, options);
  }

  /**
   * The elements of `a` where a condition is true, and those of `b` elsewhere; all three
   * broadcast, and `a` and `b` may be numbers. Zeros are false, and all else is true, NaN
   * too: comparisons give 1 and 0. What is not taken has no effect, not even as NaN.
   * Throws `invalid-input` where shapes do not fit.
   *
   * @example
   * const x = gpu.tensor([-1, 4, 9]);
   * await gpu.where(x.less(0), 0, x.sqrt()).read(); // [0, 2, 3]
   */
  where(condition: Tensor, a: Tensor | number, b: Tensor | number): Tensor {
    return whereTrue(this.#calls, condition, a, b);
  }

  /**
   * Computes several tensors in one call, and leaves the results on the device; what the
   * tensors share is computed once. Takes the options of `tensor.compute`. Resolves to
   * tensors of the results, in order.
   *
   * @example
   * const x = gpu.tensor([[1, 2], [3, 4]]);
   * const [rows, columns] = await gpu.computeAll([x.sum(1), x.sum(0)]);
   */
  computeAll<const Tensors extends readonly Tensor<Elements>[]>(
    tensors: Tensors,
    options?: ComputeOptions,
  ): Promise<TensorsOf<Tensors>> {
    return computeTensors(this.#calls, tensors, options);
  }

  /**
   * Reads several tensors in one call; what they share is computed once. Takes the
   * options of every call, with an array of arrays as `into`. Resolves to their arrays,
   * in order.
   *
   * @example
   * const scores = gpu.tensor(new Float32Array([1, 3, 2]));
   * const [best, odds] = await gpu.readAll([scores.argmax(), scores.softmax()]);
   */
  readAll<const Tensors extends readonly Tensor<Elements>[]>(
    tensors: Tensors,
    options?: ReadAllOptions,
  ): Promise<ArraysOf<Tensors>> {
    return readTensors(this.#calls, tensors, options);
  }

  /**
   * Sends what is queued, now, however many batches are on their way: what is submitted
   * to `gpu.device` afterwards finds what these calls write. Only a batch of which parts
   * were not sent yet, for want of memory, goes first. While the session opens: as soon as
   * it is open. Throws `disposed` after {@link dispose}.
   *
   * @example
   * const result = gpu.lerp(a, b, 0.5);
   * gpu.flush();
   * await result;
   */
  flush(): void {
    this.#refuseIfEnded("flush");
    this.#calls.flush();
  }

  /**
   * The results of `fn` for each chunk of `source`, in order: for work that is more
   * than memory holds. `fn` makes the call, or the calls, of one chunk.
   *
   * A bounded number of chunks is on its way, each sent without waiting for a frame: one
   * is uploaded while another is computed. `source` is an array, an iterable, an
   * async iterable or a ReadableStream, and is asked for more as results are taken.
   * An error of the source or of `fn` comes at its place: the results before it stand,
   * then the loop throws it. Leaving the loop cancels the source. Throws
   * `invalid-input` for a wrong argument.
   *
   * @example
   * const chunks = [new Uint8Array(1600), new Uint8Array(3200)];
   * for await (const gradients of gpu.stream(chunks, (chunk) => gpu.states.gradients(chunk))) {
   *   console.log(gradients.length); // 3200, then 6400
   * }
   */
  stream<Chunk, Result>(
    source: StreamSource<Chunk>,
    fn: ChunkFunction<Awaited<Chunk>, Result>,
    options?: StreamOptions,
  ): Stream<Chunk, Result> {
    this.#refuseIfEnded("stream");
    return new Stream("stream", source, fn, this.#calls.streams, options);
  }

  /**
   * The same as {@link stream} for `pipeThrough`: chunks are written to it, and their
   * results read from it. An error or a cancellation on one side reaches the other.
   *
   * @example
   * const states = new Response(new Uint8Array(32)).body;
   * const lengths = states
   *   .pipeThrough(gpu.transform((chunk) => gpu.states.gradients(chunk)))
   *   .pipeThrough(new TransformStream({ transform: (floats, to) => to.enqueue(floats.length) }));
   */
  transform<Chunk, Result>(
    fn: ChunkFunction<Awaited<Chunk>, Result>,
    options?: StreamOptions,
  ): ReadableWritablePair<Awaited<Result>, Chunk> {
    this.#refuseIfEnded("transform");
    return transformPair(fn, this.#calls.streams, options);
  }

  /**
   * What the session has done so far; zeros while it opens, the last numbers once
   * it is disposed.
   *
   * @example
   * const { calls, submits } = gpu.stats();
   * console.log(`${calls} calls in ${submits} submissions`);
   */
  stats(): Stats {
    return this.#calls.stats();
  }

  /**
   * Items of a batch that memory holds beside a model of `modelBytes` (0 unless given):
   * `floor((0.8 * memoryBudget - modelBytes) / bytesPerItem)`, at least 1 and at most
   * `maxBatchSize`. The session limits its own batches by the same rule.
   *
   * For texts of an encoder it takes the encoder's sizes instead of bytes. With T tokens,
   * H hidden and I intermediate floats a text takes `4 * (T * (2 * max(I, 3 * H) + H) + T +
   * H)` bytes, a little more for alignment, and there are at most as many texts as have
   * `maxBatchCost` tokens. Throws `invalid-input` for sizes that are none, and while the
   * session opens.
   *
   * @example
   * const gpu = await open({ memoryBudget: 100e6 });
   * gpu.optimalBatchSize({ modelBytes: 30e6, bytesPerItem: 1e6 }); // 50
   * gpu.optimalBatchSize({ modelBytes: 30e6, sequenceLength: 128, hiddenSize: 384 }); // 28
   */
  optimalBatchSize(sizes: BatchSizes | EncoderSizes): number {
    this.#refuseIfEnded("optimalBatchSize");
    return optimalBatchSize(this.#calls.core, sizes);
  }

  /**
   * The plan of the calls made in `make`, as text. They are not sent: their promises
   * reject with `aborted`. Throws `invalid-input` while the session opens, or inside
   * another `explain`.
   *
   * @example
   * await gpu.ready;
   * console.log(gpu.explain(() => gpu.lerp(a, b, 0.5)));
   */
  explain(make: () => unknown): string {
    this.#refuseIfEnded("explain");
    return this.#calls.explain(make);
  }

  /**
   * Compiles what the calls made in `make` need, without sending them: their promises
   * reject with `aborted`. Nothing else waits meanwhile. Resolves when all of it is
   * compiled, at once where calls run on the CPU. Rejects with `shader` where the GPU
   * refuses a kernel, with `disposed` when the session ends, with what `make` throws,
   * and with `invalid-input` inside itself or `explain`.
   *
   * @example
   * const gpu = shared();
   * await gpu.warmup(() => gpu.slerp(new Float32Array(4), new Float32Array(4), 0));
   */
  async warmup(make: () => unknown): Promise<void> {
    const calls = this.#calls;
    this.#refuseIfEnded("warmup");
    if (calls.core === undefined) await calls.backpressure.wait(calls.core);
    this.#refuseIfEnded("warmup");
    await calls.warmup(make);
  }

  /**
   * Calls `listener` when the device is `lost`, when another one took its place
   * (`restored`: `device` and `info` have changed), or when the CPU did because no
   * GPU stayed, until one is found and `restored`, or for one batch that the GPU had no
   * memory for (`fallback`; on a session of `shared` also when it opens without a GPU in
   * hardware). Pending calls wait meanwhile and are answered either way. With `restored` and
   * `fallback` come the tensors that nothing could restore, as `lostTensors`, and those that hold
   * their last snapshot, as `revertedTensors`. Returns a function that ends it.
   *
   * The event `batch` tells what each batch was, and where its time went, when all of it is
   * back. Batches are measured only while somebody listens.
   *
   * @example
   * const off = gpu.on("restored", () => renderer.use(gpu.device));
   * gpu.on("batch", ({ calls, gpuMs, wallMs }) => console.log(calls, gpuMs, wallMs));
   */
  on(event: DeviceEvent, listener: DeviceListener): () => void;
  on(event: "batch", listener: BatchListener): () => void;
  on(
    event: DeviceEvent | "batch",
    listener: DeviceListener | BatchListener,
  ): () => void {
    const { batchListeners, deviceListeners } = this.#calls;
    return event === "batch"
      ? batchListeners.add(listener as BatchListener)
      : deviceListeners.add(event, listener as DeviceListener);
  }

  /**
   * Runs `fn` and sends what it calls, `iterations` times after a first one that warms
   * up, and says what a run takes: in all, and by the batches that came back meanwhile,
   * other callers' included. Rejects with what `fn` throws.
   *
   * @example
   * const { runMs, gpuMs } = await gpu.profile(() => gpu.states.gradients(states));
   * console.log(runMs.p50, gpuMs);
   */
  profile(fn: () => unknown, options?: ProfileOptions): Promise<Profile> {
    return profile(this.#profiled, fn, options);
  }

  /** Where the session runs; undefined while it opens. */
  get info(): Info | undefined {
    return this.#calls.core?.info() as Info | undefined;
  }

  /** The GPU device, for the page to share; undefined on the CPU and while the session opens. */
  get device(): GPUDevice | undefined {
    return this.#calls.core?.raw_device();
  }

  /**
   * Resolves when the session is open and its queue has room. Rejects with the reason
   * if it cannot be opened, and with `disposed` after {@link dispose}.
   *
   * @example
   * for (const chunk of chunks) {
   *   await gpu.ready;
   *   results.push(gpu.states.gradients(chunk));
   * }
   */
  get ready(): Promise<void> {
    const { core, ended, backpressure } = this.#calls;
    return ended === undefined
      ? backpressure.wait(core)
      : Promise.reject(ended);
  }

  /** Calls that still fit into the queue; 0 or less when it is full, or while the session opens. */
  get desiredSize(): number {
    return this.#calls.core?.desired_size() ?? 0;
  }

  /**
   * Ends the session: pending calls reject with `disposed`, and what the GPU holds is
   * destroyed. Await the calls first to keep their results. Disposing twice is fine.
   *
   * @example
   * {
   *   await using gpu = await open();
   *   await gpu.lerp(a, b, 0.5);
   * } // disposed here
   */
  dispose(): Promise<void> {
    this.#calls.end(
      new FramebatchError(
        "disposed",
        "the session is disposed; open a new one",
      ),
    );
    return Promise.resolve();
  }

  /** Lets `await using` dispose of the session. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  get #profiled(): Profiled {
    return {
      flush: () => this.flush(),
      listen: (listener) => this.#calls.batchListeners.add(listener),
    };
  }

  static {
    mark(this.prototype, "a session");
    addStubs(this.prototype);
    callsOf = (session) => session.#calls;
  }

  protected override start<Result extends Operand>(
    method: Method,
    a: Operand,
    b: Operand,
    t: Fraction,
    options: AnyOptions | undefined,
  ): Promise<Result> {
    return this.#calls.start(method, a, b, t, options);
  }

  protected override startOn<Result extends Operand>(
    method: Method,
    points: readonly Operand[],
    t: Fraction,
    options: AnyOptions | undefined,
  ): Promise<Result> {
    return startOn(this.#calls, method, points, t, options);
  }

  #refuseIfEnded(asked: string): void {
    const { ended } = this.#calls;
    if (ended !== undefined) throw endedError(asked, ended);
  }
}
