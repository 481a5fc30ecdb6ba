// The layers of a sampling: checked as callers give them, and made ready to be written.

import { allocate } from "../checks/allocation.js";
import { detached, got, isDetached } from "../checks/arrays.js";
import {
  FramebatchError,
  invalid,
  kindOf,
  subject,
  tagOf,
} from "../checks/errors.js";
import type { Calls } from "../session/calls.js";
import { type SampledLayer, WRAPS } from "./sample-operands.js";
import type { SingleSample } from "./single-sample.js";
import type { StoreRange } from "./store.js";
import type { Encoded } from "./tracks.js";

/** What becomes of a time outside of a clip: the nearest end, from the start again, or to and fro. */
export type Wrap = (typeof WRAPS)[number];

/** Seconds, of one instance or of each. */
export type Times = number | Float32Array;

/** What a clip is made of, behind the object that callers hold. */
export interface ClipInternals {
  readonly calls: Calls;
  readonly clip: Encoded;
  readonly range: StoreRange;
  readonly label: string | undefined;
  /** The operands of calls of one time. */
  readonly single: SingleSample;
}

/** The options of a layer. */
interface LayerOptions {
  readonly times: Times;
  readonly weight?: number | Float32Array;
  readonly wrap?: Wrap | readonly Wrap[];
  readonly additive?: boolean;
}

/** A layer ready to be written. Throws for what is wrong with it. */
export function sampledLayer(
  about: string,
  calls: Calls,
  internals: ClipInternals,
  { times, weight = 1, wrap = "clamp", additive = false }: LayerOptions,
): SampledLayer {
  const { clip, range } = internals;
  if (internals.calls !== calls) {
    throw invalid(
      about,
      "the clip is of another session; make it with the one that samples it",
    );
  }
  refuseDisposed(about, internals);
  checkFloats(about, "times", times);
  const rows = typeof times === "number" ? 1 : times.length;
  checkWeight(about, weight, rows);
  if (typeof additive !== "boolean") {
    throw invalid(
      about,
      `additive must be true or false, got ${kindOf(additive)}`,
    );
  }
  const mode = modeOf(about, wrap, rows);
  // A single time is folded here, in 64 bits.
  const isFolded = typeof times === "number" && typeof mode === "number";
  return {
    clip,
    range,
    times: isFolded ? fold(times, clip.duration, mode) : times,
    weight,
    wrap: isFolded ? 0 : mode,
    isAdditive: additive,
  };
}

/** A time folded into a clip's duration. Throws where the time or the mode is wrong. */
export function timeWithin(
  about: string,
  internals: ClipInternals,
  time: number,
  wrap: unknown,
): number {
  refuseDisposed(about, internals);
  checkFloats(about, "times", time);
  const mode = modeOf(about, wrap, 1);
  const only = typeof mode === "number" ? mode : mode[0];
  return fold(time, internals.clip.duration, only);
}

/** Throws unless layers fit each other. */
export function checkLayers(
  about: string,
  sampled: readonly SampledLayer[],
): void {
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
}

function rowsOf({ times }: SampledLayer): number {
  return typeof times === "number" ? 1 : times.length;
}

function refuseDisposed(about: string, { range, label }: ClipInternals): void {
  if (!range.dropped) return;
  throw new FramebatchError(
    "disposed",
    `${about}: ${subject("the clip", label)} is disposed; make it anew`,
  );
}

/** Throws unless given one number, or floats whose memory was not transferred away. */
function checkFloats(about: string, name: string, floats: Times): void {
  if (typeof floats === "number") {
    if (floats === floats) return;
    throw invalid(about, `${name} is NaN; give a number`);
  }
  // By name, because an array of another realm has that realm's class.
  if (tagOf(floats) !== "Float32Array") {
    throw invalid(
      about,
      `${name} must be a number or a Float32Array, ${got("Float32Array", name, floats)}`,
    );
  }
  if (isDetached(floats)) throw invalid(about, detached(name));
}

function checkWeight(about: string, weight: Times, rows: number): void {
  checkFloats(about, "weight", weight);
  if (typeof weight === "number" || weight.length === rows) return;
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
  if (!Array.isArray(wrap)) return wrapOf(about, wrap);
  if (wrap.length === rows) {
    const want = { about, bytes: rows, instead: "give fewer times" };
    const modes = allocate(want, () => new Uint8Array(rows));
    for (let i = 0; i < rows; i += 1) modes[i] = wrapOf(about, wrap[i]);
    return modes;
  }
  throw invalid(
    about,
    `there are ${wrap.length} wrap modes, but ${rows} times; give one for all, or as many`,
  );
}

/** The number of a wrap mode. */
function wrapOf(about: string, mode: unknown): number {
  const at = WRAPS.indexOf(mode as Wrap);
  if (at >= 0) return at;
  const given = typeof mode === "string" ? `'${mode}'` : kindOf(mode);
  throw invalid(
    about,
    `wrap must be 'clamp', 'loop' or 'ping-pong', got ${given}`,
  );
}

function fold(time: number, duration: number, mode: number): number {
  if (mode === 0) return time;
  if (duration === 0) return 0;
  const period = mode === 1 ? duration : 2 * duration;
  const rest = time - period * Math.floor(time / period);
  return rest > duration ? period - rest : rest;
}
