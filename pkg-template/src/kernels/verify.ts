// Compares what a device computes of a kernel with what its function in JavaScript does.

import { invalid, kindOf } from "../checks/errors.js";
import { checkOptions } from "../checks/options.js";
import { copyIn, type TensorData } from "../tensor/copy-in.js";
import type { TensorSession } from "../tensor/tensor-session.js";
import type { Checked, Inputs, KernelInput, Params } from "./definition.js";
import { checkedOf, type Kernel } from "./kernel.js";
import { inputOf } from "./twin.js";

/** A call whose result is compared. */
export interface VerifyCase<Of extends Inputs, With extends Params> {
  /** Numbers, or data as `gpu.tensor` takes it. */
  values: { readonly [Name in keyof Of]: TensorData | number };
  params?: { readonly [Name in keyof With]: number };
}

/** What `gpu.verify` takes last. */
export interface VerifyOptions {
  /**
   * How far an element may be off: this much of the expected value, or of 1 where that is
   * smaller. Default: 1e-5.
   */
  tolerance?: number;
}

/** What came of a comparison. */
export interface Verification {
  /** Whether no element of any case is off by more than the tolerance. */
  readonly ok: boolean;
  /** The element that is off by most; undefined where there are no elements. */
  readonly worst: VerifiedElement | undefined;
}

/** An element that the device and the function in JavaScript computed. */
export interface VerifiedElement {
  /** The number of the case, from 0. */
  readonly case: number;
  /** The place in the result, row by row. */
  readonly place: number;
  readonly got: number;
  readonly expected: number;
  /** How far `got` is off, in shares of the expected value or of 1. */
  readonly off: number;
}

const NAMES: Record<keyof VerifyOptions, true> = { tolerance: true };

/** Computes cases both ways. Rejects for a kernel without a function for the CPU. */
export async function verify<Of extends Inputs, With extends Params>(
  calls: TensorSession,
  kernel: Kernel<Of, With>,
  cases: readonly VerifyCase<Of, With>[],
  options: VerifyOptions = {},
): Promise<Verification> {
  checkOptions("verify", options, NAMES);
  const { tolerance = 1e-5 } = options;
  if (typeof tolerance !== "number" || !(tolerance >= 0)) {
    throw invalid(
      "verify",
      `tolerance must be a number from 0, got ${tolerance}`,
    );
  }
  const checked = checkedOf(kernel);
  if (checked === undefined) {
    throw invalid(
      "verify",
      `give a kernel of gpu.kernel, got ${kindOf(kernel)}`,
    );
  }
  if (checked.cpu === undefined && checked.cpuAt === undefined) {
    throw invalid(
      checked.name,
      "there is no function for the CPU to compare with; give the definition cpu, or cpuAt",
    );
  }
  const call = kernel as Kernel<Inputs, Record<string, "f32">>;
  const made = cases.map(({ values, params = {} }) =>
    call(values as never, params as never),
  );
  const results = await Promise.all(made.map((tensor) => tensor.read()));
  let worst: VerifiedElement | undefined;
  for (const [at, got] of results.entries()) {
    const { values, params = {} } = cases[at];
    const expected = expectedOf(calls, checked, made[at].shape, values, params);
    for (let place = 0; place < got.length; place += 1) {
      const off = offBy(got[place], expected[place]);
      if (worst !== undefined && off <= worst.off) continue;
      const [own, other] = [got[place], expected[place]];
      worst = { case: at, place, got: own, expected: other, off };
    }
  }
  return { ok: worst === undefined || worst.off <= tolerance, worst };
}

function offBy(got: number, expected: number): number {
  if (Object.is(got, expected) || got === expected) return 0;
  const off = Math.abs(got - expected) / Math.max(Math.abs(expected), 1);
  return Number.isNaN(off) ? Infinity : off;
}

/** What the function in JavaScript gives for each element of a result of this shape. */
function expectedOf(
  calls: TensorSession,
  { name, inputs, cpu, cpuAt }: Checked,
  shape: readonly number[],
  values: Readonly<Record<string, TensorData | number>>,
  params: Record<string, number>,
): Float32Array {
  const size = shape.reduce((product, dim) => product * dim, 1);
  const expected = new Float32Array(size);
  const given = inputs.map((input) => dataOf(calls, name, values[input]));
  if (cpuAt !== undefined) {
    const looked: Record<string, KernelInput> = {};
    for (const [at, input] of inputs.entries()) {
      const { floats, dims } = given[at];
      looked[input] = inputOf(floats, dims[dims.length - 1] ?? 1);
    }
    for (let i = 0; i < size; i += 1) expected[i] = cpuAt(i, looked, params);
    return expected;
  }
  const of: Record<string, number> = {};
  for (let i = 0; i < size; i += 1) {
    for (const [at, input] of inputs.entries()) {
      of[input] = given[at].floats[placeOf(i, shape, given[at].dims)];
    }
    expected[i] = cpu!(of, params);
  }
  return expected;
}

function dataOf(
  { slab }: TensorSession,
  about: string,
  value: TensorData | number,
): { floats: Float32Array; dims: readonly number[] } {
  if (typeof value === "number") {
    return { floats: Float32Array.of(value), dims: [] };
  }
  const { data, shape } = copyIn(slab, about, value, undefined);
  const { memory, start, words } = data;
  const floats = Float32Array.from(memory.subarray(start, start + words));
  return { floats, dims: shape.dims };
}

/** The place of element `i` of a shape in data of these dimensions, which broadcast to it. */
function placeOf(
  i: number,
  shape: readonly number[],
  dims: readonly number[],
): number {
  let rest = i;
  let place = 0;
  let step = 1;
  for (let axis = 1; axis <= dims.length; axis += 1) {
    const dim = dims[dims.length - axis];
    const whole = shape[shape.length - axis];
    if (dim > 1) place += (rest % whole) * step;
    step *= dim;
    rest = Math.floor(rest / whole);
  }
  return place;
}
