// What defines a kernel: checked, and numbered by its content, so that equal definitions are
// one kernel.
//
// What may stand in the code is said in `source.ts`. How a kernel is called is in `kernel.ts`.

import { type FramebatchError, invalid, kindOf } from "../checks/errors.js";
import { checkOptions } from "../checks/options.js";
import { MAX_INPUTS, Problem, readSource, type Source } from "./source.js";
import { KEYWORDS, REFUSED, WGSL } from "./words.js";

/** The types of numbers that come with a call, in the order of their numbers on the wire. */
const NUMBER_TYPES = ["f32", "i32", "u32"] as const;

/** The type of a number that comes with a call, in WGSL. */
export type NumberType = (typeof NUMBER_TYPES)[number];

/** The values that a kernel takes, by name. */
export type Inputs = Readonly<Record<string, "f32">>;

/** The numbers that come with a call of a kernel, by name. */
export type Params = Readonly<Record<string, NumberType>>;

/** What a kernel computes. */
export interface KernelDefinition<Of extends Inputs, With extends Params> {
  /** In messages, plans and profilers: letters, digits and underscores. */
  name: string;
  /** The values that `element` takes, by the names of its parameters; or what `at` looks at. */
  inputs: Of;
  /** Numbers that come with each call, in the code `params.name`. They compile nothing. Default: none. */
  params?: With;
  /** What the function gives. */
  output: "f32";
  /**
   * WGSL: one of two functions, and the functions, structs, aliases and constants that it needs.
   *
   * - `fn element(a: f32, b: f32) -> f32`, of 1 to 6 values that broadcasting brings together.
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
   * How many passes the loops of one element may make together. A call of which an element's
   * loops would make more rejects with `limit-exceeded`. Default: 2²⁰.
   */
  maxPasses?: number;
  /**
   * Computes an element on the CPU: the same as the code does, rounded to float32. Both objects
   * are used again for the next element. It may make calls, which wait until it is done. Of
   * equal kernels the function that was given first computes. Without it calls reject with
   * `unsupported` where there is no GPU.
   */
  cpu?: (
    values: { readonly [Name in keyof Of]: number },
    params: { readonly [Name in keyof With]: number },
  ) => number;
  /** The same for a kernel whose function is `at`: of a place, the inputs and the params. */
  cpuAt?: (
    place: number,
    inputs: { readonly [Name in keyof Of]: KernelInput },
    params: { readonly [Name in keyof With]: number },
  ) => number;
}

/** What a function of a place looks at on the CPU. Places are clamped to what there is. */
export interface KernelInput {
  /** The element at a place, row by row. */
  (place: number): number;
  /** The element of a row and a column. */
  at(row: number, column: number): number;
  /** How many elements there are. */
  readonly size: number;
  /** How many rows there are: of all axes but the last together. */
  readonly rows: number;
  /** How many elements there are along the last axis. */
  readonly columns: number;
}

/** A definition that was checked. */
export interface Checked {
  /** The number of its content, by which chains name it. */
  readonly number: number;
  readonly name: string;
  readonly source: Source;
  /** The names of what it is of, in order. */
  readonly inputs: readonly string[];
  readonly maxPasses: number;
  /** The names and types of the params. */
  readonly params: readonly (readonly [string, NumberType])[];
  readonly cpu: ElementFunction | undefined;
  readonly cpuAt: PlaceFunction | undefined;
}

type Numbers = Record<string, number>;

/** Computes an element of its values and params. */
export type ElementFunction = (values: Numbers, params: Numbers) => number;

/** Computes an element of its place, the inputs and params. */
export type PlaceFunction = (
  place: number,
  inputs: Record<string, KernelInput>,
  params: Numbers,
) => number;

const NAMES: Record<keyof KernelDefinition<Inputs, Params>, true> = {
  name: true,
  inputs: true,
  params: true,
  output: true,
  code: true,
  maxPasses: true,
  cpu: true,
  cpuAt: true,
};

const MAX_PASSES = 2 ** 20;
const MAX_PARAMS = 16;
const NAME = /^[a-zA-Z][a-zA-Z0-9_]*$/;

/** The numbers of all contents. */
const numbers = new Map<string, number>();

