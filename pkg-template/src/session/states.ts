// The calls on states: `gpu.states`.
//
// A state is 16 layers, one byte each: the high nibble is a log-magnitude plus 8
// (0 is null), the low nibble a phase in sixteenths of a turn. What is computed
// from them is the core's; this is its typed face.

import type { Fraction, Points } from "../calls/arguments.js";
import type { CallOptions, GradientsOptions } from "../calls/call-options.js";
import {
  DESCEND,
  DISTANCE,
  GEODESIC_DISTANCE,
  GRADIENTS,
  SEQUENCE_LERP,
  SEQUENCE_SLERP,
  STATES_BEZIER,
  STATES_LERP,
  STATES_SLERP,
} from "../calls/methods.js";
import { invalid, kindOf } from "../checks/errors.js";
import type { Calls } from "./calls.js";
import { startOn } from "./control-points.js";

/** How the phase of a state moves: as a number, or the short way around. */
export type Mode = "lerp" | "slerp";

/** Calls on arrays of states, 16 bytes a state. Reached as `gpu.states`. */
export class States {
  readonly #calls: Calls;

  /** States belong to a session, which makes them. */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * The gradient of every layer's magnitude, by log-magnitude and by phase.
   *
   * `states` holds 16 bytes a state. Resolves to 32 floats a state: for each layer the
   * two derivatives, both 0 for a null layer. Rejects with `invalid-input` where the
   * length is not a multiple of 16.
   *
   * With a `field`, of that instead: a formula of `rho` (-8 to 7), `theta` (0 to 15,
   * sixteenths of a turn) and `layer` (0 to 15), of numbers, `pi`, `+ - * / ^`,
   * parentheses, `abs sqrt exp log sin cos tan tanh` of one and `min max pow` of two. Its
   * derivatives are central differences over 2⁻¹⁰, in 32-bit floats: one-sided at both
   * ends of `rho`, null being -8 like any other, and circular in `theta`. The first call
   * of a field compiles a shader, so a page should have few. A wrong formula rejects with
   * `invalid-input`, and its place.
   *
   * @example
   * const states = new Uint8Array(16).fill(0x80); // magnitude 1, phase 0
   * const gradients = await gpu.states.gradients(states); // [0.1733, 0, 0.1733, 0, …]
   * const field = "rho * cos(pi * theta / 8)";
   * await gpu.states.gradients(states, { field }); // [1, 0, 1, 0, …]
   */
  gradients<Into extends Float32Array = Float32Array<ArrayBuffer>>(
    states: Uint8Array,
    options?: GradientsOptions<Into>,
  ): Promise<Into> {
    return this.#calls.start(GRADIENTS, states, undefined, undefined, options);
  }

  /**
   * Interpolates log-magnitude and phase as numbers, each rounded to the nearest step.
   *
   * `a` and `b` have the same length, 16 bytes a state. `t` is one number for all, or an
   * array with one a state, and is clamped to 0…1. Resolves to as many bytes as `a`
   * has. Rejects with `invalid-input` where these do not fit.
   *
   * @example
   * const low = new Uint8Array(16).fill(0x80);
   * const high = new Uint8Array(16).fill(0xc4);
   * await gpu.states.lerp(low, high, 0.5); // every byte 0xa2
   */
  lerp<Into extends Uint8Array = Uint8Array<ArrayBuffer>>(
    a: Uint8Array,
    b: Uint8Array,
    t: Fraction,
    options?: CallOptions<Into>,
  ): Promise<Into> {
    return this.#calls.start(STATES_LERP, a, b, t, options);
  }

  /**
   * The same as {@link lerp}, but the phase takes the short way around: from 15 to 1
   * through 0.
   *
   * @example
   * const before = new Uint8Array(16).fill(0x8f);
   * const after = new Uint8Array(16).fill(0x81);
   * await gpu.states.slerp(before, after, 0.5); // every byte 0x80
   */
  slerp<Into extends Uint8Array = Uint8Array<ArrayBuffer>>(
    a: Uint8Array,
    b: Uint8Array,
    t: Fraction,
    options?: CallOptions<Into>,
  ): Promise<Into> {
    return this.#calls.start(STATES_SLERP, a, b, t, options);
  }

