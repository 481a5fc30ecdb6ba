// The entry `framebatch/kernels`: importing it gives every session kernels of one's own, runs of
// many items, and profiles that compare the sizes of batches.
//
// An entry of its own, so that pages that run nothing of the kind do not load it.

import type { Profile, ProfileOptions } from "../metrics/profile.js";
import { callsOf, Session } from "../session/session.js";
import type {
  AnyDefinition,
  Inputs,
  KernelDefinition,
  None,
  Output,
  Params,
} from "./definition.js";
import type { Kernel } from "./kernel.js";
import { defineKernel } from "./kernels.js";
import {
  type Verification,
  verify,
  type VerifyCase,
  type VerifyOptions,
} from "./verify.js";
import {
  type ItemFunction,
  runAll,
  type RunAllOptions,
  type RunAllOutcome,
} from "./run-all.js";
import { profileSizes, type SizesProfile } from "./profile-sizes.js";
import {
  type FnOptions,
  type Traceable,
  type TracedFunction,
  tracedFunction,
} from "./traced-function.js";
import type { Elements } from "../tensor/kinds.js";
import type { Tensor } from "../tensor/tensor.js";

export type {
  CpuResult,
  CpuValue,
  ElementsOf,
  Inputs,
  KernelDefinition,
  KernelInput,
  LookedAt,
  None,
  NumberType,
  Output,
  Params,
  ValueType,
} from "./definition.js";
export type { Given, Kernel, ParamOf, ValuesOf } from "./kernel.js";
export type {
  Verification,
  VerifiedElement,
  VerifyCase,
  VerifyOptions,
} from "./verify.js";
export type {
  ItemContext,
  ItemFunction,
  Outcome,
  RunAllOptions,
  RunAllOutcome,
} from "./run-all.js";
export type { SizedProfile, SizesProfile } from "./profile-sizes.js";
export type {
  ArgumentFor,
  FnOptions,
  Traceable,
  TracedFunction,
} from "./traced-function.js";

declare module "../session/session.js" {
  interface Session {
    /**
     * Makes an operation of a function in WGSL: `element` of values, or `at` of a place, which
     * looks at any place of its inputs. Calls of it are recorded like any operation of tensors,
     * merge with the calls of everybody else, and go again after a lost device; those of
     * `element` fuse with what is computed element by element around them. Equal definitions are one kernel, compiled once. Throws
     * `invalid-input` with the line and column of the code where that is wrong. With
     * `import "framebatch/kernels"`.
     *
     * @example
     * const decay = gpu.kernel({
     *   name: "decay",
     *   inputs: { height: "f32", speed: "f32" },
     *   params: { dt: "f32" },
     *   output: "f32",
     *   code: "fn element(height: f32, speed: f32) -> f32 { return height * exp(-speed * params.dt); }",
     *   cpu: ({ height, speed }, { dt }) => height * Math.exp(-speed * dt),
     * });
     * await decay({ height: [1, 2], speed: 0.5 }, { dt: 0 }).read(); // [1, 2]
     */
    kernel<
      const Of extends Inputs,
      const With extends Params = Record<never, never>,
      const Gives extends Output = "f32",
      const Shares extends Inputs = None,
    >(
      definition: KernelDefinition<Of, With, Gives, Shares>,
    ): Kernel<Of, With, Gives, Shares>;

    /**
     * Makes a chain of operations a function: `fn` is called with tensors without values, once
     * for each set of kinds and numbers of dimensions of its arguments, and what it records is
     * what every call computes. A call takes tensors, data and numbers, and gives what `fn`
     * returned: a tensor, or several in a list or an object. It costs the main thread as much
     * as a `lerp`, however long the chain is, where its result is read. A number is a tensor
     * inside of `fn`; other numbers and tensors that `fn` uses are those of its first call.
     * Where `fn` slices, reshapes, attends or asks for a shape, it is called again for each new
     * set of sizes. Throws what `fn` throws, and `invalid-input` where shapes do not fit. With
     * `import "framebatch/kernels"`.
     *
     * @example
     * const step = gpu.fn((x, y, t) => x.relu().mul(t).add(y));
     * await step([1, -2], [3, 4], 2).read(); // [5, 4]
     */
    fn<Parameters extends Tensor<Elements>[], Result extends Traceable>(
      fn: (...parameters: Parameters) => Result,
      options?: FnOptions,
    ): TracedFunction<Parameters, Result>;

