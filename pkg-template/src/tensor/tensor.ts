// A tensor as people hold it: methods that record, and `read`, which computes.
//
// Nothing crosses into the core before `read`. What is recorded, and what is wrong with an
// operation, is decided in `arithmetic.ts`, `attention.ts`, `reductions.ts` and
// `data-movement.ts`. Tensors of data come from `session-methods.ts`; how data gets to a
// device is told in `resident-tensors.ts`.

/// <reference lib="esnext.disposable" preserve="true" />

import { endedError } from "../calls/call-errors.js";
import type {
  CallOptions,
  ComputeOptions,
  StoreOptions,
} from "../calls/call-options.js";
import { mark } from "../checks/brand.js";
import { invalid, kindOf } from "../checks/errors.js";
import type { TensorBuffer } from "../core/core.js";
import * as arithmetic from "./arithmetic.js";
import { attention, type AttentionOptions } from "./attention.js";
import { NORM, REDUCTION } from "./codes.js";
import type { Root } from "./chain-operands.js";
import * as movement from "./data-movement.js";
import type { Deferred } from "./deferred.js";
import type { SliceRange } from "./data-movement.js";
import { Elementwise } from "./elementwise.js";
import { inputOf } from "./input.js";
import type { DataOf, DTypeOf, Elements, Fresh } from "./kinds.js";
import { constant, type Node } from "./node.js";
import { READ, ReadOperands } from "./read-operands.js";
import * as reductions from "./reductions.js";
import type { NormOptions, ReduceOptions } from "./reductions.js";
import { disposedError } from "./storage.js";
import { compute, computeInto, write } from "./stored-calls.js";
import { COMPUTE } from "./stored-operands.js";
import type { TensorSession } from "./tensor-session.js";

/** The node of a tensor of this session; throws for anything else, look-alikes too. */
export let nodeOf!: (op: string, calls: TensorSession, value: unknown) => Node;

/** Whether a shape was asked for since this was last set: what was recorded may depend on it. */
export const shapes = { areSeen: false };

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
export class Tensor<Kind extends Elements = Float32Array> extends Elementwise {
  readonly #calls: TensorSession;
  readonly #node: Node | undefined;
  /** What the tensor is where it has no node of its own. */
  readonly #deferred: Deferred | undefined;
  #isDisposed = false;

  /** Tensors come from `gpu.tensor`, and from other tensors. */
  constructor(
    calls: TensorSession,
    node: Node | undefined,
    deferred?: Deferred,
  ) {
    super();
    this.#calls = calls;
    this.#node = node;
    this.#deferred = deferred;
  }

