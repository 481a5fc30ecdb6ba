// A kernel as people call it: a function of tensors that gives a tensor.
//
// A call is recorded as any operation of tensors is, and computed by `read` or `compute`.

import { invalid, kindOf } from "../checks/errors.js";
import { CODE, FLOATS, INDEXES } from "../tensor/codes.js";
import type { TensorData } from "../tensor/copy-in.js";
import { inputOf } from "../tensor/input.js";
import { constant, type Node, operation } from "../tensor/node.js";
import { broadcast } from "../tensor/shape.js";
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

/** Makes the function that records calls of a kernel. */
export function kernelOf(
  calls: TensorSession,
  checked: Checked,
): Kernel<Inputs, Params> {
  const { name, source, inputs, params } = checked;
  const isAt = source.form === "at";
  const attributes = [checked.number];
  const kernel = (values: Named, numbers: Named = {}): Tensor => {
    checkNamed(name, "values", values, inputs);
    checkNamed(
      name,
      "params",
      numbers,
      params.map(([param]) => param),
    );
    const operands = inputs.map((input) =>
      valueNode(calls, name, input, values[input]),
    );
    let { shape } = operands[0];
    for (const operand of operands) {
      if (!isAt) shape = broadcast(name, shape, operand.shape);
      else if (shape.count > 0 && operand.shape.count === 0) {
        throw invalid(name, "a tensor that is looked at holds nothing");
      }
    }
    for (const [param, type] of params) {
      operands.push(paramNode(name, param, type, numbers[param]));
    }
    const node = operation(CODE.call, operands, attributes, shape, FLOATS);
    return new Tensor(calls, node);
  };
  return Object.defineProperty(kernel, "name", { value: name });
}

function checkNamed(
  name: string,
  what: string,
  given: Named,
  names: readonly string[],
): void {
  if (typeof given !== "object" || given === null) {
    throw invalid(name, `${what} must be an object, got ${kindOf(given)}`);
  }
  const unknown = Object.keys(given).find((own) => !names.includes(own));
  const missing = names.find((own) => given[own] === undefined);
  if (unknown === undefined && missing === undefined) return;
  throw invalid(
    name,
    `${what} must be { ${names.join(", ")} }, but ${missing ?? unknown!} ${missing === undefined ? "is none of them" : "is missing"}`,
  );
}

function valueNode(
  calls: TensorSession,
  name: string,
  input: string,
  value: unknown,
): Node {
  const about = `${name}.${input}`;
  if (typeof value === "number") return constant(value);
  const isData = ArrayBuffer.isView(value) || Array.isArray(value);
  const node = isData
    ? inputOf(calls, about, value as TensorData)
    : nodeOf(about, calls, value);
  if (node.dtype !== FLOATS) {
    throw invalid(about, "the value must hold floats, not indexes");
  }
  if (isData && node.storage!.isResident) calls.residents.makeResident(node);
  return node;
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