  /**
   * States on the cubic Bézier curves of four control points.
   *
   * Four arrays of the same length, 16 bytes a state. `t` is one number for all, or an
   * array with one a state, and is clamped to 0…1. De Casteljau's construction without
   * rounding, the phases the short way around at each of its levels, rounded at the end,
   * half to even: every device gives the same bytes. Resolves to as many bytes as `p0`
   * has. Rejects with `invalid-input` where these do not fit.
   *
   * @example
   * const [p0, p1, p2, p3] = [0x8e, 0x9f, 0x91, 0x82].map((layer) => new Uint8Array(16).fill(layer));
   * await gpu.states.bezier([p0, p1, p2, p3], 0.5); // every byte 0x90: through phase 0
   */
  bezier<Into extends Uint8Array = Uint8Array<ArrayBuffer>>(
    points: Points<Uint8Array>,
    t: Fraction,
    options?: CallOptions<Into>,
  ): Promise<Into> {
    return startOn(this.#calls, STATES_BEZIER, points, t, options);
  }

  /**
   * All the states on the way from `a` to `b`, both included.
   *
   * `a` and `b` have the same length, 16 bytes a state; `steps` is 2 to 65,536. Step `k`
   * is what {@link lerp} or {@link slerp}, by `mode`, gives at `t = k / (steps - 1)`.
   * Resolves to `steps` states for each state of `a`: first the whole way of the first
   * one, then that of the second. Rejects with `invalid-input` where these do not fit.
   *
   * @example
   * const low = new Uint8Array(16).fill(0x80);
   * const high = new Uint8Array(16).fill(0x84);
   * await gpu.states.sequence(low, high, 3, "lerp"); // 16 times 0x80, 0x82 and 0x84 each
   */
  sequence<Into extends Uint8Array = Uint8Array<ArrayBuffer>>(
    a: Uint8Array,
    b: Uint8Array,
    steps: number,
    mode: Mode,
    options?: CallOptions<Into>,
  ): Promise<Into> {
    if (mode !== "lerp" && mode !== "slerp") {
      const given = typeof mode === "string" ? `'${mode}'` : kindOf(mode);
      const problem = `mode must be 'lerp' or 'slerp', got ${given}`;
      return Promise.reject(invalid(SEQUENCE_LERP.name, problem));
    }
    const method = mode === "lerp" ? SEQUENCE_LERP : SEQUENCE_SLERP;
    return this.#calls.start(method, a, b, steps, options);
  }

  /**
   * How far each state of `a` is from that of `b`: the distances of their layers as
   * complex numbers, `m · e^(iπθ/8)` with `m = 2^(ρ/4)`, summed.
   *
   * `a` and `b` have the same length, 16 bytes a state. Resolves to one float a pair,
   * within 2⁻¹⁹ of the sum of all their magnitudes, and 0 for equal states. Rejects with
   * `invalid-input` where these do not fit.
   *
   * @example
   * const one = new Uint8Array(16).fill(0x80);
   * const opposite = new Uint8Array(16).fill(0x88);
   * await gpu.states.distance(one, opposite); // [32]: 2 a layer
   */
  distance<Into extends Float32Array = Float32Array<ArrayBuffer>>(
    a: Uint8Array,
    b: Uint8Array,
    options?: CallOptions<Into>,
  ): Promise<Into> {
    return this.#calls.start(DISTANCE, a, b, undefined, options);
  }

  /**
   * The same in steps of log-magnitude and phase: `√(Δρ² + Δθ²)` of each layer, the phase
   * the short way around, summed. Null counts as the log-magnitude below the smallest.
   *
   * Resolves to one float a pair, within 2⁻²⁰ of itself; whole distances are exact.
   *
   * @example
   * const here = new Uint8Array(16).fill(0x80);
   * const there = new Uint8Array(16).fill(0xb4);
   * await gpu.states.geodesicDistance(here, there); // [80]: 3 and 4, so 5 a layer
   */
  geodesicDistance<Into extends Float32Array = Float32Array<ArrayBuffer>>(
    a: Uint8Array,
    b: Uint8Array,
    options?: CallOptions<Into>,
  ): Promise<Into> {
    return this.#calls.start(GEODESIC_DISTANCE, a, b, undefined, options);
  }

  /**
   * One step down the gradient of each layer's magnitude: `ρ - rate · ∂m/∂ρ`, rounded to
   * a state again. Every device gives the same bytes.
   *
   * `states` holds 16 bytes a state; `rate` is one number for all, or an array with one
   * a state, and goes up where it is negative. A null layer stays null, and a layer whose
   * magnitude falls below the smallest becomes null. Resolves to as many bytes as
   * `states` has. Rejects with `invalid-input` where these do not fit.
   *
   * @example
   * const states = new Uint8Array(16).fill(0x83); // slope 0.1733
   * await gpu.states.descend(states, 10); // every byte 0x63
   */
  descend<Into extends Uint8Array = Uint8Array<ArrayBuffer>>(
    states: Uint8Array,
    rate: Fraction,
    options?: CallOptions<Into>,
  ): Promise<Into> {
    return this.#calls.start(DESCEND, states, undefined, rate, options);
  }
}