/** Checks a definition. Throws where it is wrong, with the line and column of the code. */
export function checkDefinition(
  definition: KernelDefinition<Inputs, Params>,
): Checked {
  checkOptions("kernel", definition, NAMES);
  const { name, inputs, params = {}, output, code, cpu, cpuAt } = definition;
  if (typeof name !== "string" || !NAME.test(name)) {
    throw invalid(
      "kernel",
      `name must be letters, digits and underscores and begin with a letter, got '${String(name)}'`,
    );
  }
  const { maxPasses = MAX_PASSES } = definition;
  if (
    !Number.isInteger(maxPasses) ||
    maxPasses < 1 ||
    maxPasses > 2 ** 32 - 1
  ) {
    throw invalid(
      name,
      `maxPasses must be a whole number from 1 to 2^32 - 1, got ${maxPasses}`,
    );
  }
  for (const [option, given] of Object.entries({ cpu, cpuAt })) {
    if (given === undefined || typeof given === "function") continue;
    throw invalid(name, `${option} must be a function, got ${kindOf(given)}`);
  }
  if (output !== "f32") {
    throw invalid(name, `output must be 'f32', got '${String(output)}'`);
  }
  if (typeof code !== "string") {
    throw invalid(name, `code must be a string of WGSL, got ${kindOf(code)}`);
  }
  const named = checkParams(name, params);
  const source = checkCode(name, code, Object.keys(params));
  checkInputs(name, inputs, source);
  const isAt = source.form === "at";
  if ((isAt ? cpu : cpuAt) !== undefined) {
    throw invalid(
      name,
      "cpu is for the function `element`, and cpuAt for `at`",
    );
  }
  const taken = isAt ? Object.keys(inputs) : source.inputs;
  const content = JSON.stringify([name, source.code, taken, maxPasses, named]);
  let number = numbers.get(content);
  if (number === undefined) numbers.set(content, (number = numbers.size));
  return {
    number,
    name,
    source,
    inputs: taken,
    maxPasses,
    params: named,
    cpu,
    cpuAt,
  };
}

/** The number of a type on the wire. */
export const typeNumber = (type: NumberType): number =>
  NUMBER_TYPES.indexOf(type);

function checkParams(name: string, params: Params): Checked["params"] {
  if (typeof params !== "object" || params === null) {
    throw invalid(name, `params must be an object, got ${kindOf(params)}`);
  }
  const named = Object.entries(params);
  if (named.length > MAX_PARAMS) {
    throw invalid(
      name,
      `a kernel has at most ${MAX_PARAMS} params, got ${named.length}`,
    );
  }
  for (const [param, type] of named) {
    if (!NAME.test(param) || KEYWORDS.has(param) || REFUSED.has(param)) {
      throw invalid(
        name,
        `the names of params must be letters, digits and underscores and no keywords of WGSL, got '${param}'`,
      );
    }
    if (!NUMBER_TYPES.includes(type)) {
      throw invalid(
        name,
        `param ${param} must be 'f32', 'i32' or 'u32', got '${String(type)}'`,
      );
    }
  }
  return named;
}

function checkInputs(
  name: string,
  inputs: Inputs,
  { form, inputs: taken }: Source,
): void {
  if (typeof inputs !== "object" || inputs === null) {
    throw invalid(name, `inputs must be an object, got ${kindOf(inputs)}`);
  }
  for (const [input, type] of Object.entries(inputs)) {
    if (type !== "f32") {
      throw invalid(
        name,
        `input ${input} must be 'f32', got '${String(type)}'`,
      );
    }
  }
  const given = Object.keys(inputs);
  if (form === "at") return checkLookedAt(name, given);
  const isSame =
    given.length === taken.length &&
    given.every((input) => taken.includes(input));
  if (isSame) return;
  throw invalid(
    name,
    `inputs are (${given.join(", ")}), but \`element\` takes (${taken.join(", ")})`,
  );
}

function checkLookedAt(name: string, inputs: readonly string[]): void {
  if (inputs.length < 1 || inputs.length > MAX_INPUTS) {
    throw invalid(
      name,
      `\`at\` looks at 1 to ${MAX_INPUTS} inputs, got ${inputs.length}`,
    );
  }
  for (const input of inputs) {
    const isOwn = !WGSL.has(input) && !REFUSED.has(input);
    if (NAME.test(input) && isOwn && !collides(input, inputs)) continue;
    throw invalid(
      name,
      `an input has a name of its own that is no word of WGSL, got '${input}'`,
    );
  }
}

/** Whether what looks at inputs would have one name twice, or that of another thing. */
function collides(input: string, inputs: readonly string[]): boolean {
  const names = ["_at", "_len", "_rows", "_cols"].map((end) => input + end);
  const isOther = inputs.some((other) => names.includes(other));
  return isOther || input === "at" || input === "params";
}

function checkCode(
  name: string,
  code: string,
  params: readonly string[],
): Source {
  try {
    return readSource(code, params);
  } catch (error) {
    if (error instanceof Problem) throw located(name, code, error);
    throw error;
  }
}

/** The error of a problem, with the line in question. */
function located(
  name: string,
  code: string,
  problem: Problem,
): FramebatchError {
  const before = code.slice(0, problem.at).split("\n");
  const column = before[before.length - 1].length + 1;
  const line = code.split("\n")[before.length - 1].trim();
  const place = `${name}:${before.length}:${column}`;
  return invalid(place, `${problem.message}\n  ${line}`);
}
