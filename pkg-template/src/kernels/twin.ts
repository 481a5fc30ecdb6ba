// Functions of the page's that compute kernels on the CPU, as the core calls them.

import type { Twin } from "../core/core.js";
import type { CoreInstance } from "../core/core-instance.js";
import type {
  Checked,
  ElementFunction,
  KernelInput,
  PlaceFunction,
} from "./definition.js";

/** The function that the core calls for elements. */
export function twinOf(
  instance: CoreInstance,
  kernel: Checked,
): Twin | undefined {
  const { name, inputs, params, cpu, cpuAt } = kernel;
  if (cpu === undefined && cpuAt === undefined) return undefined;
  return (columns, first, elements, to) => {
    const { memory } = instance;
    const numbers: Record<string, number> = {};
    for (const [at, [param, type]] of params.entries()) {
      const place = columns[3 * (inputs.length + at)];
      numbers[param] = numberAt(memory.buffer, place, type);
    }
    // Memory may grow while the page's function runs, which detaches views of it.
    const own = inputs.map((_, at) => {
      const [place, count] = columns.subarray(3 * at);
      return new Float32Array(memory.buffer, place, count).slice();
    });
    const results = new Float32Array(elements);
    const run = (): void => {
      if (cpu !== undefined) fill(results, cpu, { inputs, own, numbers });
      else fillAt(results, cpuAt!, { inputs, own, numbers, columns, first });
    };
    let failure: string | undefined;
    instance.callOut(() => {
      try {
        run();
      } catch (thrown) {
        failure = `${name}: its function for the CPU threw: ${messageOf(thrown)}`;
      }
    });
    new Float32Array(memory.buffer, to, elements).set(results);
    return failure;
  };
}

/** What a function of the page's computes elements of. */
interface Elements {
  /** The names of the inputs, and their elements. */
  readonly inputs: readonly string[];
  readonly own: readonly Float32Array[];
  readonly numbers: Record<string, number>;
}

function fill(
  results: Float32Array,
  cpu: ElementFunction,
  { inputs, own, numbers }: Elements,
): void {
  const values: Record<string, number> = {};
  for (let i = 0; i < results.length; i += 1) {
    for (let at = 0; at < own.length; at += 1) values[inputs[at]] = own[at][i];
    results[i] = cpu(values, numbers);
  }
}

function fillAt(
  results: Float32Array,
  cpu: PlaceFunction,
  {
    inputs,
    own,
    numbers,
    columns,
    first,
  }: Elements & { readonly columns: Uint32Array; readonly first: number },
): void {
  const looked: Record<string, KernelInput> = {};
  for (const [at, input] of inputs.entries()) {
    looked[input] = inputOf(own[at], columns[3 * at + 2]);
  }
  for (let i = 0; i < results.length; i += 1) {
    results[i] = cpu(first + i, looked, numbers);
  }
}

/** What a function of a place looks at: data with so many elements along its last axis. */
export function inputOf(values: Float32Array, columns: number): KernelInput {
  const size = values.length;
  const rows = size / columns;
  const within = (place: number, end: number): number =>
    Math.min(Math.max(Math.trunc(place), 0), end - 1);
  const at = (row: number, column: number): number =>
    values[within(row, rows) * columns + within(column, columns)];
  const look = (place: number): number => values[within(place, size)];
  return Object.assign(look, { at, size, rows, columns });
}

function numberAt(
  memory: ArrayBufferLike,
  place: number,
  type: Checked["params"][number][1],
): number {
  if (type === "f32") return new Float32Array(memory, place, 1)[0];
  const bits = new Uint32Array(memory, place, 1)[0];
  return type === "u32" ? bits : bits | 0;
}

const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);
