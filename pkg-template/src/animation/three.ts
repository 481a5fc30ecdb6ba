// Converts animation clips of three.js.
//
// Nothing of three.js is imported: only the shape of its objects is known here.

import { invalid } from "../checks/errors.js";
import type { ClipOptions, Track } from "./tracks.js";

/** What is used of a `KeyframeTrack` of three.js. */
export interface ThreeTrack {
  readonly name: string;
  readonly times: ArrayLike<number>;
  readonly values: ArrayLike<number>;
  readonly ValueTypeName: string;
  getInterpolation(): unknown;
  createInterpolant: { isInterpolantFactoryMethodGLTFCubicSpline?: boolean };
}

/** What is used of an `AnimationClip` of three.js. */
export interface ThreeClip {
  readonly name: string;
  readonly duration: number;
  readonly tracks: readonly ThreeTrack[];
}

// The constants of three.js for interpolations.
const DISCRETE = 2300;
const LINEAR = 2301;
const SMOOTH = 2302;

/**
 * What `gpu.clip` takes for an `AnimationClip` of three.js, its tracks in their order:
 * those of its own making, and those that `GLTFLoader` reads. Tracks of booleans and
 * strings, and Bézier tracks, throw `invalid-input`; leave them to the mixer.
 *
 * @example
 * const walk = gpu.clip(fromThree(gltf.animations[0]));
 */
export function fromThree({ name, duration, tracks }: ThreeClip): ClipOptions {
  const own = tracks.map((track) => trackOf(track));
  return { tracks: own, duration: Math.max(duration, 0), label: name };
}

function trackOf(track: ThreeTrack): Track {
  const { ValueTypeName: type } = track;
  if (type === "bool" || type === "string") {
    throw invalid("fromThree", `track '${track.name}' holds ${type}s`);
  }
  const kind = type === "quaternion" ? "quaternion" : "vector";
  const times = Float32Array.from(track.times);
  const values = Float32Array.from(track.values);
  if (track.createInterpolant?.isInterpolantFactoryMethodGLTFCubicSpline) {
    return { times, values, kind, interpolation: "cubicspline" };
  }
  switch (track.getInterpolation()) {
    case DISCRETE:
      return { times, values, kind, interpolation: "step" };
    case LINEAR:
      return { times, values, kind };
    case SMOOTH:
      // three.js interpolates quaternions spherically whatever the mode.
      if (kind === "quaternion" || times.length < 2)
        return { times, values, kind };
      return {
        times,
        values: smooth(times, values),
        kind,
        interpolation: "cubicspline",
      };
    default:
      throw invalid(
        "fromThree",
        `track '${track.name}' has an interpolation that is not discrete, linear, smooth or a spline of glTF`,
      );
  }
}

/** The tangents of three's `CubicInterpolant`, with its natural ends. */
function smooth(times: Float32Array, values: Float32Array): Float32Array {
  const keys = times.length;
  const width = values.length / keys;
  const spline = new Float32Array(3 * values.length);
  for (let key = 0; key < keys; key += 1) {
    const at = 3 * key * width;
    spline.set(values.subarray(key * width, (key + 1) * width), at + width);
  }
  for (let key = 0; key + 1 < keys; key += 1) {
    const span = times[key + 1] - times[key];
    if (span === 0) continue;
    const isFirst = key === 0;
    const isLast = key + 2 === keys;
    const before = isFirst ? -span : times[key] - times[key - 1];
    const after = isLast ? -span : times[key + 2] - times[key + 1];
    const [wp, wn] = [span / 2 / before, span / 2 / after];
    for (let k = 0; k < width; k += 1) {
      const value = (at: number): number => values[at * width + k];
      const [v, w] = [value(key), value(key + 1)];
      const u = isFirst ? w : value(key - 1);
      const x = isLast ? v : value(key + 2);
      const at = 3 * key * width + k;
      spline[at + 2 * width] = (-wp * u + (wp - 0.5) * v + 0.5 * w) / span;
      spline[at + 3 * width] = (-0.5 * v + (0.5 - wn) * w + wn * x) / span;
    }
  }
  return spline;
}
