// What calls of kernels and of traced functions are given: tensors, numbers, and data.
//
// Short data is copied when the call is made, because its caller may change it at once; it
// becomes an input of a chain only where something else than reading needs one.

import { invalid, kindOf } from "../checks/errors.js";
import type { Span } from "../memory/arrays.js";
import { CODE, FLOATS, RESIDENT } from "../tensor/codes.js";
import { copyIn, largestOf, type TensorData } from "../tensor/copy-in.js";
import { constant, type DType, input, type Node } from "../tensor/node.js";
import type { Shape } from "../tensor/shape.js";
import { TensorStorage } from "../tensor/storage.js";
import { nodeOf, type Tensor } from "../tensor/tensor.js";
import type { TensorSession } from "../tensor/tensor-session.js";

/** What a call may be given. */
export type Given = Tensor<never> | TensorData | number;

/** An array that goes with its call. */
export class ArrayArgument {
  readonly code = CODE.input;
  private made: Node | undefined = undefined;

  constructor(
    readonly data: Span,
    readonly shape: Shape,
    readonly dtype: DType,
  ) {}

  /** An input of this data alone. */
  get node(): Node {
    if (this.made !== undefined) return this.made;
    const { data, shape, dtype } = this;
    const largest = dtype === FLOATS ? undefined : largestOf(data);
    const storage = new TensorStorage(
      data,
      data.words,
      RESIDENT,
      largest,
      true,
      undefined,
    );
    storage.isPassing = true;
    return (this.made = input(shape, storage, dtype));
  }
}

/** One argument of a call. */
export type Argument = ArrayArgument | Node;

/** The argument that a value is, rows of numbers as elements of `numbersAs`. Throws where it is none. */
export function argumentOf(
  calls: TensorSession,
  about: string,
  value: unknown,
  numbersAs: DType = FLOATS,
): Argument {
  if (typeof value === "number") return constant(value);
  if (!ArrayBuffer.isView(value) && !Array.isArray(value)) {
    return nodeOf(about, calls, value);
  }
  const given = value as TensorData;
  const { data, shape, dtype } = copyIn(
    calls.slab,
    about,
    given,
    undefined,
    numbersAs,
  );
  if (data.memory instanceof Uint16Array) {
    throw invalid(
      about,
      `data must be numbers, a Float32Array, a Uint32Array or an Int32Array, got ${kindOf(value)}; make a tensor of 16-bit floats`,
    );
  }
  return new ArrayArgument(data, shape, dtype);
}

/** The node of an argument. */
export const argumentNode = (argument: Argument): Node =>
  argument instanceof ArrayArgument ? argument.node : argument;

/** Whether an argument is a number that goes with its call. */
export const isNumber = ({ code }: Argument): boolean => code === CODE.constant;

/** Whether an argument is there already, and not to be computed first. */
export const isAtHand = ({ code }: Argument): boolean =>
  code === CODE.input || code === CODE.constant;
