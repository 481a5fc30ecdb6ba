// What is animated: keyframe tracks, instances of them at times of their own, and what
// is right in float64.

import { floats, quaternions, sequence } from "../ops/inputs.ts";

/** Keys of every track. */
export const KEYS = 16;
/** Seconds of every track; times fold there. A power of two, so that folding is exact. */
export const DURATION = 4;

export interface Track {
  readonly kind: "vector" | "quaternion";
  readonly times: Float32Array<ArrayBuffer>;
  readonly values: Float32Array<ArrayBuffer>;
}

export interface Scene {
  readonly instances: number;
  /** The tracks of a row, in order. */
  readonly kinds: readonly Track["kind"][];
  /** The tracks of every instance, or of the first, of the second, and so on. */
  readonly tracks: readonly Track[];
  /** Whether each instance has tracks of its own. */
  readonly isOwn: boolean;
  /** Neighbors that are at one time; where instances have tracks of their own, these neighbors are one clip. */
  readonly together: number;
  /** Whether rows are drawn from a buffer, and not wanted back. */
  readonly isDrawn: boolean;
}

export const widthOf = (kind: Track["kind"]) => (kind === "vector" ? 3 : 4);

/** Floats of an instance. */
export const rowOf = ({ kinds }: Scene) =>
  kinds.reduce((sum, kind) => sum + widthOf(kind), 0);

/** Things with a rotation of their own, so many of them to a clip. */
export function rotations(instances: number, together: number): Scene {
  const next = sequence();
  return {
    instances,
    kinds: ["quaternion"],
    tracks: Array.from({ length: instances }, () => track("quaternion", next)),
    isOwn: true,
    together,
    isDrawn: false,
  };
}

/** Instances of one movement: position, rotation, scale. */
export function crowd(instances: number): Scene {
  const next = sequence();
  const kinds = ["vector", "quaternion", "vector"] as const;
  return {
    instances,
    kinds,
    tracks: kinds.map((kind) => track(kind, next)),
    isOwn: false,
    together: 1,
    isDrawn: true,
  };
}

function track(kind: Track["kind"], next: () => number): Track {
  const times = Float32Array.from({ length: KEYS }, (_, key) =>
    key === 0 ? 0 : ((key + next() * 0.8) * DURATION) / KEYS,
  );
  times[KEYS - 1] = DURATION;
  const values =
    kind === "vector" ? floats(3 * KEYS, next) : quaternions(KEYS, next);
  return { kind, times, values };
}

/** The track at a place of an instance's row. */
export const trackOf = (
  { tracks, kinds, isOwn }: Scene,
  i: number,
  k: number,
) => tracks[isOwn ? i * kinds.length + k : k];

/** How many have a time of their own. */
export const groupsOf = ({ instances, together }: Scene) =>
  instances / together;

/** When a group began; exact in 32 bits, as `now` is. */
export const phaseOf = (group: number) => group / 16_384;

/** The time of every group. */
export function putTimes(times: Float32Array, now: number): void {
  for (let i = 0; i < times.length; i++) times[i] = now + phaseOf(i);
}

/** Where a track is at a time from 0 to its end, by the formulas of glTF 2.0. */
export function sampled(
  { kind, times, values }: Track,
  time: number,
): number[] {
  let key = 0;
  while (key < KEYS - 2 && times[key + 1] <= time) key++;
  const t = (time - times[key]) / (times[key + 1] - times[key]);
  const width = widthOf(kind);
  const a = values.subarray(key * width, (key + 1) * width);
  const b = values.subarray((key + 1) * width, (key + 2) * width);
  let [from, to] = [1 - t, t];
  if (kind === "quaternion") {
    const dot = a.reduce((sum, x, k) => sum + x * b[k], 0);
    const angle = Math.acos(Math.min(1, Math.abs(dot)));
    const sine = Math.sin(angle);
    if (sine > 1e-9) {
      from = Math.sin((1 - t) * angle) / sine;
      to = Math.sin(t * angle) / sine;
    }
    if (dot < 0) to = -to;
  }
  return Array.from(a, (x, k) => x * from + b[k] * to);
}
