// A tensor as people hold it: methods that record, and `read`, which computes.
//
// Nothing crosses into the core before `read`. What is recorded, and what is wrong with an
// operation, is decided in `arithmetic.ts`, `attention.ts`, `reductions.ts` and
// `data-movement.ts`. Tensors of data come from `session-methods.ts`; how data gets to a
// device is told in `resident-tensors.ts`.

/// <reference lib="esnext.disposable" preserve="true" />

import { endedError } from "../calls/call-errors.js";
import type { CallOptions } from "../calls/call-options.js";
import { invalid, kindOf } from "../checks/errors.js";
import type { TensorBuffer } from "../core/core.js";
import * as arithmetic from "./arithmetic.js";
import { attention, type AttentionOptions } from "./attention.js";
import { ChainOperands, READ } from "./chain-operands.js";
import { BINARY, FLOATS, NORM, REDUCTION, UNARY } from "./codes.js";
import * as movement from "./data-movement.js";
import type { SliceRange } from "./data-movement.js";
import { inputOf } from "./input.js";
import type { DTypeOf, Elements, Fresh } from "./kinds.js";
import { constant, type Node } from "./node.js";
import * as reductions from "./reductions.js";
import type { NormOptions, ReduceOptions } from "./reductions.js";
import { disposedError } from "./storage.js";
import type { TensorSession } from "./tensor-session.js";

/** The node of a tensor of this session; throws for anything else, look-alikes too. */
export let nodeOf!: (op: string, calls: TensorSession, value: unknown) => Node;

/**
 * Numbers in a shape, or what is to be computed from others. Methods record and give a
 * new tensor at once; {@link read} computes all of it in one call of the frame's batch.
 * They throw a `FramebatchError` where shapes do not fit. Operands broadcast as NumPy's
 * do. An operand may be a number: another number is no new work for the device.
 *
 * @example
 * const rows = gpu.tensor(new Float32Array([1, -2, 3, -4]), [2, 2]);
 * await rows.relu().scale(2).add(1).read(); // [3, 1, 7, 1]
 */
export class Tensor<Kind extends Elements = Float32Array> {
  readonly #calls: TensorSession;
  readonly #node: Node;
  #isDisposed = false;

  /** Tensors come from `gpu.tensor`, and from other tensors. */
  constructor(calls: TensorSession, node: Node) {
    this.#calls = calls;
    this.#node = node;
  }

