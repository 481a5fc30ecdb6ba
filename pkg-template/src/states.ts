// The calls on states: `gpu.states`.
//
// A state is 16 layers, one byte each: the high nibble is a log-magnitude plus 8
// (0 is null), the low nibble a phase in sixteenths of a turn. What is computed
// from them is the core's; this is its typed face.

import type { Calls } from "./calls.js";
import type { Fraction } from "./check.js";
import { GRADIENTS, STATES_LERP, STATES_SLERP } from "./method.js";
import type { CallOptions } from "./call-options.js";

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
   * @example
   * const states = new Uint8Array(16).fill(0x80); // magnitude 1, phase 0
   * const gradients = await gpu.states.gradients(states); // [0.1733, 0, 0.1733, 0, …]
   */
  gradients<Into extends Float32Array = Float32Array<ArrayBuffer>>(
    states: Uint8Array,
    options?: CallOptions<Into>,
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
}
