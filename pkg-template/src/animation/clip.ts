// Clips as people hold them: `sample`, `sampleTo` and blending.
//
// What may be wrong with a call is found here; how it is laid, in `sampling.ts`.

/// <reference lib="esnext.disposable" preserve="true" />

import { endedError } from "../answer.js";
import type { CallOptions } from "../call-options.js";
import type { Calls } from "../calls.js";
import { checkNames } from "../check.js";
import { FramebatchError, invalid, kindOf, subject } from "../errors.js";
import type { LaidMethod } from "../laid.js";
import { FLOATS } from "../tensor/codes.js";
import { nodeOf, type Tensor } from "../tensor/tensor.js";
import {
  BLEND,
  BLEND_TO,
  SAMPLE,
  SAMPLE_TO,
  type SampledLayer,
  Sampling,
  type Target,
  WRAPS,
} from "./sampling.js";
import { type Place, Store } from "./store.js";
import { type ClipOptions, encode, type Encoded } from "./tracks.js";

/** What becomes of a time outside of a clip: the nearest end, again, or to and fro. */
export type Wrap = (typeof WRAPS)[number];

/** Seconds: of one instance, or of each. */
export type Times = number | Float32Array;

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
  /** Its time: all layers have as many. */
  times: Times;
  /** Its share, of all instances or of each; one not above 0 counts nothing. Default: 1. */
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

/** The clip behind a handle of this session; throws for anything else. */
let layerOf!: (about: string, calls: Calls, layer: BlendLayer) => SampledLayer;

const stores = new WeakMap<Calls, Store>();

