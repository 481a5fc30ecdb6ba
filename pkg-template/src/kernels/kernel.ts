// A kernel as people call it: a function of tensors that gives a tensor.
//
// A call is recorded as any operation of tensors is, and computed by `read` or `compute`.

import { mark } from "../checks/brand.js";
import { invalid, kindOf } from "../checks/errors.js";
import { CODE, FLOATS, INDEXES, INTEGERS } from "../tensor/codes.js";
import type { TensorData } from "../tensor/copy-in.js";
import { constant, type DType, type Node, operation } from "../tensor/node.js";
import {
  broadcast,
  SCALAR,
  type Shape,
  shapeOf,
  text,
} from "../tensor/shape.js";
import { nodeOf, Tensor } from "../tensor/tensor.js";
import type { TensorSession } from "../tensor/tensor-session.js";
import { type Argument, argumentOf, ArrayArgument } from "./arguments.js";
import type {
  Checked,
  ElementsOf,
  Inputs,
  KernelResult,
  None,
  NumberType,
  Output,
  Params,
  ValueType,
} from "./definition.js";
import { type Scalar, SCALARS, type Type } from "./source.js";
import { isFused as isFusedPart, partsOf } from "./text.js";
import { recordedAgain } from "./trace.js";
import { Traces } from "./traced-function.js";

/**
 * A kernel of one's own. Calling it records one operation on elements, and gives a tensor at
 * once: values broadcast, and are tensors, numbers, or data as `gpu.tensor` takes it. Throws
 * `invalid-input` where a value or a param is missing or of another kind, or shapes do not fit.
 * Reading rejects with `shader` and the line in question where a compiler refuses the code.
 */
export interface Kernel<
  Of extends Inputs,
  With extends Params,
  Gives extends Output = "f32",
  Shares extends Inputs = None,
> {
  (
    values: ValuesOf<Of> & ValuesOf<Shares>,
    ...params: keyof With extends never
      ? [params?: object]
      : [params: { readonly [Name in keyof With]: ParamOf<With[Name]> }]
  ): Given<Gives>;
  /** The name that the definition gave. */
  readonly name: string;
}

/** What a call gives a kernel by name: tensors, data, or numbers. */
export type ValuesOf<Of extends Inputs> = {
  readonly [Name in keyof Of]:
    Tensor<ElementsOf<Of[Name]>> | TensorData | number;
};

/** What a call of a kernel gives: a tensor, or one for each field of its struct. */
export type Given<Gives extends Output> = Gives extends ValueType
  ? Tensor<ElementsOf<Gives>>
  : {
      readonly [Name in keyof Gives]: Gives[Name] extends ValueType
        ? Tensor<ElementsOf<Gives[Name]>>
        : never;
    };