  /** The tensor's dimensions, outermost first. */
  get shape(): number[] {
    return [...this.#node.shape.dims];
  }

  /** What the tensor's elements are: floats, or whole numbers to pick elements with. */
  get dtype(): DTypeOf<Kind> {
    const isFloats = this.#node.dtype === FLOATS;
    return (isFloats ? "float32" : "uint32") as DTypeOf<Kind>;
  }

  /**
   * Computes the tensor, with the other calls of the frame. Takes the options of every
   * call. Resolves to its elements in row-major order: floats, or indexes of `argmax`.
   *
   * @example
   * const into = new Float32Array(4);
   * await tensor.exp().read({ into });
   */
  read<Into extends Kind = Fresh<Kind> & Kind>(
    options?: CallOptions<Into>,
  ): Promise<Into> {
    try {
      const calls = this.#calls;
      const roots = [nodeOf("read", calls, this)];
      return calls.take(new ChainOperands(calls.chains, READ, roots), options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** 0 where an element is negative. */
  relu(): Tensor {
    return this.#unary(UNARY.relu);
  }
  /** 1 / (1 + e⁻ˣ). */
  sigmoid(): Tensor {
    return this.#unary(UNARY.sigmoid);
  }
  /** Hyperbolic tangent. */
  tanh(): Tensor {
    return this.#unary(UNARY.tanh);
  }
  /** x · sigmoid(x). */
  silu(): Tensor {
    return this.#unary(UNARY.silu);
  }
  /** The same as {@link silu}, by its other name. */
  swish(): Tensor {
    return this.#unary(UNARY.silu);
  }
  /** x · Φ(x), by the error function, or by its usual approximation with tanh. */
  gelu(options?: { approximate?: "tanh" }): Tensor {
    return this.#unary(arithmetic.geluOf(options));
  }
  /** eˣ. */
  exp(): Tensor {
    return this.#unary(UNARY.exp);
  }
  /** Natural logarithm. */
  log(): Tensor {
    return this.#unary(UNARY.log);
  }
  /** Square root. */
  sqrt(): Tensor {
    return this.#unary(UNARY.sqrt);
  }
  /** Absolute value. */
  abs(): Tensor {
    return this.#unary(UNARY.abs);
  }
  /** −x. */
  neg(): Tensor {
    return this.#unary(UNARY.neg);
  }
  /** Sine of radians, for every finite number. */
  sin(): Tensor {
    return this.#unary(UNARY.sin);
  }
  /** Cosine of radians, for every finite number. */
  cos(): Tensor {
    return this.#unary(UNARY.cos);
  }
  /** The largest whole number that is not above. */
  floor(): Tensor {
    return this.#unary(UNARY.floor);
  }
  /** The smallest whole number that is not below. */
  ceil(): Tensor {
    return this.#unary(UNARY.ceil);
  }
  /** The nearest whole number, and of two that are as near the even one: 0.5 gives 0, 1.5 gives 2. */
  round(): Tensor {
    return this.#unary(UNARY.round);
  }
  /** −1, 0 or 1; NaN of NaN. */
  sign(): Tensor {
    return this.#unary(UNARY.sign);
  }

  /** The sum of both. */
  add(other: Tensor | number): Tensor {
    return this.#binary(BINARY.add, "add", other);
  }
  /** The difference, element by element: this tensor less the other. */
  sub(other: Tensor | number): Tensor {
    return this.#binary(BINARY.sub, "sub", other);
  }
  /** The product, element by element. */
  mul(other: Tensor | number): Tensor {
    return this.#binary(BINARY.mul, "mul", other);
  }
  /**
   * The quotient, element by element: this tensor by the other. Division by zero gives infinities and NaN where
   * the device has them: WGSL does not promise it.
   */
  div(other: Tensor | number): Tensor {
    return this.#binary(BINARY.div, "div", other);
  }
  /** The smaller element; NaN where either is. */
  minimum(other: Tensor | number): Tensor {
    return this.#binary(BINARY.minimum, "minimum", other);
  }
  /** The larger element; NaN where either is. */
  maximum(other: Tensor | number): Tensor {
    return this.#binary(BINARY.maximum, "maximum", other);
  }
  /** The power, element by element: this tensor to the power of the other. */
  pow(other: Tensor | number): Tensor {
    return this.#binary(BINARY.pow, "pow", other);
  }
  /**
   * What is left of this tensor after whole multiples of the other, with the sign of the
   * other, as in NumPy and TensorFlow.js: −1 by 3 gives 2. NaN by 0. The remainder of
   * floats is exact, however large the quotient.
   */
  mod(other: Tensor | number): Tensor {
    return this.#binary(BINARY.mod, "mod", other);
  }
  /** The angle of points in radians, from −π to π: this is y, and `x` the other coordinate. */
  atan2(x: Tensor | number): Tensor {
    return this.#binary(BINARY.atan2, "atan2", x);
  }
  /** 1 where this is less than the other, else 0. Comparisons with NaN are 0. */
  less(other: Tensor | number): Tensor {
    return this.#binary(BINARY.less, "less", other);
  }
  /** 1 where this is less than the other or equal, else 0. */
  lessEqual(other: Tensor | number): Tensor {
    return this.#binary(BINARY.lessEqual, "lessEqual", other);
  }
  /** 1 where this is greater than the other, else 0. */
  greater(other: Tensor | number): Tensor {
    return this.#binary(BINARY.greater, "greater", other);
  }
  /** 1 where this is greater than the other or equal, else 0. */
  greaterEqual(other: Tensor | number): Tensor {
    return this.#binary(BINARY.greaterEqual, "greaterEqual", other);
  }
  /** 1 where both are equal, else 0. */
  equal(other: Tensor | number): Tensor {
    return this.#binary(BINARY.equal, "equal", other);
  }
  /** 0 where both are equal, else 1: NaN differs from all. */
  notEqual(other: Tensor | number): Tensor {
    return this.#binary(BINARY.notEqual, "notEqual", other);
  }
  /** Every element times a number. */
  scale(factor: number): Tensor {
    if (typeof factor !== "number") {
      throw invalid("scale", `factor must be a number, got ${kindOf(factor)}`);
    }
    return this.#binary(BINARY.mul, "scale", factor);
  }
  /** Each element, or the bound that it is outside of: minimum(maximum(x, low), high). */
  clamp(low: Tensor | number, high: Tensor | number): Tensor {
    const x = this.#own("clamp");
    const bounds = [low, high].map((bound) =>
      operandOf("clamp", this.#calls, bound),
    );
    return this.#give(arithmetic.clamp(x, bounds[0], bounds[1]));
  }

  /** The sum of products along the last axis, which is gone from the result. */
  dot(other: Tensor): Tensor {
    const x = this.#own("dot");
    return this.#give(arithmetic.dot(x, nodeOf("dot", this.#calls, other)));
  }

  /**
   * The product of matrices: rows of this by columns of the other, in the last
   * two axes of each; axes in front broadcast. `[.., m, k]` and `[.., k, n]` give
   * `[.., m, n]`. Each element is summed from the first product to the last, off
   * by at most k·2⁻²⁴ of the sum of absolute values. What follows element by
   * element (a bias, an activation, a residual) is computed in the same pass.
   *
   * A vector is one row on the left and one column on the right, and the result has no
   * axis for that, as in NumPy: `[k]` and `[.., k, n]` give `[.., n]`, `[.., m, k]` and
   * `[k]` give `[.., m]`, two vectors one number. What follows a product with a vector is
   * a pass of its own.
   *
   * @throws {FramebatchError} `invalid-input` for numbers, shapes of 8 dimensions, and
   * those that do not agree in `k`.
   */
  matmul(other: Tensor): Tensor {
    const x = this.#own("matmul");
    return this.#give(
      arithmetic.matmul(x, nodeOf("matmul", this.#calls, other)),
    );
  }

  /**
   * Attention: this holds queries, `[.., m, heads · size]`, and looks at rows of keys and
   * values, `[.., n, heads · size]`. Each head is softmax(q kᵀ · scale) v of its own `size`
   * floats of every row; axes in front broadcast, and the result is shaped like the
   * queries. Scores are never in memory, and texts of any lengths are computed in the same
   * passes without padding. Parts of one tensor are read where they lie.
   *
   * @example
   * const [q, k, v] = [0, 4, 8].map((at) => gpu.tensor(new Float32Array(36), [3, 12]).slice([], [at, at + 4]));
   * await q.attention(k, v, { heads: 2 }).read(); // 3 rows of 4
   */
  attention(k: Tensor, v: Tensor, options: AttentionOptions): Tensor {
    const [keys, values] = [k, v].map((other) =>
      nodeOf("attention", this.#calls, other),
    );
    return this.#give(attention(this.#own("attention"), keys, values, options));
  }

  /**
   * The sum over axes, which are gone from the result unless kept. All reductions take
   * an axis, several, or an object; without any they go over all axes.
   *
   * @example
   * const table = gpu.tensor([[1, 2], [3, 4]]);
   * await table.sum().read(); // [10]
   * await table.sum(0).read(); // [4, 6]
   * await table.sum({ axis: 1, keepDims: true }).read(); // [3, 7], of shape [2, 1]
   */
  sum(axis?: ReduceOptions["axis"] | ReduceOptions): Tensor {
    return this.#reduce(REDUCTION.sum, axis);
  }
  /** The mean over axes; see {@link sum}. */
  mean(axis?: ReduceOptions["axis"] | ReduceOptions): Tensor {
    return this.#reduce(REDUCTION.mean, axis);
  }
  /** The largest over axes, NaN if any is; see {@link sum}. */
  max(axis?: ReduceOptions["axis"] | ReduceOptions): Tensor {
    return this.#reduce(REDUCTION.max, axis);
  }
  /** The smallest over axes, NaN if any is; see {@link sum}. */
  min(axis?: ReduceOptions["axis"] | ReduceOptions): Tensor {
    return this.#reduce(REDUCTION.min, axis);
  }
  /**
   * The place of the first of the largest, or of the first NaN, along an axis; over
   * several, the place in their row-major order. See {@link sum}.
   */
  argmax(axis?: ReduceOptions["axis"] | ReduceOptions): Tensor<Uint32Array> {
    return this.#reduce<Uint32Array>(REDUCTION.argmax, axis);
  }

  /** eˣ over the sum of all eˣ along an axis. Default: the last. */
  softmax(axis?: number | { axis?: number }): Tensor {
    return this.#norm(NORM.softmax, axis);
  }
  /** (x − mean) / √(variance + epsilon) along an axis. Default: the last, and 1e-5. */
  layerNorm(options?: NormOptions): Tensor {
    return this.#norm(NORM.layerNorm, options);
  }
  /** x / √(mean of squares + epsilon) along an axis. Default: the last, and 1e-6. */
  rmsNorm(options?: NormOptions): Tensor {
    return this.#norm(NORM.rmsNorm, options);
  }
  /** x / maximum(length, epsilon) along an axis. Default: the last, and 1e-12. */
  normalize(options?: NormOptions): Tensor {
    return this.#norm(NORM.normalize, options);
  }

  /** The axes in another order: axis `i` of the result is `order[i]`. Default: reversed. */
  transpose(order?: readonly number[]): Tensor<Kind> {
    return this.#give(movement.transpose(this.#own("transpose"), order));
  }
  /**
   * A part of each axis: `[start, end, step]`, by Python's rules. An axis whose range is
   * empty or left out stays whole.
   *
   * @example
   * const table = gpu.tensor([[1, 2, 3], [4, 5, 6]]);
   * await table.slice([1], [-1, undefined, -2]).read(); // [6, 4]
   */
  slice(...ranges: (SliceRange | undefined)[]): Tensor<Kind> {
    return this.#give(movement.slice(this.#own("slice"), ranges));
  }
  /** The same elements in another shape; one dimension may be -1, for what is left. */
  reshape(shape: readonly number[]): Tensor<Kind> {
    return this.#give(movement.reshape(this.#own("reshape"), shape));
  }
  /**
   * The elements along an axis at the places that `indexes` holds, whose dimensions
   * stand where the axis stood. A place outside throws where it is known now; where it
   * is computed, it gives NaN. Default axis: 0.
   *
   * @example
   * const rows = gpu.tensor([[1, 2], [3, 4], [5, 6]]);
   * await rows.gather(new Uint32Array([2, 0])).read(); // [5, 6, 1, 2]
   */
  gather(
    indexes: Tensor<Uint32Array> | Uint32Array | Int32Array,
    axis = 0,
  ): Tensor<Kind> {
    const x = this.#own("gather");
    const places = ArrayBuffer.isView(indexes)
      ? inputOf(this.#calls, "gather", indexes)
      : nodeOf("gather", this.#calls, indexes);
    return this.#give(movement.gather(x, places, axis));
  }
  /** This tensor and others, laid end to end along an axis. Default axis: 0. */
  concat(
    others: Tensor<Kind> | readonly Tensor<Kind>[],
    axis = 0,
  ): Tensor<Kind> {
    const x = this.#own("concat");
    const rest = Array.isArray(others) ? others : [others];
    const parts = rest.map((other) => nodeOf("concat", this.#calls, other));
    return this.#give(movement.concat([x, ...parts], axis));
  }

  /**
   * Where the tensor lies on `gpu.device`, in bytes, for the page's own renderer; it
   * changes after `restored`. Undefined on the CPU, and for a tensor that no buffer of the
   * device holds. Only for tensors of `gpu.tensor`, once the session is open.
   */
  gpuBuffer(): TensorBuffer | undefined {
    const { storage } = this.#own("gpuBuffer");
    const { core, ended, residents } = this.#calls;
    if (ended !== undefined) throw endedError("gpuBuffer", ended);
    if (core === undefined) {
      throw invalid(
        "gpuBuffer",
        "the session is still opening; await gpu.ready first",
      );
    }
    if (storage === undefined || storage.words === 0) {
      throw invalid(
        "gpuBuffer",
        "only data lies in a buffer of its own; read what is computed, and give it to gpu.tensor",
      );
    }
    if (storage.failure !== undefined) throw storage.failure;
    residents.makeResident(this.#node);
    return residents.locate(storage);
  }

  /**
   * Gives the tensor's memory back as soon as no pending call needs it. Using it after
   * that throws `disposed`, and reading what was recorded from its data rejects. A
   * computed tensor has no memory, and what was recorded from it goes on.
   *
   * @example
   * {
   *   using weights = gpu.tensor(new Float32Array([1, 2]));
   *   await weights.exp().read();
   * } // disposed here
   */
  dispose(): void {
    this.#isDisposed = true;
    const { storage } = this.#node;
    if (storage !== undefined) this.#calls.residents.drop(storage);
  }

  /** Lets `using` dispose of the tensor. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  static {
    nodeOf = (op, calls, value) => {
      if (typeof value !== "object" || value === null || !(#node in value)) {
        throw invalid(op, `an operand must be a tensor, got ${kindOf(value)}`);
      }
      if (value.#calls !== calls) {
        throw invalid(
          op,
          "an operand is a tensor of another session; make it with the same one",
        );
      }
      return value.#own(op);
    };
  }

  #own(op: string): Node {
    if (this.#isDisposed) throw disposedError(op, this.#node.storage?.label);
    return this.#node;
  }

  #give<Given extends Elements = Float32Array>(node: Node): Tensor<Given> {
    return new Tensor(this.#calls, node);
  }

  #unary(fn: number): Tensor {
    return this.#give(
      arithmetic.unary(fn, this.#own(arithmetic.UNARY_NAMES[fn])),
    );
  }

  #binary(fn: number, op: string, other: Tensor | number): Tensor {
    const x = this.#own(op);
    const operand = operandOf(op, this.#calls, other);
    return this.#give(arithmetic.binary(fn, x, operand));
  }

  #reduce<Given extends Elements = Float32Array>(
    reduction: number,
    axis: ReduceOptions["axis"] | ReduceOptions,
  ): Tensor<Given> {
    const x = this.#own(reductions.REDUCTION_NAMES[reduction]);
    return this.#give(reductions.reduce(reduction, x, axis));
  }

  #norm(kind: number, options: NormOptions | undefined): Tensor {
    const x = this.#own(reductions.NORM_NAMES[kind]);
    return this.#give(reductions.norm(kind, x, options));
  }
}

/** The node of a tensor of this session, or of a number; throws for anything else. */
export function operandOf(
  op: string,
  calls: TensorSession,
  value: Tensor | number,
): Node {
  return typeof value === "number" ? constant(value) : nodeOf(op, calls, value);
}
