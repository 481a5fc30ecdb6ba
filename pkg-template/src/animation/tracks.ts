// Checks keyframe tracks, and encodes these as the words that kernels read.
//
// `src/ops/clips.rs` describes the words and writes the same natively. Where words lie in
// the store is decided in `store.ts`.

import { got } from "../checks/arrays.js";
import { invalid, kindOf } from "../checks/errors.js";
import { checkNames } from "../checks/options.js";
import { aligned } from "../memory/arrays.js";
import { wordsOf } from "./arrays.js";
import { type Eased, type Easing, parseEasing } from "./easing.js";

/** Numbers that are copied: an array of them, or any array of floats. */
export type Numbers = Float32Array | readonly number[];

/** Keys and the values at them. */
export interface Track {
  /** Seconds of the keys, rising; of equal ones the last counts. */
  times: Numbers;
  /**
   * The values, key after key, as many floats each. Of a `cubicspline` the in-tangent,
   * the value and the out-tangent of each key; tangents are per second.
   */
  values: Numbers;
  /** Floats, or unit quaternions xyzw. Default: `vector`. */
  kind?: "vector" | "quaternion";
  /**
   * What lies between keys, as in glTF 2.0: the value of the key before, a straight
   * line (quaternions along the shorter arc), or cubic Hermite curves. Default: `linear`.
   */
  interpolation?: "step" | "linear" | "cubicspline";
  /** How progress from each key to the next is eased. Default: `linear`. */
  easing?: Easing;
}

/** What `gpu.clip` takes. */
export interface ClipOptions {
  /** The tracks. A row of the result has their floats one after the other. */
  tracks: readonly Track[];
  /** Seconds after which it begins again. Default: the last key's time. */
  duration?: number;
  /** Appears in the message of every error about this clip. Default: none. */
  label?: string;
}

/** A clip as words. */
export interface Encoded {
  /** A multiple of four. */
  readonly words: Uint32Array;
  readonly lanes: number;
  /** Floats of a row. */
  readonly width: number;
  readonly duration: number;
  /** Kind and width of each track: clips of equal ones blend. */
  readonly signature: string;
}

/** A track whose arguments were checked. */
interface Checked {
  readonly given: Track;
  readonly keys: number;
  readonly width: number;
  readonly isQuaternion: boolean;
  /** The index of the track's interpolation in {@link INTERPOLATIONS}. */
  readonly mode: number;
  readonly eased: Eased;
}

/** Floats that a row of a clip may have. */
const MAX_WIDTH = 2 ** 20;
const CUBIC = 2;
const INTERPOLATIONS = ["step", "linear", "cubicspline"];
const KINDS = ["vector", "quaternion"];
const TRACK_NAMES: Record<keyof Track, true> = {
  times: true,
  values: true,
  kind: true,
  interpolation: true,
  easing: true,
};

/** Encodes tracks. Throws for those that are wrong, naming them. */
export function encode(
  about: string,
  tracks: unknown,
  duration: unknown,
): Encoded {
  if (!Array.isArray(tracks) || tracks.length === 0) {
    throw invalid(about, "tracks must be an array of at least 1 track");
  }
  const checked = tracks.map((track, i) => check(about, `tracks[${i}]`, track));
  let [width, lanes, end] = [0, 0, 0];
  for (const track of checked) {
    width += track.width;
    lanes += Math.ceil(track.width / 4);
    const last = track.given.times[track.keys - 1];
    end = Math.max(end, last);
  }
  if (width > MAX_WIDTH) {
    throw invalid(
      about,
      `its tracks have ${width} floats together, but a clip has at most ${MAX_WIDTH}`,
    );
  }
  const seconds = duration ?? end;
  if (typeof seconds !== "number" || !(seconds >= 0 && seconds < Infinity)) {
    throw invalid(
      about,
      `duration must be a number from 0, got ${typeof seconds === "number" ? seconds : kindOf(seconds)}`,
    );
  }
  const signature = checked
    .map(({ isQuaternion, width }) => (isQuaternion ? "q" : width))
    .join();
  const words = write(about, checked, lanes, seconds);
  return { words, lanes, width, duration: seconds, signature };
}

