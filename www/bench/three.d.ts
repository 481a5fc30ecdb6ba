// What the bench uses of three.js, which has no types of its own.

declare module "three" {
  interface Floats {
    toArray(out: Float32Array, at: number): void;
  }
  export class Object3D {
    readonly position: Floats;
    readonly quaternion: Floats;
    readonly scale: Floats;
  }
  class Track {
    constructor(name: string, times: Float32Array, values: Float32Array);
  }
  export class QuaternionKeyframeTrack extends Track {}
  export class VectorKeyframeTrack extends Track {}
  export class AnimationClip {
    constructor(name: string, duration: number, tracks: readonly Track[]);
  }
  export class AnimationMixer {
    constructor(root: Object3D);
    clipAction(clip: AnimationClip, root: Object3D): Action;
    update(seconds: number): void;
  }
  interface Action {
    time: number;
    play(): Action;
  }
}
