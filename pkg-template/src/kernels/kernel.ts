// A kernel as people call it: a function of tensors that gives a tensor.
//
// A call is recorded as any operation of tensors is, and computed by `read` or `compute`.

import { invalid, kindOf } from "../checks/errors.js";
import { CODE, FLOATS, INDEXES } from "../tensor/codes.js";
import type { TensorData } from "../tensor/copy-in.js";
import { constant, type Node, operation } from "../tensor/node.js";
import { broadcast } from "../tensor/shape.js";
import { nodeOf, Tensor } from "../tensor/tensor.js";
import type { TensorSession } from "../tensor/tensor-session.js";
import { type Argument, argumentOf, ArrayArgument } from "./arguments.js";
import type { Checked, Inputs, NumberType, Params } from "./definition.js";
import { recordedAgain } from "./trace.js";
import { Traces } from "./traced-function.js";

/**
 * A kernel of one's own. Calling it records one operation on elements, and gives a tensor at
 * once: values broadcast, and are tensors, numbers, or data as `gpu.tensor` takes it. Throws
 * `invalid-input` where a value or a param is missing or of another kind, or shapes do not fit.
 * Reading rejects with `shader` and the line in question where a compiler refuses the code.
 */
export interface Kernel<Of extends Inputs, With extends Params> {
  (
    values: { readonly [Name in keyof Of]: Tensor | TensorData | number },
    ...params: keyof With extends never
      ? [params?: object]
      : [params: { readonly [Name in keyof With]: ParamOf<With[Name]> }]
  ): Tensor;
  /** The name that the definition gave. */
  readonly name: string;
}

/** What a param is given: a number, or in a function that is traced the number that this is given. */
export type ParamOf<Type extends NumberType> = Type extends "f32"
  ? number | Tensor
  : number;

/** Any values, or any params, of a call. */
type Named = Readonly<Record<string, unknown>>;

/** What a kernel takes by name: values, or params. */
interface Taken {
  readonly what: "values" | "params";
  readonly names: readonly string[];
}

const NOTHING: Named = {};

/** The definition of each kernel. */
const definitions = new WeakMap<object, Checked>();

/** The definition of a kernel; undefined for anything else. */
export const checkedOf = (kernel: unknown): Checked | undefined =>
  typeof kernel === "function" ? definitions.get(kernel) : undefined;

/** Makes the function that records calls of a kernel. */
export function kernelOf(
  calls: TensorSession,
  checked: Checked,
): Kernel<Inputs, Params> {
  const { name, inputs, params } = checked;
  // Calls are many, and a kernel is one: what is the same for all of them is made here.
  const values: Taken = { what: "values", names: inputs };
  const numbers: Taken = { what: "params", names: params.map(([own]) => own) };
  const abouts = inputs.map((input) => `${name}.${input}`);
  const count = inputs.length + params.length;
  const record = recorder(checked);
  const traces = new Traces(calls, {
    name,
    record: (nodes) => ({ roots: [record(nodes)], names: undefined }),
  });
  const kernel = (given: Named, numbersGiven: Named = NOTHING): Tensor => {
    checkTaken(name, values, given);
    checkTaken(name, numbers, numbersGiven);
    const all = new Array<Argument>(count);
    for (let at = 0; at < inputs.length; at += 1) {
      all[at] = valueOf(calls, abouts[at], given[inputs[at]]);
    }
    for (let at = 0; at < params.length; at += 1) {
      const [param, type] = params[at];
      const value = numbersGiven[param];
      all[inputs.length + at] = paramOf(calls, { name, param, type }, value);
    }
    return traces.apply(all) as Tensor;
  };
  definitions.set(kernel, checked);
  return Object.defineProperty(kernel, "name", { value: name });
}

function checkTaken(name: string, { what, names }: Taken, given: Named): void {
  if (typeof given !== "object" || given === null) {
    throw invalid(name, `${what} must be an object, got ${kindOf(given)}`);
  }
  let count = 0;
  for (const _ in given) count += 1;
  for (const own of names) {
    if (given[own] === undefined) {
      throw mistaken(name, { what, names }, `${own} is missing`);
    }
  }
  if (count === names.length) return;
  const unknown = Object.keys(given).find((own) => !names.includes(own));
  if (unknown === undefined) return;
  throw mistaken(name, { what, names }, `${unknown} is none of them`);
}

const mistaken = (name: string, { what, names }: Taken, but: string): Error =>
  invalid(name, `${what} must be { ${names.join(", ")} }, but ${but}`);

/** What records one call of a kernel, of its values and its params. */
function recorder({
  name,
  source,
  inputs,
  number,
}: Checked): (operands: readonly Node[]) => Node {
  const isAt = source.form === "at";
  const attributes = [number];
  const record = (operands: readonly Node[]): Node => {
    let { shape } = operands[0];
    for (let at = 1; at < inputs.length; at += 1) {
      const other = operands[at].shape;
      if (!isAt) shape = broadcast(name, shape, other);
      else if (other.count === 0 && shape.count > 0) {
        throw invalid(name, "a tensor that is looked at holds nothing");
      }
    }
    return operation(CODE.call, operands, attributes, shape, FLOATS);
  };
  recordedAgain.set(attributes, record);
  return record;
}

function valueOf(
  calls: TensorSession,
  about: string,
  value: unknown,
): Argument {
  const argument = argumentOf(calls, about, value);
  if (argument.dtype === FLOATS) return argument;
  throw invalid(
    about,
    argument instanceof ArrayArgument
      ? `data must be a Float32Array or numbers, got ${kindOf(value)}`
      : "the value must hold floats, not indexes",
  );
}

/** A param of a kernel. */
interface Param {
  readonly name: string;
  readonly param: string;
  readonly type: NumberType;
}

function paramOf(
  calls: TensorSession,
  { name, param, type }: Param,
  value: unknown,
): Node {
  if (value instanceof Tensor)
    return tracedParam(calls, { name, param, type }, value);
  if (typeof value !== "number") {
    throw invalid(name, `${param} must be a number, got ${kindOf(value)}`);
  }
  if (type === "f32") return constant(value);
  const isOfType =
    type === "i32" ? value === (value | 0) : value === value >>> 0;
  if (isOfType) return constant(value, INDEXES);
  throw invalid(
    name,
    `${param} must be a whole number that fits ${type}, got ${value}`,
  );
}

// In a function that is traced a number is a tensor of a number that is not known yet.
function tracedParam(
  calls: TensorSession,
  { name, param, type }: Param,
  value: Tensor,
): Node {
  const node = nodeOf(name, calls, value);
  if (node.code === CODE.constant && type === "f32") return node;
  throw invalid(
    name,
    `${param} must be a number${type === "f32" ? ", or one that a traced function is given" : ""}, got a tensor`,
  );
}
