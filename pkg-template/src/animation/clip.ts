// Clips as people hold them: `sample`, `sampleTo` and blending.
//
// What may be wrong with a call is found here; how it is written, in `sample-operands.ts`.

/// <reference lib="esnext.disposable" preserve="true" />

import { endedError } from "../calls/call-errors.js";
import type { CallOptions } from "../calls/call-options.js";
import type { CallMethod } from "../calls/operands.js";
import { mark } from "../checks/brand.js";
import { invalid, kindOf, subject } from "../checks/errors.js";
import { checkNames, checkOptions, labeled } from "../checks/options.js";
import type { Calls } from "../session/calls.js";
import { FLOATS } from "../tensor/codes.js";
import { checkTarget } from "../tensor/stored-calls.js";
import { nodeOf, type Tensor } from "../tensor/tensor.js";
import {
  checkLayers,
  type ClipInternals,
  sampledLayer,
  type Times,
  timeWithin,
  type Wrap,
} from "./layers.js";
import {
  BLEND,
  BLEND_TO,
  SAMPLE,
  SAMPLE_TO,
  type SampledLayer,
  SampleOperands,
  type Target,
} from "./sample-operands.js";
import { SingleSample } from "./single-sample.js";
import { type StoreRange, ClipStore } from "./store.js";
import { type ClipOptions, encode, type Encoded } from "./tracks.js";

/** What `clip.sample` takes last. */
export type SampleOptions<Into extends Float32Array = Float32Array> =
  CallOptions<Into> & {
    /** What becomes of times outside, for all instances or for each. Default: `clamp`. */
    wrap?: Wrap | readonly Wrap[];
  };

/** What `clip.sampleTo` takes last. */
export type SampleToOptions = Omit<SampleOptions, "into"> & {
  /** The float of the tensor where the first row begins. Default: 0. */
  offset?: number;
};

/** A clip among those that are blended. */
export interface BlendLayer {
  /** The clip; all layers have tracks of the same kinds and widths. */
  clip: Clip;
  /** Seconds within the clip; all layers have equally many. */
  times: Times;
  /** The layer's share, of all instances or of each; a share not above 0 counts nothing. Default: 1. */
  weight?: number | Float32Array;
  /** What becomes of times outside. Default: `clamp`. */
  wrap?: Wrap | readonly Wrap[];
  /** Whether it goes on top of the others. Such layers come last. Default: false. */
  additive?: boolean;
}

/** Layers that are blended at most. */
const MOST_LAYERS = 63;
const CLIP_NAMES: Record<keyof ClipOptions, true> = {
  tracks: true,
  duration: true,
  label: true,
};
const LAYER_NAMES: Record<keyof BlendLayer, true> = {
  clip: true,
  times: true,
  weight: true,
  wrap: true,
  additive: true,
};

/** The internals of a clip; throws for anything else. */
let internalsOf!: (about: string, clip: unknown) => ClipInternals;

const stores = new WeakMap<Calls, ClipStore>();

/** Gives back the words of clips that nobody disposes of. */
const collected = new FinalizationRegistry<{
  store: ClipStore;
  range: StoreRange;
}>(({ store, range }) => store.drop(range));

/**
 * Keyframe tracks on the device. Made by `gpu.clip`.
 *
 * @example
 * const clip = gpu.clip({
 *   tracks: [
 *     { times: [0, 1, 2], values: [0, 0, 0, 0, 2, 0, 0, 0, 0] },
 *     { times: [0, 2], values: [0, 0, 0, 1, 0, 1, 0, 0], kind: "quaternion" },
 *   ],
 * });
 * await clip.sample(0.5); // [0, 1, 0, 0, 0.3827, 0, 0.9239]
 */
export class Clip {
  /** Seconds after which it begins again. */
  readonly duration: number;
  /** Floats of a row: those of all its tracks, one after the other. */
  readonly width: number;
  readonly #internals: ClipInternals;

  /** Clips come from `gpu.clip`. */
  constructor(calls: Calls, clip: Encoded, label: string | undefined) {
    const store = storeOf(calls);
    this.duration = clip.duration;
    this.width = clip.width;
    const range = store.put(clip.words);
    // The store has the words by now.
    const internals = { ...clip, words: new Uint32Array(0) };
    const single = new SingleSample(store, internals, range);
    this.#internals = { calls, clip: internals, range, label, single };
    collected.register(this, { store, range }, this);
  }