/** The types of elements of tensors of each scalar. */
export const DTYPES: Readonly<Record<Scalar, DType>> = {
  f32: FLOATS,
  i32: INTEGERS,
  u32: INDEXES,
};

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
): Kernel<Inputs, Params, Output> {
  const { name, tensors, params, results } = checked;
  // Calls are many, and a kernel is one: what is the same for all of them is made here.
  const inputs = tensors.map((tensor) => tensor.name);
  const values: Taken = { what: "values", names: inputs };
  const numbers: Taken = { what: "params", names: params.map(([own]) => own) };
  const isFused = partsOf(checked).every(isFusedPart);
  const takers = tensors.map(({ name: own, type }) => ({
    about: `${name}.${own}`,
    scalar: type.scalar,
    // A number is spread where the kernel fuses, and otherwise lies in memory as tensors do.
    isInMemory: !isFused,
  }));
  const count = inputs.length + params.length;
  const records = results.map((result) => recorder(checked, result));
  const fields = results.map(({ field }) => field);
  const names = fields[0] === "" ? undefined : fields;
  const traces = new Traces(calls, {
    name,
    record: (nodes) => ({ roots: records.map((one) => one(nodes)), names }),
  });
  const kernel = (
    given: Named,
    numbersGiven: Named = NOTHING,
  ): Given<Output> => {
    checkTaken(name, values, given);
    checkTaken(name, numbers, numbersGiven);
    const all = new Array<Argument>(count);
    for (let at = 0; at < inputs.length; at += 1) {
      all[at] = valueOf(calls, takers[at], given[inputs[at]]);
    }
    for (let at = 0; at < params.length; at += 1) {
      const [param, type] = params[at];
      const value = numbersGiven[param];
      all[inputs.length + at] = paramOf(calls, { name, param, type }, value);
    }
    return traces.apply(all) as Given<Output>;
  };
  definitions.set(kernel, checked);
  mark(kernel, "a kernel");
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

/** What records one result of a call of a kernel, of its values and its params. */
function recorder(
  { name, tensors }: Checked,
  { number, type: result }: KernelResult,
): (operands: readonly Node[]) => Node {
  const attributes = [number];
  const record = (operands: readonly Node[]): Node => {
    let shape: Shape = SCALAR;
    let isEmpty = false;
    for (const [at, { type, isWhole }] of tensors.entries()) {
      const places = placesOf(name, operands[at].shape, type);
      isEmpty ||= isWhole && places.count === 0;
      if (at === 0) shape = places;
      else if (!isWhole) shape = broadcast(name, shape, places);
    }
    for (const { type, isWhole } of tensors) {
      // Vectors that broadcast are copied for all places.
      if (type.lanes > 1 && !isWhole) {
        shapeOf(name, [...shape.dims, type.lanes]);
      }
    }
    if (isEmpty && shape.count > 0) {
      throw invalid(name, "a tensor that is looked at holds nothing");
    }
    const { lanes, scalar } = result;
    if (lanes > 1) shape = shapeOf(name, [...shape.dims, lanes]);
    return operation(CODE.call, operands, attributes, shape, DTYPES[scalar]);
  };
  recordedAgain.set(attributes, record);
  return record;
}

// The shape of as many values of a type as a tensor of this shape holds.
function placesOf(name: string, shape: Shape, { lanes }: Type): Shape {
  if (lanes === 1) return shape;
  const { dims } = shape;
  if (dims[dims.length - 1] === lanes) return shapeOf(name, dims.slice(0, -1));
  throw invalid(
    name,
    `the last axis of a vec${lanes} has ${lanes} elements, got shape ${text(dims)}`,
  );
}

/** What takes a value of a call. */
interface Taker {
  readonly about: string;
  readonly scalar: Scalar;
  readonly isInMemory: boolean;
}

function valueOf(
  calls: TensorSession,
  { about, scalar, isInMemory }: Taker,
  value: unknown,
): Argument {
  if (typeof value === "number") {
    checkNumber(about, "the value", scalar, value);
    if (!isInMemory) return constant(value, DTYPES[scalar]);
    const memory =
      scalar === "f32" ? Float32Array.of(value) : Uint32Array.of(value);
    const data = { memory, start: 0, words: 1 };
    return new ArrayArgument(data, SCALAR, DTYPES[scalar]);
  }
  const argument = argumentOf(calls, about, value, DTYPES[scalar]);
  if (argument.dtype === DTYPES[scalar]) return argument;
  const wanted = WANTED[SCALARS.indexOf(scalar)];
  throw invalid(
    about,
    argument instanceof ArrayArgument
      ? `data of ${scalar} must be ${wanted}, got ${kindOf(value)}`
      : `the value must hold elements of type ${scalar}, as a tensor of ${wanted.replace(" or numbers", "")} does`,
  );
}

const WANTED = [
  "a Float32Array or numbers",
  "an Int32Array or numbers",
  "a Uint32Array or numbers",
] as const;

// Refuses a number that a whole number's type does not have.
function checkNumber(
  about: string,
  what: string,
  type: Scalar,
  value: number,
): void {
  const isOfType =
    type === "f32" ||
    (type === "i32" ? value === (value | 0) : value === value >>> 0);
  if (isOfType) return;
  throw invalid(
    about,
    `${what} must be a whole number that fits ${type}, got ${value}`,
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
  checkNumber(name, param, type, value);
  return type === "f32" ? constant(value) : constant(value, INDEXES);
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