  /** The tensor's dimensions, outermost first. */
  get shape(): number[] {
    shapes.areSeen = true;
    return [...this.#root.shape.dims];
  }

  /** What the tensor's elements are: floats, or whole numbers to pick elements with. */
  get dtype(): DTypeOf<Kind> {
    const names = ["float32", "uint32", "int32"] as const;
    return names[this.#root.dtype] as DTypeOf<Kind>;
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
      return this.#calls.take(this.#reading(), options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Computes the tensor, and leaves the result on the device: resolves to a tensor of it, of
   * the same shape, as soon as that was submitted. Nothing is read back. The calls of a frame
   * share a submission as those of {@link read} do, and see what calls before them wrote.
   * Takes the options of every call but `into`, and `keep`. Of a tensor of data it makes a
   * copy.
   *
   * What fails before the submission rejects the promise, and what fails later the next
   * reading of the tensor. The memory is given back by {@link dispose}, or once nobody holds
   * the tensor. After a lost device the tensor is computed again unasked, as long as no
   * operand of it was disposed of, collected or written since, and 32 such calls deep at
   * most. Otherwise, and with `keep: false`, it comes back from its last snapshot where
   * `snapshotEvery` asked for some, or reading it rejects with `device-lost`.
   *
   * @example
   * const x = gpu.tensor([1, 2, 3]);
   * const squares = await x.mul(x).compute(); // stays on the device
   * await squares.sum().read(); // [14]
   * squares.dispose();
   */
  compute(options?: ComputeOptions): Promise<Tensor<Kind>> {
    const calls = this.#calls;
    try {
      return compute(calls, {
        method: COMPUTE,
        roots: [nodeOf("compute", calls, this)],
        options,
        give: (nodes) => this.#give<Kind>(nodes[0]),
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Computes the tensor, and stores the result in a tensor that is there: one of
   * `gpu.tensor` or of {@link compute}, of the same shape and kind, kept as `f32`. The target
   * may be among the operands, as in a step of a simulation. Calls take effect in the order
   * in which they were made: a reading behind this call finds the new values, without an
   * `await` in between. Resolves to nothing when it was submitted, because the target is at
   * hand. Takes the options of every call but `into`.
   *
   * From then on only the device has the target's values. After a lost device they are gone:
   * `restored` names the target, and reading it rejects with `device-lost` until all of it is
   * written again; a target made with `snapshotEvery` holds its last snapshot. Rejects with
   * `invalid-input` for any other target.
   *
   * @example
   * const state = gpu.tensor([1, 2, 3]);
   * for (let step = 0; step < 10; step += 1) state.scale(2).computeInto(state);
   * await state.read(); // [1024, 2048, 3072]
   */
  computeInto(target: Tensor<Kind>, options?: StoreOptions): Promise<void> {
    const calls = this.#calls;
    try {
      const root = nodeOf("computeInto", calls, this);
      const into = nodeOf("computeInto", calls, target);
      return computeInto(calls, root, into, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Stores data in the tensor, from element `offset` on, row-major; what lies beside it
   * stays. The tensor is one that {@link computeInto} could write, and the order among other
   * calls is as there. Data is taken as by `gpu.tensor`, and may be changed as soon as this
   * returns. Resolves to nothing when it was submitted. Rejects with `invalid-input` where
   * data is of another kind, or does not fit.
   *
   * @example
   * const state = gpu.tensor(new Float32Array(4));
   * state.write([7, 8], 2);
   * await state.read(); // [0, 0, 7, 8]
   */
  write(data: DataOf<Kind>, offset = 0, options?: StoreOptions): Promise<void> {
    const calls = this.#calls;
    try {
      const target = nodeOf("write", calls, this);
      return write(calls, target, { data, offset }, options);
    } catch (error) {
      return Promise.reject(error);
    }
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
   * values, `[.., n, heads · size]`, or of fewer heads, a number that divides `heads`:
   * neighboring heads of queries share one. Each head is softmax(q kᵀ · scale) v of its own `size`
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
    indexes:
      Tensor<Uint32Array> | Tensor<Int32Array> | Uint32Array | Int32Array,
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
   * Where the tensor lies on `gpu.device`, in bytes, for the page's own renderer. The
   * buffer changes after `restored`; tensors of less than 64 KiB share one, unless made with
   * `ownBuffer`. Undefined on the CPU, and for a tensor that no buffer of the device holds. Only
   * for tensors of `gpu.tensor` and `compute`, once the session is open.
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
    if (storage === undefined) {
      throw invalid(
        "gpuBuffer",
        "a recorded tensor lies in no buffer; await its compute(), and ask that tensor",
      );
    }
    if (storage.words === 0) {
      throw invalid("gpuBuffer", "a tensor without elements lies in no buffer");
    }
    if (storage.failure !== undefined) throw storage.failure;
    residents.makeResident(this.#node!);
    return residents.locate(storage);
  }

  /**
   * Gives the tensor's memory back as soon as no pending call needs it. Using it after
   * that throws `disposed`, and reading what was recorded from its data rejects. A
   * recorded tensor has no memory, and what was recorded from it goes on.
   *
   * @example
   * {
   *   using weights = gpu.tensor(new Float32Array([1, 2]));
   *   await weights.exp().read();
   * } // disposed here
   */
  dispose(): void {
    this.#isDisposed = true;
    const storage = this.#node?.storage;
    if (storage !== undefined) this.#calls.residents.drop(storage);
  }

  /** Lets `using` dispose of the tensor. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  static {
    mark(this.prototype, "a tensor");
    nodeOf = (op, calls, value) => {
      if (typeof value !== "object" || value === null || !(#node in value)) {
        throw invalid(op, `an operand must be a tensor, got ${kindOf(value)}`);
      }
      if (value.#calls !== calls) {
        throw invalid(
          op,
          "an operand is a tensor of another session; make both with one session",
        );
      }
      return value.#own(op);
    };
  }

  protected override unary(fn: number): Tensor {
    return this.#give(
      arithmetic.unary(fn, this.#own(arithmetic.UNARY_NAMES[fn])),
    );
  }

  protected override binary(
    fn: number,
    op: string,
    other: Tensor | number,
  ): Tensor {
    const x = this.#own(op);
    const operand = operandOf(op, this.#calls, other);
    return this.#give(arithmetic.binary(fn, x, operand));
  }

  protected override bounded(
    low: Tensor | number,
    high: Tensor | number,
  ): Tensor {
    const x = this.#own("clamp");
    const bounds = [low, high].map((bound) =>
      operandOf("clamp", this.#calls, bound),
    );
    return this.#give(arithmetic.clamp(x, bounds[0], bounds[1]));
  }

  #own(op: string): Node {
    if (this.#isDisposed) throw disposedError(op, this.#node?.storage?.label);
    return this.#node ?? this.#deferred!.node(op);
  }

  get #root(): Root {
    return this.#node ?? this.#deferred!.root;
  }

  #reading(): ReadOperands {
    if (this.#node === undefined && !this.#isDisposed) {
      return this.#deferred!.reading();
    }
    return new ReadOperands(this.#calls.chains, READ, [this.#own("read")]);
  }

  #give<Given extends Elements = Float32Array>(node: Node): Tensor<Given> {
    return new Tensor(this.#calls, node);
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
