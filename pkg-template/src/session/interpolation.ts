// The methods of sessions that interpolate arrays.
//
// Each says which method is meant; arguments are checked and calls made in `calls.ts`.

import type { Fraction, Points } from "../calls/arguments.js";
import type {
  AnyOptions,
  CallOptions,
  LerpOptions,
} from "../calls/call-options.js";
import { BEZIER, LERP, type Method, NLERP, SLERP } from "../calls/methods.js";
import type { Operand } from "../memory/arrays.js";

/** What sessions interpolate. */
export abstract class Interpolation {
  /**
   * Interpolates linearly: `(1 - t) * a + t * b`, each float by itself, exact where `t` is
   * 0 or 1 and elsewhere within 4 ulp of its terms.
   *
   * `a` and `b` have the same length. `t` is one number for all, or an array with
   * one number an item, an item being `width` floats (1 unless given). Resolves to
   * as many floats as `a` has. Rejects with `invalid-input` where these do not fit.
   *
   * @example
   * const from = new Float32Array([0, 0, 0, 9, 9, 9]);
   * const to = new Float32Array([2, 4, 6, 9, 9, 9]);
   * const t = new Float32Array([0.5, 1]);
   * await gpu.lerp(from, to, t, { width: 3 }); // [1, 2, 3, 9, 9, 9]
   */
  lerp<Into extends Float32Array = Float32Array<ArrayBuffer>>(
    a: Float32Array,
    b: Float32Array,
    t: Fraction,
    options?: LerpOptions<Into>,
  ): Promise<Into> {
    return this.start(LERP, a, b, t, options);
  }

  /**
   * Interpolates between unit quaternions, xyzw, along the shorter arc.
   *
   * `qa` and `qb` hold four floats a quaternion and have the same length. `t` is one
   * number for all, or an array with one a quaternion. Resolves to as many floats as
   * `qa` has. Rejects with `invalid-input` where these do not fit.
   *
   * @example
   * const still = new Float32Array([0, 0, 0, 1]);
   * const halfTurn = new Float32Array([0, 1, 0, 0]);
   * await gpu.slerp(still, halfTurn, 0.5); // [0, 0.7071, 0, 0.7071]: a quarter turn
   */
  slerp<Into extends Float32Array = Float32Array<ArrayBuffer>>(
    qa: Float32Array,
    qb: Float32Array,
    t: Fraction,
    options?: CallOptions<Into>,
  ): Promise<Into> {
    return this.start(SLERP, qa, qb, t, options);
  }

  /**
   * Normalized linear interpolation of unit quaternions, xyzw, on the chord of the
   * shorter arc: `(1 - t) * qa ± t * qb` divided by its length, the sign such that the
   * dot product of both is not negative. Cheaper than {@link slerp}, and the same way;
   * only how fast it goes differs between the ends.
   *
   * `qa` and `qb` hold four floats a quaternion and have the same length. `t` is one
   * number for all, or an array with one a quaternion. Resolves to as many floats as
   * `qa` has, each quaternion of length 1; for `t` from 0 to 1 each float is within 5e-7
   * of the formula, and `t` outside goes on along the chord's line. The sum of unit
   * quaternions is never zero, those of opposite sign included; where that of others is,
   * as of zeros, the result is `[0, 0, 0, 1]`, no turn. Rejects with `invalid-input`
   * where lengths do not fit or a `t` is NaN.
   *
   * @example
   * const still = new Float32Array([0, 0, 0, 1]);
   * const halfTurn = new Float32Array([0, 1, 0, 0]);
   * await gpu.nlerp(still, halfTurn, 0.5); // [0, 0.7071, 0, 0.7071]: a quarter turn
   */
  nlerp<Into extends Float32Array = Float32Array<ArrayBuffer>>(
    qa: Float32Array,
    qb: Float32Array,
    t: Fraction,
    options?: CallOptions<Into>,
  ): Promise<Into> {
    return this.start(NLERP, qa, qb, t, options);
  }

  /**
   * The points of cubic Bézier curves, each float by itself.
   *
   * Four arrays of control points of the same length; the same array may stand for
   * several. `t` is one number for all, or an array with one number an item, an item
   * being `width` floats (1 unless given). Computed in the Bernstein form: exact where
   * `t` is 0 or 1, and elsewhere within 12 · 2⁻²⁴ of the sum of the weighted points'
   * magnitudes. Resolves to as many floats as `p0` has. Rejects with `invalid-input`
   * where these do not fit.
   *
   * @example
   * const [p0, p1, p2, p3] = [[0, 0], [0, 1], [1, 1], [1, 0]].map((p) => new Float32Array(p));
   * await gpu.bezier([p0, p1, p2, p3], 0.5); // [0.5, 0.75]
   */
  bezier<Into extends Float32Array = Float32Array<ArrayBuffer>>(
    points: Points<Float32Array>,
    t: Fraction,
    options?: LerpOptions<Into>,
  ): Promise<Into> {
    return this.startOn(BEZIER, points, t, options);
  }

  /** Makes a call on two arrays. */
  protected abstract start<Result extends Operand>(
    method: Method,
    a: Operand,
    b: Operand,
    t: Fraction,
    options: AnyOptions | undefined,
  ): Promise<Result>;
  /** Makes a call on control points. */
  protected abstract startOn<Result extends Operand>(
    method: Method,
    points: readonly Operand[],
    t: Fraction,
    options: AnyOptions | undefined,
  ): Promise<Result>;
}
