// A kernel as people call it: a function of tensors that gives a tensor.
//
// A call is recorded as any operation of tensors is, and computed by `read` or `compute`.

import { invalid, kindOf } from "../checks/errors.js";
import { CODE, FLOATS, INDEXES, RESIDENT } from "../tensor/codes.js";
import { copyIn, type TensorData } from "../tensor/copy-in.js";
import { constant, input, type Node, operation } from "../tensor/node.js";
import { broadcast, type Shape } from "../tensor/shape.js";
import { TensorStorage } from "../tensor/storage.js";
import { nodeOf, Tensor } from "../tensor/tensor.js";
import type { TensorSession } from "../tensor/tensor-session.js";
import type { Checked, Inputs, NumberType, Params } from "./definition.js";

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
      : [params: { readonly [Name in keyof With]: number }]
  ): Tensor;
  /** The name that the definition gave. */
  readonly name: string;
}

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
  const { name, source, inputs, params } = checked;
  // Calls are many, and a kernel is one: what is the same for all of them is made here.
  const isAt = source.form === "at";
  const attributes = [checked.number];
  const values: Taken = { what: "values", names: inputs };
  const numbers: Taken = { what: "params", names: params.map(([own]) => own) };
  const abouts = inputs.map((input) => `${name}.${input}`);
  const count = inputs.length + params.length;
  const kernel = (given: Named, numbersGiven: Named = NOTHING): Tensor => {
    checkTaken(name, values, given);
    checkTaken(name, numbers, numbersGiven);
    const operands = new Array<Node>(count);
    let shape!: Shape;
    for (let at = 0; at < inputs.length; at += 1) {
      const node = valueNode(calls, abouts[at], given[inputs[at]]);
      operands[at] = node;
      if (at === 0) shape = node.shape;
      else if (!isAt) shape = broadcast(name, shape, node.shape);
      else if (node.shape.count === 0 && shape.count > 0) {
        throw invalid(name, "a tensor that is looked at holds nothing");
      }
    }
    for (let at = 0; at < params.length; at += 1) {
      const [param, type] = params[at];
      const value = numbersGiven[param];
      operands[inputs.length + at] = paramNode(name, param, type, value);
    }
    const node = operation(CODE.call, operands, attributes, shape, FLOATS);
    return new Tensor(calls, node);
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

function valueNode(calls: TensorSession, about: string, value: unknown): Node {
  if (typeof value === "number") return constant(value);
  if (!ArrayBuffer.isView(value) && !Array.isArray(value)) {
    const node = nodeOf(about, calls, value);
    if (node.dtype === FLOATS) return node;
    throw invalid(about, "the value must hold floats, not indexes");
  }
  const { data, shape } = copyIn(
    calls.slab,
    about,
    value as TensorData,
    undefined,
  );
  if (!(data.memory instanceof Float32Array)) {
    throw invalid(
      about,
      `data must be a Float32Array or numbers, got ${kindOf(value)}`,
    );
  }
  const { words } = data;
  const storage = new TensorStorage(
    data,
    words,
    RESIDENT,
    undefined,
    true,
    undefined,
  );
  // It is of this call alone.
  storage.isPassing = true;
  return input(shape, storage);
}

function paramNode(
  name: string,
  param: string,
  type: NumberType,
  value: unknown,
): Node {
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