function write(
  about: string,
  tracks: readonly Checked[],
  lanes: number,
  duration: number,
): Uint32Array {
  const offsets = new Map<Numbers, number>();
  let end = 4 + 8 * lanes;
  const take = (words: number): number => (end += words) - words;
  // Offsets are found first, and words are written then.
  const laidOut = tracks.map(({ given, eased }) => {
    // Tracks of one model often share the array of their keys.
    let times = offsets.get(given.times);
    if (times === undefined) {
      times = take(given.times.length);
      offsets.set(given.times, times);
    }
    const values = take(given.values.length);
    return { times, values, easing: eased.flag === 0 ? 0 : take(4) };
  });
  const words = wordsOf(about, aligned(end));
  const floats = new Float32Array(words.buffer);
  floats[0] = duration;
  words[1] = lanes;
  let [lane, row] = [4, 0];
  tracks.forEach(({ given, keys, width, isQuaternion, mode, eased }, i) => {
    const { times, values, easing } = laidOut[i];
    floats.set(given.times, times);
    floats.set(given.values, values);
    if (eased.flag !== 0) floats.set(eased.numbers, easing);
    const flags = eased.flag | (isQuaternion ? 4 : 0) | mode;
    for (let first = 0; first < width; first += 4) {
      words.set(
        [
          times,
          keys,
          values + first,
          mode === CUBIC ? 3 * width : width,
          flags | ((row + first) << 8),
          easing,
          Math.min(4, width - first),
          width,
        ],
        lane,
      );
      lane += 8;
    }
    row += width;
  });
  return words;
}

function check(about: string, name: string, track: unknown): Checked {
  if (typeof track !== "object" || track === null) {
    throw invalid(about, `${name} must be an object, got ${kindOf(track)}`);
  }
  checkNames(about, track, TRACK_NAMES);
  const given = track as Track;
  const { kind = "vector", interpolation = "linear", easing } = given;
  const mode = indexIn(
    about,
    `${name}.interpolation`,
    INTERPOLATIONS,
    interpolation,
  );
  const isQuaternion = indexIn(about, `${name}.kind`, KINDS, kind) === 1;
  const times = numbersOf(about, `${name}.times`, given.times);
  const values = numbersOf(about, `${name}.values`, given.values);
  checkTimes(about, `${name}.times`, times);
  const perKey = mode === CUBIC ? 3 : 1;
  const width = values.length / (times.length * perKey);
  if (!Number.isInteger(width) || width === 0) {
    const each = perKey === 3 ? "3 values" : "1 value";
    throw invalid(
      about,
      `${name}.values has ${values.length} floats, which is not ${each} for each of ${times.length} keys`,
    );
  }
  if (isQuaternion && width !== 4) {
    throw invalid(
      about,
      `${name} has ${width} floats a value, but a quaternion has 4`,
    );
  }
  const eased = parseEasing(`${about}: ${name}`, easing);
  if (eased.flag !== 0 && mode === 0) {
    throw invalid(
      about,
      `${name}.easing has no effect on steps from key to key; leave it out`,
    );
  }
  return { given, keys: times.length, width, isQuaternion, mode, eased };
}

function indexIn(
  about: string,
  name: string,
  all: readonly string[],
  value: unknown,
): number {
  const at = all.indexOf(value as string);
  if (at >= 0) return at;
  const given = typeof value === "string" ? `'${value}'` : kindOf(value);
  const names = all.map((known) => `'${known}'`).join(", ");
  throw invalid(about, `${name} must be one of ${names}, got ${given}`);
}

function numbersOf(about: string, name: string, value: unknown): Numbers {
  const tag = ArrayBuffer.isView(value)
    ? (value as Float32Array)[Symbol.toStringTag]
    : "";
  if (tag === "Float32Array") return value as Float32Array;
  if (Array.isArray(value)) return value as number[];
  throw invalid(
    about,
    `${name} must be a Float32Array or an array of numbers, ${got("Float32Array", name, value)}`,
  );
}

function checkTimes(about: string, name: string, times: Numbers): void {
  if (times.length === 0) {
    throw invalid(about, `${name} is empty; give at least 1 key`);
  }
  for (let i = 0; i < times.length; i += 1) {
    if (!Number.isFinite(times[i])) {
      throw invalid(
        about,
        `${name}[${i}] is ${times[i]}; give a finite number`,
      );
    }
    if (i > 0 && times[i] < times[i - 1]) {
      throw invalid(
        about,
        `${name}[${i}] is before the one in front of it; sort the keys`,
      );
    }
  }
}
