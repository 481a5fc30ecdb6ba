// The second entry of the package: importing it gives every session clips.
//
// Apart from the first, so that pages without animations do not load it.

import type { CallOptions } from "../call-options.js";
import { callsOf, Session } from "../session.js";
import type { Tensor } from "../tensor/tensor.js";
import {
  blend,
  type BlendLayer,
  blendTo,
  type Clip,
  makeClip,
  type SampleToOptions,
} from "./clip.js";
import type { ClipOptions } from "./tracks.js";

export type {
  BlendLayer,
  Clip,
  SampleOptions,
  SampleToOptions,
  Times,
  Wrap,
} from "./clip.js";
export { fromThree, type ThreeClip, type ThreeTrack } from "./three.js";
export type { Easing } from "./easing.js";
export type { ClipOptions, Numbers, Track } from "./tracks.js";

declare module "../session.js" {
  interface Session {
    /**
     * Takes keyframe tracks to the device, where they stay until disposed. They are
     * copied. Throws `invalid-input` naming the track that is wrong. With
     * `import "framebatch/animation"`.
     *
     * @example
     * const rise = gpu.clip({ tracks: [{ times: [0, 2], values: [0, 10], easing: "ease-in-out" }] });
     * await rise.sample(1); // [5]
     */
    clip(options: ClipOptions): Clip;

    /**
     * Clips of equal tracks blended, as rows like those of `clip.sample`: the mean of the
     * layers by weight, then the additive ones on top. Quaternions are summed on one
     * side and scaled to length 1 (nlerp); of an additive one the turn by its weight
     * between none and all of it is multiplied from the right; an additive vector is
     * added by its weight. Without any weight above 0 a vector is 0 and a quaternion
     * no turn. With `import "framebatch/animation"`.
     *
     * @example
     * await gpu.blend([
     *   { clip: walk, times, weight: 0.25, wrap: "loop" },
     *   { clip: run, times, weight: 0.75, wrap: "loop" },
     *   { clip: nod, times, additive: true },
     * ]);
     */
    blend<Into extends Float32Array = Float32Array<ArrayBuffer>>(
      layers: readonly BlendLayer[],
      options?: CallOptions<Into>,
    ): Promise<Into>;

    /** The same to a tensor, as `clip.sampleTo`. */
    blendTo(
      tensor: Tensor,
      layers: readonly BlendLayer[],
      options?: Omit<SampleToOptions, "wrap">,
    ): Promise<void>;
  }
}

Object.assign(Session.prototype, {
  clip(this: Session, options: ClipOptions): Clip {
    return makeClip(callsOf(this), options);
  },
  blend(
    this: Session,
    layers: readonly BlendLayer[],
    options?: CallOptions<Float32Array>,
  ): Promise<Float32Array> {
    return blend(callsOf(this), layers, options);
  },
  blendTo(
    this: Session,
    tensor: Tensor,
    layers: readonly BlendLayer[],
    options?: Omit<SampleToOptions, "wrap">,
  ): Promise<void> {
    return blendTo(callsOf(this), tensor, layers, options);
  },
});
