// Compares what a device computes of a kernel with what its function in JavaScript does.

import { FramebatchError, invalid, kindOf } from "../checks/errors.js";
import { checkOptions } from "../checks/options.js";
import { copyIn, type TensorData } from "../tensor/copy-in.js";
import type { Elements } from "../tensor/kinds.js";
import { Tensor } from "../tensor/tensor.js";
import type { TensorSession } from "../tensor/tensor-session.js";
import type {
  Inputs,
  KernelTensor,
  Output,
  Params,
  Values,
} from "./definition.js";
import { checkedOf, DTYPES, type Given, type Kernel } from "./kernel.js";
import { type Part, partsOf } from "./text.js";
import {
  CLASSES,
  type Column,
  inputOf,
  numberOf,
  partOf,
  valueAt,
} from "./twin.js";

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
  /** The field of the kernel's struct; empty where the kernel gives none. */
  readonly field: string;
  /** The place in the result, row by row. */
  readonly place: number;
  readonly got: number;
  readonly expected: number;
  /** How far `got` is off, in shares of the expected value or of 1. */
  readonly off: number;
}

const NAMES: Record<keyof VerifyOptions, true> = { tolerance: true };

/** The elements of a tensor, and the shape of as many values as these are. */
interface Data {
  readonly column: Column;
  readonly dims: readonly number[];
}

/** A case as it was when it was asked for. */
interface Asked {
  readonly columns: readonly Data[];
  readonly params: Record<string, number>;
}

/** Computes cases both ways. Rejects for a kernel without a function for the CPU, and without a GPU. */
export async function verify<
  Of extends Inputs,
  With extends Params,
  Gives extends Output,
  Shares extends Inputs,
>(
  calls: TensorSession,
  kernel: Kernel<Of, With, Gives, Shares>,
  cases: readonly VerifyCase<Of & Shares, With>[],
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
  const call = kernel as unknown as Kernel<
    Inputs,
    Record<string, "f32">,
    Output
  >;
  const made = cases.map(({ values, params = {} }) =>
    tensorsOf(call(values as never, params as never)),
  );
  // As the calls do, from here on without the caller's arrays, which may change.
  const asked = cases.map(({ values, params = {} }) => ({
    columns: checked.tensors.map((tensor) =>
      dataOf(calls, checked.name, tensor, values),
    ),
    params: rounded(checked.params, params),
  }));
  const results = await Promise.all(
    made.map((tensors) => Promise.all(tensors.map((tensor) => tensor.read()))),
  );
  if (calls.core?.info().engine === "cpu") {
    throw new FramebatchError(
      "unsupported",
      `${checked.name}: verify: the session computes on the CPU, where the code does not run, and would compare the function with itself; open it with engine: 'gpu', for which one in software does`,
    );
  }
  const computed = partsOf(checked).filter(
    ({ result }) => result !== undefined,
  );
  let worst: VerifiedElement | undefined;
  for (const [at, parts] of results.entries()) {
    for (const [result, got] of parts.entries()) {
      const { shape } = made[at][result];
      const part = computed[result];
      const expected = expectedOf(part, shape, asked[at]);
      for (let place = 0; place < got.length; place += 1) {
        const off = offBy(got[place], expected[place]);
        if (worst !== undefined && off <= worst.off) continue;
        const [own, other] = [got[place], expected[place]];
        const { field } = checked.results[result];
        worst = { case: at, field, place, got: own, expected: other, off };
      }
    }
  }
  return { ok: worst === undefined || worst.off <= tolerance, worst };
}

const tensorsOf = (given: Given<Output>): Tensor<Elements>[] =>
  given instanceof Tensor ? [given] : Object.values(given);

function offBy(got: number, expected: number): number {
  if (Object.is(got, expected) || got === expected) return 0;
  const off = Math.abs(got - expected) / Math.max(Math.abs(expected), 1);
  return Number.isNaN(off) ? Infinity : off;
}

/** What the function in JavaScript gives for each element of a result of this shape. */
function expectedOf(
  { kernel, type, result }: Part,
  shape: readonly number[],
  { columns, params }: Asked,
): Column {
  const { tensors, cpu, cpuAt, results } = kernel;
  const { field } = results[result!];
  const { scalar, lanes } = type;
  const size = shape.reduce((product, dim) => product * dim, 1);
  const expected = new CLASSES[scalar](size);
  const values = Object.create(null) as Values;
  for (const [at, tensor] of tensors.entries()) {
    if (!tensor.isWhole) continue;
    const { column, dims } = columns[at];
    values[tensor.name] = inputOf(tensor, column, dims[dims.length - 1] ?? 1);
  }
  const places = lanes === 1 ? shape : shape.slice(0, -1);
  for (let place = 0; place < size / lanes; place += 1) {
    for (const [at, tensor] of tensors.entries()) {
      if (tensor.isWhole) continue;
      const { column, dims } = columns[at];
      const own = placeOf(place, places, dims);
      values[tensor.name] = valueAt(tensor, column, own, values[tensor.name]);
    }
    const all =
      cpuAt === undefined ? cpu!(values, params) : cpuAt(place, values, params);
    const value = partOf(all, field);
    for (let lane = 0; lane < lanes; lane += 1) {
      expected[place * lanes + lane] = numberOf(value, lanes, lane);
    }
  }
  return expected;
}

/** Numbers as a device gets them. */
function rounded(
  types: readonly (readonly [name: string, type: string])[],
  params: Readonly<Record<string, number>>,
): Record<string, number> {
  const all = types.map(([name, type]) => {
    const value = params[name];
    return [name, type === "f32" ? Math.fround(value) : value] as const;
  });
  return Object.fromEntries(all);
}

/** The data of a tensor, copied. */
function dataOf(
  { slab }: TensorSession,
  about: string,
  { name, type }: KernelTensor,
  given: Readonly<Record<string, TensorData | number>>,
): Data {
  const value = given[name];
  const Column = CLASSES[type.scalar];
  if (typeof value === "number") return { column: Column.of(value), dims: [] };
  const { data, shape } = copyIn(
    slab,
    about,
    value,
    undefined,
    DTYPES[type.scalar],
  );
  const { memory, start, words } = data;
  const own = memory.subarray(start, start + words);
  const dims = type.lanes === 1 ? shape.dims : shape.dims.slice(0, -1);
  return { column: Column.from(own), dims };
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
