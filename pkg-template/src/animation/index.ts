// The entry `framebatch/animation`: importing it gives every session clips and motions.
//
// An entry of its own, so that pages without animations do not load it.

import type { CallOptions } from "../calls/call-options.js";
import { callsOf, Session } from "../session/session.js";
import type { Tensor } from "../tensor/tensor.js";
import {
  blend,
  type BlendLayer,
  blendTo,
  type Clip,
  makeClip,
  type SampleToOptions,
} from "./clip.js";
import { Spring, type SpringOptions } from "./spring.js";
import type { ClipOptions } from "./tracks.js";
import { Tween, type TweenOptions } from "./tween.js";
import type { MotionValue, Several } from "./values.js";

export type {
  BlendLayer,
  Clip,
  SampleOptions,
  SampleToOptions,
} from "./clip.js";
export type { Times, Wrap } from "./layers.js";
export { fromThree, type ThreeClip, type ThreeTrack } from "./three.js";
export type { Easing } from "./easing.js";
export type { Spring, SpringOptions } from "./spring.js";
export type { Tween, TweenOptions } from "./tween.js";
export type { MotionOptions, MotionValue, Moved, Several } from "./values.js";
export type { ClipOptions, Numbers, Track } from "./tracks.js";

declare module "../session/session.js" {
  interface Session {
    /**
     * Takes keyframe tracks to the device, where they stay until disposed. They are
     * copied. Throws `invalid-input` naming the track that is wrong, and `out-of-memory`
     * where the memory budget has no room. With `import "framebatch/animation"`.
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

    /**
     * Moves a value, or several together, to another in a given time. All tweens and
     * springs of the session are stepped once a frame; those that end, or are ended,
     * leave nothing behind. With `import "framebatch/animation"`.
     *
     * @example
     * const fade = gpu.tween(0, 1, { duration: 0.2, onUpdate: (x) => (panel.style.opacity = `${x}`) });
     * await fade.finished;
     */
    tween(
      from: number,
      to: number,
      options?: TweenOptions<number>,
    ): Tween<number>;
    tween(
      from: Several,
      to: Several,
      options?: TweenOptions<Several>,
    ): Tween<Several>;

    /**
     * Pulls a value, or several together, to another by a damped spring, until it rests
     * there; `spring.to(other)` pulls it elsewhere without a jump. As it comes it
     * does not swing. With `import "framebatch/animation"`.
     *
     * @example
     * const place = gpu.spring([0, 0], [0, 0], { onUpdate: ([x, y]) => moveTo(x, y) });
     * addEventListener("pointermove", ({ x, y }) => place.to([x, y]));
     */
    spring(
      from: number,
      to: number,
      options?: SpringOptions<number>,
    ): Spring<number>;
    spring(
      from: Several,
      to: Several,
      options?: SpringOptions<Several>,
    ): Spring<Several>;
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
  tween<Value extends MotionValue>(
    this: Session,
    from: Value,
    to: Value,
    options: TweenOptions<Value> = {},
  ): Tween<Value> {
    return new Tween(callsOf(this), { from, to }, options);
  },
  spring<Value extends MotionValue>(
    this: Session,
    from: Value,
    to: Value,
    options: SpringOptions<Value> = {},
  ): Spring<Value> {
    return new Spring(callsOf(this), { from, to }, options);
  },
});