/** Frees the places of clips that nobody disposes of. */
const collected = new FinalizationRegistry<{ store: Store; place: Place }>(
  ({ store, place }) => store.drop(place),
);

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
  readonly #calls: Calls;
  readonly #clip: Encoded;
  readonly #place: Place;
  readonly #label: string | undefined;

  /** Clips come from `gpu.clip`. */
  constructor(calls: Calls, clip: Encoded, label: string | undefined) {
    const store = storeOf(calls);
    this.duration = clip.duration;
    this.width = clip.width;
    this.#calls = calls;
    this.#place = store.put(clip.words);
    // The store has the words now.
    this.#clip = { ...clip, words: new Uint32Array(0) };
    this.#label = label;
    collected.register(this, { store, place: this.#place }, this);
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
    return attempt(() => {
      const { wrap, ...rest } = options ?? {};
      const layer = { clip: this, times, wrap };
      return take<Into>(this.#calls, SAMPLE, [layer], options && rest);
    });
  }

  /**
   * The same, to the floats of a tensor of `gpu.tensor` from `offset` on, for a
   * renderer that draws from `tensor.gpuBuffer()`: nothing comes back. Submitted with
   * the frame's calls, or by `gpu.flush()` at once, so that what is submitted afterwards
   * draws it; resolves once that is done. Other calls of the frame that read the tensor
   * find what was written. Where calls write to the same place, one of them wins. After
   * a loss of the device the tensor holds its own data until it is written again.
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
      const to = [tensor, offset] as const;
      return takeTo(this.#calls, SAMPLE_TO, [layer], to, options && rest);
    });
  }

  /** Gives its memory back as soon as no pending call needs it. Using it after that rejects. */
  dispose(): void {
    collected.unregister(this);
    storeOf(this.#calls).drop(this.#place);
  }

  /** Lets `using` dispose of the clip. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  static {
    layerOf = (about, calls, layer) => {
      const {
        clip,
        times,
        weight = 1,
        wrap = "clamp",
        additive = false,
      } = layer;
      if (typeof clip !== "object" || clip === null || !(#clip in clip)) {
        throw invalid(about, `clip must be a clip, got ${kindOf(clip)}`);
      }
      if (clip.#calls !== calls) {
        throw invalid(
          about,
          "the clip is of another session; make it with the same one",
        );
      }
      if (clip.#place.dropped) {
        throw new FramebatchError(
          "disposed",
          `${about}: ${subject("the clip", clip.#label)} is disposed; make it anew`,
        );
      }
      checkTimes(about, times);
      const rows = typeof times === "number" ? 1 : times.length;
      checkWeight(about, weight, rows);
      if (typeof additive !== "boolean") {
        throw invalid(
          about,
          `additive must be true or false, got ${kindOf(additive)}`,
        );
      }
      const mode = modeOf(about, wrap, rows);
      // One number is folded here, where it has all its digits.
      const isFolded = typeof times === "number" && typeof mode === "number";
      return {
        clip: clip.#clip,
        place: clip.#place,
        times: isFolded ? fold(times, clip.duration, mode) : times,
        weight,
        wrap: isFolded ? 0 : mode,
        isAdditive: additive,
      };
    };
  }
}

/** Makes a clip. Throws where its tracks are wrong. */
export function makeClip(calls: Calls, options: ClipOptions): Clip {
  if (typeof options !== "object" || options === null) {
    throw invalid("clip", `options must be an object, got ${kindOf(options)}`);
  }
  checkNames("clip", options, CLIP_NAMES);
  const { tracks, duration, label } = options;
  if (label !== undefined && typeof label !== "string") {
    throw invalid("clip", `label must be a string, got ${kindOf(label)}`);
  }
  const about = subject("clip", label);
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
    const to = [tensor, offset] as const;
    return takeTo(calls, BLEND_TO, layers, to, options && rest);
  });
}

function take<Into extends Float32Array>(
  calls: Calls,
  method: LaidMethod,
  layers: readonly BlendLayer[],
  options: CallOptions<Into> | undefined,
): Promise<Into> {
  const about = subject(method.name, options?.label);
  const sampled = layersOf(about, calls, method, layers);
  const sampling = new Sampling(method, storeOf(calls), sampled, undefined);
  return calls.take<Into>(sampling, options);
}

async function takeTo(
  calls: Calls,
  method: LaidMethod,
  layers: readonly BlendLayer[],
  [tensor, offset = 0]: readonly [Tensor, number | undefined],
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
  const sampling = new Sampling(method, storeOf(calls), sampled, target);
  const { count } = target.node.shape;
  const end = offset + sampling.rows * sampled[0].clip.width;
  if (end > count) {
    throw invalid(
      about,
      `the tensor has ${count} floats, but the result ends at ${end}`,
    );
  }
  await calls.take(sampling, options);
}

function targetOf(
  about: string,
  calls: Calls,
  tensor: Tensor,
  offset: number,
): Target {
  const node = nodeOf(about, calls, tensor);
  if (node.leaf === undefined || node.dtype !== FLOATS) {
    throw invalid(
      about,
      "only a tensor of floats that gpu.tensor made can be written to",
    );
  }
  if (!Number.isInteger(offset) || offset < 0) {
    throw invalid(about, `offset must be a whole number from 0, got ${offset}`);
  }
  return { node, offset, residents: calls.residents };
}

function layersOf(
  about: string,
  calls: Calls,
  method: LaidMethod,
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
  const [first] = sampled;
  sampled.forEach((layer, i) => {
    const name = `${about}: layers[${i}]`;
    if (layer.clip.signature !== first.clip.signature) {
      throw invalid(
        name,
        "the clip has other tracks than the first; blend clips of equal tracks",
      );
    }
    if (rowsOf(layer) !== rowsOf(first)) {
      throw invalid(
        name,
        `there are ${rowsOf(layer)} times, but the first layer has ${rowsOf(first)}; give all as many`,
      );
    }
    if (i > 0 && sampled[i - 1].isAdditive && !layer.isAdditive) {
      throw invalid(
        name,
        "it follows an additive one; additive layers come last",
      );
    }
  });
  return sampled;
}

function rowsOf({ times }: SampledLayer): number {
  return typeof times === "number" ? 1 : times.length;
}

function checkTimes(about: string, times: unknown): void {
  if (typeof times === "number") {
    if (times === times) return;
    throw invalid(about, "times is NaN; give a number");
  }
  if (isFloats(times)) return;
  throw invalid(
    about,
    `times must be a number or a Float32Array, got ${kindOf(times)}`,
  );
}

function checkWeight(about: string, weight: unknown, rows: number): void {
  if (typeof weight === "number") {
    if (weight === weight) return;
    throw invalid(about, "weight is NaN; give a number");
  }
  if (!isFloats(weight)) {
    throw invalid(
      about,
      `weight must be a number or a Float32Array, got ${kindOf(weight)}`,
    );
  }
  if (weight.length === rows) return;
  throw invalid(
    about,
    `there are ${weight.length} weights, but ${rows} times; give one for all, or as many`,
  );
}

function modeOf(
  about: string,
  wrap: unknown,
  rows: number,
): number | Uint8Array {
  const number = (mode: unknown): number => {
    const at = WRAPS.indexOf(mode as Wrap);
    if (at >= 0) return at;
    const given = typeof mode === "string" ? `'${mode}'` : kindOf(mode);
    throw invalid(
      about,
      `wrap must be 'clamp', 'loop' or 'ping-pong', got ${given}`,
    );
  };
  if (!Array.isArray(wrap)) return number(wrap);
  if (wrap.length === rows) return Uint8Array.from(wrap, number);
  throw invalid(
    about,
    `there are ${wrap.length} wrap modes, but ${rows} times; give one for all, or as many`,
  );
}

function isFloats(value: unknown): value is Float32Array {
  if (!ArrayBuffer.isView(value)) return false;
  return (value as Float32Array)[Symbol.toStringTag] === "Float32Array";
}

function fold(time: number, duration: number, mode: number): number {
  if (mode === 0) return time;
  if (duration === 0) return 0;
  const period = mode === 1 ? duration : 2 * duration;
  const rest = time - period * Math.floor(time / period);
  return rest > duration ? period - rest : rest;
}

function storeOf(calls: Calls): Store {
  let store = stores.get(calls);
  if (store === undefined) {
    store = new Store((thrown) => calls.fail("clip", thrown));
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