    /**
     * Computes cases of a kernel by the session, and by the kernel's function for the CPU in
     * the page: whether both agree, and the element that is off by most. For tests of the code.
     * Rejects with `invalid-input` for a kernel without such a function, and with what befalls
     * the calls. With `import "framebatch/kernels"`.
     *
     * @example
     * const values = { height: [1, 2, 3], speed: 0.5 };
     * const { ok, worst } = await gpu.verify(decay, [{ values, params: { dt: 0.1 } }]);
     */
    verify<
      Of extends Inputs,
      With extends Params,
      Gives extends Output,
      Shares extends Inputs,
    >(
      kernel: Kernel<Of, With, Gives, Shares>,
      cases: readonly VerifyCase<Of & Shares, With>[],
      options?: VerifyOptions,
    ): Promise<Verification>;

    /**
     * Runs `fn` for each item, and says what became of each: a result, an error, or that
     * the item was skipped. `fn` makes the call, or the calls, of one item, or computes
     * something else; what it throws is that item's error. Items that begin together are
     * sent together.
     *
     * The run stops with `signal`, and at the first error with `stopOnFirstError`: no item
     * begins any more, the signals of those that have begun abort, and the run ends when
     * these have settled. An item that rejects with the reason of its signal is skipped.
     * Rejects with `invalid-input` for wrong arguments, and for nothing else. With
     * `import "framebatch/kernels"`.
     *
     * @example
     * const turns = [0.25, 0.5, 0.75].map((t) => ({ t, to: new Float32Array([1, 0, 0, 0]) }));
     * const from = new Float32Array([0, 0, 0, 1]);
     * const { succeeded, results } = await gpu.runAll(turns, ({ t, to }) => gpu.slerp(from, to, t));
     */
    runAll<Item, Result>(
      items: Iterable<Item>,
      fn: ItemFunction<Item, Result>,
      options?: RunAllOptions<Item, Awaited<Result>>,
    ): Promise<RunAllOutcome<Awaited<Result>>>;

    /**
     * Profiles `fn` at each size of batches, whole numbers from 1, one after the other, as
     * `profile` does, and says which of them is best. `fn` is given the size, and makes that
     * many calls, or calls of that many items. Rejects with what `fn` throws, and with
     * `invalid-input` for wrong sizes. With `import "framebatch/kernels"`.
     *
     * @example
     * const { best, table } = await gpu.profileSizes(
     *   (size) => Promise.all(texts.slice(0, size).map((text) => embedder.embed(text))),
     *   [1, 8, 64, 512],
     * );
     * console.log(table);
     */
    profileSizes(
      fn: (size: number) => unknown,
      sizes: readonly number[],
      options?: ProfileOptions,
    ): Promise<SizesProfile>;
  }
}

Object.assign(Session.prototype, {
  kernel(
    this: Session,
    definition: AnyDefinition,
  ): Kernel<Inputs, Params, Output> {
    return defineKernel(callsOf(this), definition);
  },

  fn(
    this: Session,
    fn: unknown,
    options?: FnOptions,
  ): (...given: unknown[]) => Traceable {
    return tracedFunction(callsOf(this), fn, options);
  },

  verify<
    Of extends Inputs,
    With extends Params,
    Gives extends Output,
    Shares extends Inputs,
  >(
    this: Session,
    kernel: Kernel<Of, With, Gives, Shares>,
    cases: readonly VerifyCase<Of & Shares, With>[],
    options?: VerifyOptions,
  ): Promise<Verification> {
    return verify(callsOf(this), kernel, cases, options);
  },

  runAll<Item, Result>(
    this: Session,
    items: Iterable<Item>,
    fn: ItemFunction<Item, Result>,
    options?: RunAllOptions<Item, Awaited<Result>>,
  ): Promise<RunAllOutcome<Awaited<Result>>> {
    return runAll(this, items, fn, options);
  },

  profileSizes(
    this: Session,
    fn: (size: number) => unknown,
    sizes: readonly number[],
    options?: ProfileOptions,
  ): Promise<SizesProfile> {
    const profile = (run: () => unknown): Promise<Profile> =>
      this.profile(run, options);
    return profileSizes(profile, fn, sizes);
  },
});