  /**
   * The clip at one time, or at that of each instance: a row of {@link width} floats
   * each, its tracks' one after the other. Calls of any clips are computed together.
   * Values of magnitude 1 are within 1e-5 of the formulas of glTF 2.0 (appendix C) for
   * the times as 32-bit floats. One number is folded by `wrap` in 64 bits, an array on
   * the device, each to 2⁻²² of itself. Rejects with `invalid-input` where `into` has
   * another length, or a time is NaN.
   *
   * @example
   * const into = new Float32Array(times.length * clip.width);
   * await clip.sample(times, { wrap: "loop", into });
   */
  sample<Into extends Float32Array = Float32Array<ArrayBuffer>>(
    times: Times,
    options?: SampleOptions<Into>,
  ): Promise<Into> {
    const internals = this.#internals;
    if (typeof times === "number" && isSingle(internals, options)) {
      return sampleSingle(internals, times, options) as Promise<Into>;
    }
    return attempt(() => {
      const { wrap, ...rest } = options ?? {};
      const layer = { clip: this, times, wrap };
      return take<Into>(
        this.#internals.calls,
        SAMPLE,
        [layer],
        options && rest,
      );
    });
  }

  /**
   * The same, to the floats of a tensor of `gpu.tensor` from `offset` on, for a
   * renderer that draws from `tensor.gpuBuffer()`: nothing comes back. Submitted with
   * the frame's calls, or by `gpu.flush()` at once, so that what is submitted afterwards
   * draws it; resolves as soon as it is submitted. The first call waits for its kernel, unless
   * `gpu.warmup` compiled it. Without `gpu.flush()` it waits while three batches are on
   * their way.
   * Calls on one tensor keep the order in which they were made: one that reads it finds what
   * calls before it wrote. From then on only the device has the tensor's values: after a lost
   * device `restored` names the tensor, and what reads it, `gpuBuffer()` too, rejects with
   * `device-lost` until one call has written all of it. A tensor made with `snapshotEvery` holds
   * its last snapshot.
   *
   * @example
   * const pose = gpu.tensor(new Float32Array(instances * clip.width));
   * clip.sampleTo(pose, times, { wrap: "loop" });
   * gpu.flush();
   * renderer.render(scene, camera); // this frame's pose
   */
  sampleTo(
    tensor: Tensor,
    times: Times,
    options?: SampleToOptions,
  ): Promise<void> {
    return attempt(() => {
      const { wrap, offset, ...rest } = options ?? {};
      const layer = { clip: this, times, wrap };
      const to = { tensor, offset };
      return takeTo(
        this.#internals.calls,
        SAMPLE_TO,
        [layer],
        to,
        options && rest,
      );
    });
  }

  /** Gives its memory back as soon as no batch needs it. Using it after that rejects. */
  dispose(): void {
    collected.unregister(this);
    const { calls, range } = this.#internals;
    storeOf(calls).drop(range);
  }

