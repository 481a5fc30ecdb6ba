// Functions of the page's that compute kernels on the CPU, as the core calls them.

import type { Twin } from "../core/core.js";
import type { CoreHome } from "../core/core-home.js";
import type {
  KernelInput,
  KernelTensor,
  Values,
  ValueType,
} from "./definition.js";
import type { Scalar } from "./source.js";
import { isFused, type Part } from "./text.js";

/** The elements of a tensor, as the numbers that these are. */
export type Column = Float32Array | Int32Array | Uint32Array;

/** The arrays of elements of each scalar. */
export const CLASSES = {
  f32: Float32Array,
  i32: Int32Array,
  u32: Uint32Array,
} as const;

/** The function that the core calls for elements. */
export function twinOf(instance: CoreHome, part: Part): Twin | undefined {
  const { name, tensors, params, cpu, cpuAt } = part.kernel;
  if (cpu === undefined && cpuAt === undefined) return undefined;
  const Results = CLASSES[part.type.scalar];
  return (columns, first, elements, to) => {
    const { memory } = instance;
    const numbers: Record<string, number> = {};
    for (const [at, [param, type]] of params.entries()) {
      const place = columns[3 * (tensors.length + at)];
      numbers[param] = numberAt(memory.buffer, place, type);
    }
    // Memory may grow while the page's function runs, which detaches views of it.
    const own = tensors.map(({ type }, at) => {
      const [place, count] = columns.subarray(3 * at);
      return new CLASSES[type.scalar](memory.buffer, place, count).slice();
    });
    const widths = tensors.map((_, at) => columns[3 * at + 2]);
    const results = new Results(elements);
    let failure: string | undefined;
    instance.callOut(() => {
      try {
        fill(results, part, { own, widths, numbers, first });
      } catch (thrown) {
        failure = `${name}: its function for the CPU threw: ${messageOf(thrown)}`;
      }
    });
    new Results(memory.buffer, to, elements).set(results);
    return failure;
  };
}

/** What a function of the page's computes elements of. */
interface Elements {
  /** The elements of each tensor. */
  readonly own: readonly Column[];
  /** Of each tensor that is looked at, how many values there are along the last axis. */
  readonly widths: readonly number[];
  readonly numbers: Record<string, number>;
  readonly first: number;
}

function fill(to: Column, part: Part, elements: Elements): void {
  const { kernel, type, result } = part;
  // No function for the CPU is stopped.
  if (result === undefined) return;
  const { tensors, cpu, cpuAt, results } = kernel;
  const { own, widths, numbers, first } = elements;
  const { field } = results[result];
  const { lanes } = type;
  const values = Object.create(null) as Values;
  for (const [at, tensor] of tensors.entries()) {
    if (!tensor.isWhole) continue;
    values[tensor.name] = inputOf(tensor, own[at], widths[at]);
  }
  // Values of a function that fuses come as columns, from the first element on.
  const from = isFused(part) ? 0 : first;
  let place = -1;
  let given: unknown;
  for (let i = 0; i < to.length; i += 1) {
    const next = Math.floor((from + i) / lanes);
    if (next !== place) {
      place = next;
      if (cpuAt === undefined) {
        for (let at = 0; at < own.length; at += 1) {
          const tensor = tensors[at];
          if (tensor.isWhole) continue;
          const { name } = tensor;
          values[name] = valueAt(tensor, own[at], place, values[name]);
        }
        given = cpu!(values, numbers);
      } else given = cpuAt(place, values, numbers);
      given = partOf(given, field);
    }
    to[i] = numberOf(given, lanes, (from + i) % lanes);
  }
}

/** The value at a place, of a column that begins anew as often as it has to; vectors lie in a list that is used again. */
export function valueAt(
  { type: { lanes } }: KernelTensor,
  column: Column,
  place: number,
  list: Values[string] | undefined,
): number | number[] {
  const at = (place % (column.length / lanes)) * lanes;
  return lanes === 1
    ? column[at]
    : vectorAt(column, at, lanes, list as number[] | undefined);
}

function vectorAt(
  column: Column,
  at: number,
  lanes: number,
  list: number[] = new Array<number>(lanes),
): number[] {
  for (let lane = 0; lane < lanes; lane += 1) list[lane] = column[at + lane];
  return list;
}

/** A field of what a function for the CPU returned; all of it where the field has no name. */
export const partOf = (given: unknown, field: string): unknown =>
  field === ""
    ? given
    : (given as Record<string, unknown> | undefined)?.[field];

/** One number of a value that a function for the CPU returned. */
export const numberOf = (value: unknown, lanes: number, lane: number): number =>
  (lanes === 1
    ? value
    : (value as ArrayLike<number> | undefined)?.[lane]) as number;

/** What a function looks at: data with so many values along its last axis. */
export function inputOf(
  { type: { lanes } }: Pick<KernelTensor, "type">,
  column: Column,
  columns: number,
): KernelInput<ValueType> {
  const size = column.length / lanes;
  const rows = size / columns;
  const within = (place: number, end: number): number =>
    Math.min(Math.max(Math.trunc(place), 0), end - 1);
  const read = (place: number): number | number[] =>
    lanes === 1 ? column[place] : vectorAt(column, place * lanes, lanes);
  const at = (row: number, column: number): number | number[] =>
    read(within(row, rows) * columns + within(column, columns));
  const look = (place: number): number | number[] => read(within(place, size));
  return Object.assign(look, {
    at,
    size,
    rows,
    columns,
  }) as KernelInput<ValueType>;
}

function numberAt(
  memory: ArrayBufferLike,
  place: number,
  type: Scalar,
): number {
  if (type === "f32") return new Float32Array(memory, place, 1)[0];
  const bits = new Uint32Array(memory, place, 1)[0];
  return type === "u32" ? bits : bits | 0;
}

const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);
