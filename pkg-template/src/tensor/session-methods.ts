// `gpu.tensor`, `gpu.where` and `gpu.readAll`: from data to a tensor, of several tensors one,
// and from tensors to arrays.

import { endedError } from "../calls/call-errors.js";
import type { CallOptions } from "../calls/call-options.js";
import { invalid, kindOf } from "../checks/errors.js";
import { checkOptions, labeled } from "../checks/options.js";
import { where } from "./arithmetic.js";
import { ChainOperands, READ_ALL } from "./chain-operands.js";
import type { TensorData } from "./copy-in.js";
import { inputOf, type TensorOptions } from "./input.js";
import type { Elements } from "./kinds.js";
import { nodeOf, operandOf, Tensor } from "./tensor.js";
import type { TensorSession } from "./tensor-session.js";

/** What `gpu.readAll` takes last: as other calls, with an array of arrays as `into`. */
export type ReadAllOptions = Omit<CallOptions, "into"> & {
  /** Receives the results, one array each, or `undefined` for a new one. Default: new arrays. */
  into?: readonly (Elements | undefined)[];
};

const NO_OPTIONS: TensorOptions = {};
const TENSOR_NAMES: Record<keyof TensorOptions, true> = {
  dtype: true,
  keep: true,
  label: true,
};

/** A tensor of data. Throws where data and shape do not fit. */
export function makeTensor(
  calls: TensorSession,
  data: TensorData,
  dims: readonly number[] | undefined,
  options: TensorOptions = NO_OPTIONS,
): Tensor<Elements> {
  checkOptions("tensor", options, TENSOR_NAMES);
  const about = labeled("tensor", options.label);
  if (calls.ended !== undefined) throw endedError(about, calls.ended);
  const node = inputOf(calls, about, data, dims, options);
  // Short data is uploaded with its second use.
  if (node.storage!.isResident) calls.residents.makeResident(node);
  return new Tensor(calls, node);
}

/** Picks elements of two tensors or numbers. */
export function whereTrue(
  calls: TensorSession,
  condition: Tensor,
  a: Tensor | number,
  b: Tensor | number,
): Tensor {
  const [first, second] = [a, b].map((of) => operandOf("where", calls, of));
  const node = where(nodeOf("where", calls, condition), first, second);
  return new Tensor(calls, node);
}

/** Reads several tensors of a session in one call. */
export function readTensors<Answer>(
  calls: TensorSession,
  tensors: readonly Tensor<Elements>[],
  options: ReadAllOptions | undefined,
): Promise<Answer> {
  try {
    if (!Array.isArray(tensors)) {
      throw invalid(
        "readAll",
        `give an array of tensors, got ${kindOf(tensors)}`,
      );
    }
    const roots = tensors.map((tensor) => nodeOf("readAll", calls, tensor));
    const operands = new ChainOperands(calls.chains, READ_ALL, roots);
    return calls.take(operands, options as CallOptions);
  } catch (error) {
    return Promise.reject(error);
  }
}