  /** Lets `using` dispose of the clip. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  static {
    mark(this.prototype, "a clip");
    internalsOf = (about, clip) => {
      if (typeof clip === "object" && clip !== null && #internals in clip) {
        return clip.#internals;
      }
      throw invalid(about, `clip must be a clip, got ${kindOf(clip)}`);
    };
  }
}

/** Makes a clip. Throws where its tracks are wrong. */
export function makeClip(calls: Calls, options: ClipOptions): Clip {
  checkOptions("clip", options, CLIP_NAMES);
  const { tracks, duration, label } = options;
  const about = labeled("clip", label);
  if (calls.ended !== undefined) throw endedError(about, calls.ended);
  return new Clip(calls, encode(about, tracks, duration), label);
}

/** Blends clips for the caller. */
export function blend<Into extends Float32Array>(
  calls: Calls,
  layers: readonly BlendLayer[],
  options: CallOptions<Into> | undefined,
): Promise<Into> {
  return attempt(() => take<Into>(calls, BLEND, layers, options));
}

/** Blends clips to a tensor. */
export function blendTo(
  calls: Calls,
  tensor: Tensor,
  layers: readonly BlendLayer[],
  options: Omit<SampleToOptions, "wrap"> | undefined,
): Promise<void> {
  return attempt(() => {
    const { offset, ...rest } = options ?? {};
    const to = { tensor, offset };
    return takeTo(calls, BLEND_TO, layers, to, options && rest);
  });
}

const NONE: SampleOptions = {};

// Whether a call goes by the operands that its clip has for one time.
function isSingle({ calls }: ClipInternals, options: unknown): boolean {
  if (calls.core === undefined) return false;
  if (options === undefined) return true;
  if (typeof options !== "object" || options === null) return false;
  for (const name in options) if (name !== "wrap") return false;
  return true;
}

function sampleSingle(
  internals: ClipInternals,
  time: number,
  options: SampleOptions | undefined,
): Promise<Float32Array> {
  const { single, calls } = internals;
  try {
    const { wrap = "clamp" } = options ?? NONE;
    single.time = timeWithin(SAMPLE.name, internals, time, wrap);
    return calls.take(single, undefined);
  } catch (error) {
    return Promise.reject(error);
  }
}

function take<Into extends Float32Array>(
  calls: Calls,
  method: CallMethod,
  layers: readonly BlendLayer[],
  options: CallOptions<Into> | undefined,
): Promise<Into> {
  const about = subject(method.name, options?.label);
  const sampled = layersOf(about, calls, method, layers);
  const operands = new SampleOperands(
    method,
    storeOf(calls),
    sampled,
    undefined,
  );
  return calls.take<Into>(operands, options);
}

async function takeTo(
  calls: Calls,
  method: CallMethod,
  layers: readonly BlendLayer[],
  { tensor, offset = 0 }: { tensor: Tensor; offset: number | undefined },
  options: CallOptions | undefined,
): Promise<void> {
  const about = subject(method.name, options?.label);
  if (options !== undefined && "into" in options) {
    throw invalid(
      about,
      "there is no option 'into'; the tensor takes the result",
    );
  }
  const sampled = layersOf(about, calls, method, layers);
  const target = targetOf(about, calls, tensor, offset);
  const operands = new SampleOperands(method, storeOf(calls), sampled, target);
  const { count } = target.node.shape;
  const end = offset + operands.rows * sampled[0].clip.width;
  if (end > count) {
    throw invalid(
      about,
      `the tensor has ${count} floats, but the result ends at ${end}`,
    );
  }
  await calls.take(operands, options);
}

function targetOf(
  about: string,
  calls: Calls,
  tensor: Tensor,
  offset: number,
): Target {
  const node = nodeOf(about, calls, tensor);
  checkTarget(about, node);
  if (node.dtype !== FLOATS) {
    throw invalid(about, "only a tensor of 32-bit floats can be written to");
  }
  if (!Number.isInteger(offset) || offset < 0) {
    throw invalid(about, `offset must be a whole number from 0, got ${offset}`);
  }
  return { node, offset, residents: calls.residents };
}

function layersOf(
  about: string,
  calls: Calls,
  method: CallMethod,
  layers: readonly BlendLayer[],
): SampledLayer[] {
  if (method === SAMPLE || method === SAMPLE_TO) {
    return [layerOf(about, calls, layers[0])];
  }
  if (!Array.isArray(layers) || layers.length === 0) {
    throw invalid(about, "layers must be an array of at least 1 layer");
  }
  if (layers.length > MOST_LAYERS) {
    throw invalid(
      about,
      `${layers.length} layers are more than ${MOST_LAYERS}`,
    );
  }
  const sampled = layers.map((layer: BlendLayer, i) => {
    const name = `${about}: layers[${i}]`;
    if (typeof layer !== "object" || layer === null) {
      throw invalid(name, `a layer must be an object, got ${kindOf(layer)}`);
    }
    checkNames(name, layer, LAYER_NAMES);
    return layerOf(name, calls, layer);
  });
  checkLayers(about, sampled);
  return sampled;
}

function layerOf(about: string, calls: Calls, layer: BlendLayer): SampledLayer {
  return sampledLayer(about, calls, internalsOf(about, layer.clip), layer);
}

function storeOf(calls: Calls): ClipStore {
  let store = stores.get(calls);
  if (store === undefined) {
    store = new ClipStore((thrown) => calls.fail("clip", thrown));
    stores.set(calls, store);
    calls.join(store);
  }
  return store;
}

function attempt<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return work();
  } catch (error) {
    return Promise.reject(error);
  }
}
