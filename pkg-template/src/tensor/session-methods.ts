// `gpu.tensor`, `gpu.where`, `gpu.computeAll` and `gpu.readAll`: from data to a tensor, of
// several tensors one, from recorded tensors to tensors on the device, and to arrays.

import { endedError } from "../calls/call-errors.js";
import type { CallOptions, ComputeOptions } from "../calls/call-options.js";
import { invalid, kindOf } from "../checks/errors.js";
import { checkOptions, labeled } from "../checks/options.js";
import { STORAGE_NAMES } from "../checks/storage-options.js";
import { where } from "./arithmetic.js";
import { type BufferOptions, bufferInput, isBuffer } from "./buffer-input.js";
import type { TensorData } from "./copy-in.js";
import { inputOf, type TensorOptions } from "./input.js";
import type { Elements } from "./kinds.js";
import type { Node } from "./node.js";
import { READ_ALL, ReadOperands } from "./read-operands.js";
import { compute } from "./stored-calls.js";
import { COMPUTE_ALL } from "./stored-operands.js";
import { nodeOf, operandOf, Tensor } from "./tensor.js";
import type { TensorSession } from "./tensor-session.js";

/** What `gpu.readAll` takes last: as other calls, with an array of arrays as `into`. */
export type ReadAllOptions = Omit<CallOptions, "into"> & {
  /** Receives the results, one array each, or `undefined` for a new one. Default: new arrays. */
  into?: readonly (Elements | undefined)[];
};

const NO_OPTIONS: TensorOptions & BufferOptions = {};
const TENSOR_NAMES: Record<keyof TensorOptions, true> = {
  dtype: true,
  ...STORAGE_NAMES,
  label: true,
};

/** A tensor of data, or of a buffer. Throws where that and the shape do not fit. */
export function makeTensor(
  calls: TensorSession,
  data: TensorData | GPUBuffer,
  dims: readonly number[] | undefined,
  options: TensorOptions | BufferOptions = NO_OPTIONS,
): Tensor<Elements> {
  if (calls.ended !== undefined) {
    throw endedError(labeled("tensor", options?.label), calls.ended);
  }
  const node = isBuffer(data)
    ? bufferInput(calls, data, dims, options as BufferOptions)
    : dataInput(calls, data, dims, options as TensorOptions);
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

function dataInput(
  calls: TensorSession,
  data: TensorData,
  dims: readonly number[] | undefined,
  options: TensorOptions,
): Node {
  checkOptions("tensor", options, TENSOR_NAMES);
  return inputOf(calls, labeled("tensor", options.label), data, dims, options);
}

/** Computes several tensors of a session into new ones, in one call. */
export function computeTensors<Tensors extends object>(
  calls: TensorSession,
  tensors: readonly Tensor<Elements>[],
  options: ComputeOptions | undefined,
): Promise<Tensors> {
  try {
    return compute(calls, {
      method: COMPUTE_ALL,
      roots: nodesOf("computeAll", calls, tensors),
      options,
      give: (nodes) =>
        nodes.map((node) => new Tensor(calls, node)) as object as Tensors,
    });
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Reads several tensors of a session in one call. */
export function readTensors<Answer>(
  calls: TensorSession,
  tensors: readonly Tensor<Elements>[],
  options: ReadAllOptions | undefined,
): Promise<Answer> {
  try {
    const roots = nodesOf("readAll", calls, tensors);
    const operands = new ReadOperands(calls.chains, READ_ALL, roots);
    return calls.take(operands, options as CallOptions);
  } catch (error) {
    return Promise.reject(error);
  }
}

function nodesOf(
  op: string,
  calls: TensorSession,
  tensors: readonly Tensor<Elements>[],
): Node[] {
  if (!Array.isArray(tensors)) {
    throw invalid(op, `give an array of tensors, got ${kindOf(tensors)}`);
  }
  return tensors.map((tensor) => nodeOf(op, calls, tensor));
}
