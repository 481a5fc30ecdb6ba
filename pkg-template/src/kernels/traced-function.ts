// `gpu.fn`: a function of tensors that is called once for each kind of its arguments, and whose
// calls record nothing from then on.
//
// What was recorded is a `Trace`; what a call gives is an `Application`. A kernel is called by
// the same way: its trace is one node.

import { FramebatchError, invalid, kindOf } from "../checks/errors.js";
import { checkOptions } from "../checks/options.js";
import { LruMap } from "../core/lru.js";
import { CODE } from "../tensor/codes.js";
import type { Deferred } from "../tensor/deferred.js";
import type { DataOf, Elements } from "../tensor/kinds.js";
import type { Node } from "../tensor/node.js";
import { nodeOf, shapes, Tensor } from "../tensor/tensor.js";
import type { TensorSession } from "../tensor/tensor-session.js";
import { Application } from "./application.js";
import { type Argument, argumentOf } from "./arguments.js";
import {
  dependOnSizes,
  type Kind,
  parameterLike,
  Trace,
  tracingError,
} from "./trace.js";

/** What a traced function may return: a tensor, or several in a list or under names. */
export type Traceable =
  | Tensor<Elements>
  | readonly Tensor<Elements>[]
  | { readonly [name: string]: Tensor<Elements> };

/** What a traced function is given for a parameter. */
export type ArgumentFor<Parameter> =
  Parameter extends Tensor<infer Kind>
    ? Float32Array extends Kind
      ? Tensor<Kind> | DataOf<Kind> | number
      : Tensor<Kind> | DataOf<Kind>
    : never;

/** A function of tensors that takes data and numbers too, and records nothing anew. */
export type TracedFunction<
  Parameters extends readonly Tensor<Elements>[],
  Result extends Traceable,
> = (
  ...given: { [At in keyof Parameters]: ArgumentFor<Parameters[At]> }
) => Result;

/** What `gpu.fn` takes last. All of it is optional. */
export interface FnOptions {
  /** What errors call the function. Default: its own name, or `fn`. */
  name?: string;
}

const NAMES: Record<keyof FnOptions, true> = { name: true };

/** What a function gave: its results, and where these go. */
interface Recording {
  readonly roots: readonly Node[];
  readonly names: Trace["names"];
}

/** Something that is recorded for parameters: a function of the caller's, or a kernel. */
export interface Traced {
  readonly name: string;
  /** Records for parameters of these kinds, which have no values. */
  record(parameters: readonly Node[]): Recording;
}

/** The traces of one function. */
export class Traces {
  private last: Trace | undefined;
  private readonly all = new LruMap<string, Trace>(() => {});
  /** Traces that do not depend on sizes, by kinds and ranks. */
  private readonly unsized = new LruMap<string, Trace>(() => {});

  constructor(
    private readonly calls: TensorSession,
    private readonly traced: Traced,
  ) {}

  /** What the function gives for arguments. */
  apply(given: readonly Argument[]): Traceable {
    const { calls, last } = this;
    const trace =
      last !== undefined && last.suits(given) ? last : this.find(given);
    const { names } = trace;
    const give = (at: number): Tensor =>
      new Tensor(calls, undefined, new Application(calls, trace, given, at));
    if (names === undefined) return give(0);
    const tensors = trace.results.map((_, at) => give(at));
    if (names === "list") return tensors;
    return Object.fromEntries(names.map((name, at) => [name, tensors[at]]));
  }

  private find(given: readonly Argument[]): Trace {
    const key = given.map(keyOf).join(" ");
    let trace = this.all.get(key);
    if (trace === undefined) {
      trace = this.make(given);
      this.all.add(key, trace);
    }
    this.last = trace;
    return trace;
  }

  private make(given: readonly Argument[]): Trace {
    const { name } = this.traced;
    const ranks = given.map(rankOf).join(" ");
    const other = this.unsized.get(ranks);
    if (other !== undefined) return other.resized(name, given);
    const parameters = given.map((kind) => parameterLike(name, kind));
    const before = shapes.areSeen;
    shapes.areSeen = false;
    try {
      const { roots, names } = this.traced.record(parameters);
      const isSized = shapes.areSeen || dependOnSizes(roots);
      const trace = new Trace(parameters, roots, names, isSized);
      if (!isSized) this.unsized.add(ranks, trace);
      return trace;
    } finally {
      shapes.areSeen ||= before;
    }
  }
}

/** Makes the function that `gpu.fn` gives. */
export function tracedFunction(
  calls: TensorSession,
  fn: unknown,
  options: FnOptions = {},
): (...given: unknown[]) => Traceable {
  if (typeof fn !== "function") {
    throw invalid("fn", `give a function of tensors, got ${kindOf(fn)}`);
  }
  checkOptions("fn", options, NAMES);
  const name = options.name ?? (fn.name || "fn");
  const record = (parameters: readonly Node[]): Recording => {
    const stands = parameters.map((node) => standIn(calls, name, node));
    return recordingOf(
      calls,
      name,
      (fn as (...stands: Tensor[]) => unknown)(...stands),
    );
  };
  const traces = new Traces(calls, { name, record });
  const traced = (...given: unknown[]): Traceable => {
    const { length } = given;
    const all = new Array<Argument>(length);
    for (let at = 0; at < length; at += 1) {
      all[at] = argumentOf(calls, name, given[at]);
    }
    return traces.apply(all);
  };
  return Object.defineProperty(traced, "name", { value: name });
}

/** What a function that is traced gets in the place of an argument. */
function standIn(calls: TensorSession, name: string, node: Node): Tensor {
  const deferred: Deferred = {
    root: node,
    node(op) {
      if (!NEED_VALUES.has(op)) return node;
      throw tracingError(name);
    },
    reading() {
      throw tracingError(name);
    },
  };
  const tensor = new Tensor(calls, undefined, deferred);
  // Otherwise a number's parameter would be NaN in `2 * x`.
  return Object.defineProperty(tensor, Symbol.toPrimitive, {
    value: () => {
      throw tracingError(name);
    },
  });
}

/** The methods of tensors that need values, or memory that these are in. */
const NEED_VALUES = new Set([
  "read",
  "readAll",
  "compute",
  "computeAll",
  "computeInto",
  "write",
  "gpuBuffer",
]);

function recordingOf(
  calls: TensorSession,
  name: string,
  result: unknown,
): Recording {
  const rootOf = (tensor: unknown): Node => {
    try {
      return nodeOf(name, calls, tensor);
    } catch (cause) {
      const { code, message } = cause as FramebatchError;
      throw new FramebatchError(
        code,
        `${message} (it must return a tensor, or several in a list or an object)`,
        { cause },
      );
    }
  };
  if (result instanceof Tensor) {
    return { roots: [rootOf(result)], names: undefined };
  }
  if (Array.isArray(result)) {
    return { roots: result.map(rootOf), names: "list" };
  }
  const isPlain =
    typeof result === "object" &&
    result !== null &&
    Object.getPrototypeOf(result) === Object.prototype;
  if (!isPlain) {
    throw invalid(
      name,
      `a traced function must return a tensor, or several in a list or an object, at once; got ${kindOf(result)}`,
    );
  }
  return {
    roots: Object.values(result).map(rootOf),
    names: Object.keys(result),
  };
}

function keyOf(kind: Kind): string {
  return `${rankOf(kind)}:${kind.shape.dims.join()}`;
}

function rankOf({ code, dtype, shape }: Kind): string {
  return code === CODE.constant ? `n${dtype}` : `${dtype}r${shape.dims.length}`;
}
