// What defines a kernel, as types: what people write, and what is kept of it once it was checked.
//
// How a definition is checked is in `check-definition.ts`.

import type { Scalar, Source, Type } from "./source.js";

/** The type of a number that comes with a call, in WGSL. */
export type NumberType = Scalar;

/** The type of a value of a kernel, in WGSL: a number, or a vector along a tensor's last axis. */
export type ValueType = Scalar | `vec${2 | 3 | 4}${"f" | "i" | "u"}`;

/** The values that a kernel takes, by name. */
export type Inputs = Readonly<Record<string, ValueType>>;

/** No tensors at all. */
export type None = Readonly<Record<never, never>>;

/** What a kernel gives: a value, or several by the names of a struct's fields. */
export type Output = ValueType | Readonly<Record<string, ValueType>>;

/** The elements of a tensor of such values. */
export type ElementsOf<Of extends ValueType> = Of extends "f32" | `${string}f`
  ? Float32Array
  : Of extends `i32` | `${string}i`
    ? Int32Array
    : Uint32Array;

/** A value in a function for the CPU: a vector is a list of its numbers. */
export type CpuValue<Of extends ValueType> = Of extends Scalar
  ? number
  : ArrayLike<number>;

/** What a function for the CPU returns. */
export type CpuResult<Gives extends Output> = Gives extends ValueType
  ? CpuValue<Gives>
  : {
      readonly [Name in keyof Gives]: Gives[Name] extends ValueType
        ? CpuValue<Gives[Name]>
        : never;
    };

/** The tensors that a function for the CPU looks at. */
export type LookedAt<Of extends Inputs> = {
  readonly [Name in keyof Of]: KernelInput<Of[Name]>;
};

/** The numbers that come with a call of a kernel, by name. */
export type Params = Readonly<Record<string, NumberType>>;

/** What a kernel computes. */
export interface KernelDefinition<
  Of extends Inputs,
  With extends Params,
  Gives extends Output = "f32",
  Shares extends Inputs = None,
> {
  /** In messages, plans and profilers: letters, digits and underscores. */
  name: string;
  /** The values that `element` takes, by the names of its parameters; or what `at` looks at. */
  inputs: Of;
  /**
   * Tensors that the code looks at as a whole, such as tables and weights: functions of a place in
   * the code, as the inputs of `at` are. A call gives them with its values; where many calls give
   * the same tensor, it lies on the device once. Default: none.
   */
  shared?: Shares;
  /** Numbers that come with each call, in the code `params.name`. They compile nothing. Default: none. */
  params?: With;
  /** What the function gives: a value, or the fields of a struct, 1 to 8, each of which is a tensor. */
  output: Gives;
  /**
   * WGSL: one of two functions, and the functions, structs, aliases, constants and overrides that
   * it needs.
   *
   * - `fn element(a: f32, b: f32) -> f32`, of 1 to 6 values that broadcasting brings together. A
   *   `vec3f` is of a tensor whose last axis has 3 elements, and what is in front broadcasts.
   * - `fn at(i: i32) -> f32`, of a place in the first input, whose shape the result has. The
   *   inputs are functions of a place, clamped to what there is: `height(i - 1)`,
   *   `height_at(row, col)`, `height_len()`, `height_rows()`, `height_cols()`; rows run along
   *   the last axis.
   *
   * It is a body and no more: attributes, bindings, barriers, atomics and variables outside of
   * functions are refused.
   */
  code: string;
  /**
   * Values of the code's overrides, by name, which compile the kernel anew: `override taps: i32 = 3;`
   * has the value 3 unless this says otherwise. Default: none.
   */
  constants?: Readonly<Record<string, number | boolean>>;
  /**
   * How many passes the loops of one element may make together. A call of which an element's
   * loops would make more rejects with `limit-exceeded`. Default: 2²⁰.
   */
  maxPasses?: number;
  /**
   * Floating-point operations of one run of the function, a whole number, for the `flops` of
   * `gpu.profile` and of batches: null with a kernel that does not say. Of a struct each field
   * that is computed is a run of its own. Definitions that differ in it are kernels of their own.
   */
  flops?: number;
  /**
   * Computes an element on the CPU: the same as the code does, rounded to float32. Both objects
   * are used again for the next element. It may make calls, which wait until it is done. Of
   * equal kernels the function that was given first computes. Without it calls reject with
   * `unsupported` where there is no GPU.
   */
  cpu?: (
    values: {
      readonly [Name in keyof Of]: CpuValue<Of[Name]>;
    } & LookedAt<Shares>,
    params: { readonly [Name in keyof With]: number },
  ) => CpuResult<Gives>;
  /** The same for a kernel whose function is `at`: of a place, the inputs and the params. */
  cpuAt?: (
    place: number,
    inputs: LookedAt<Of> & LookedAt<Shares>,
    params: { readonly [Name in keyof With]: number },
  ) => CpuResult<Gives>;
}

/** A tensor that a kernel's function looks at on the CPU. Places are clamped to what there is. */
export interface KernelInput<Of extends ValueType = "f32"> {
  /** The value at a place, row by row. */
  (place: number): CpuValue<Of>;
  /** The value of a row and a column. */
  at(row: number, column: number): CpuValue<Of>;
  /** How many values there are. */
  readonly size: number;
  /** How many rows there are: of all axes of values but the last together. */
  readonly rows: number;
  /** How many values there are along the last axis. */
  readonly columns: number;
}

/** A definition that was checked. */
export interface Checked {
  readonly name: string;
  readonly source: Source;
  /** The tensors that it takes, in order; shared ones are the last. */
  readonly tensors: readonly KernelTensor[];
  /** What it gives. */
  readonly results: readonly KernelResult[];
  readonly maxPasses: number;
  /** Operations of one run; undefined where the definition does not say. */
  readonly flops: number | undefined;
  /** The names and types of the params. */
  readonly params: readonly (readonly [string, NumberType])[];
  readonly cpu: ElementFunction | undefined;
  readonly cpuAt: PlaceFunction | undefined;
}

/** A tensor that a kernel takes. */
export interface KernelTensor {
  readonly name: string;
  readonly type: Type;
  /** Whether the code looks at any place of it, so that it does not broadcast. */
  readonly isWhole: boolean;
}

/** One of the results of a kernel. */
export interface KernelResult {
  /** The name of the field; empty where the kernel gives no struct. */
  readonly field: string;
  readonly type: Type;
  /** The number by which chains name what computes the result. */
  readonly number: number;
  /**
   * The number of what says whether loops were stopped, where whole numbers have no bits to spare
   * that could say so.
   */
  readonly toldBy: number | undefined;
}

type Numbers = Record<string, number>;

/** Values of an element, and tensors that are looked at. */
export type Values = Record<
  string,
  number | ArrayLike<number> | KernelInput<ValueType>
>;

/** Computes an element of its values and params. */
export type ElementFunction = (values: Values, params: Numbers) => unknown;

/** Computes an element of its place, the inputs and params. */
export type PlaceFunction = (
  place: number,
  inputs: Values,
  params: Numbers,
) => unknown;

/** Any definition. */
export type AnyDefinition = KernelDefinition<Inputs, Params, Output, Inputs>;
