// What defines a kernel: checked, and numbered by its content, so that equal definitions are
// one kernel.
//
// What may stand in the code is said in `source.ts`. How a kernel is called is in `kernel.ts`.

import { type FramebatchError, invalid, kindOf } from "../checks/errors.js";
import { checkOptions } from "../checks/options.js";
import { Problem, readSource, type Source } from "./source.js";

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
  /** The values that `element` takes, by the names of its parameters. */
  inputs: Of;
  /** Numbers that come with each call, in the code `params.name`. They compile nothing. Default: none. */
  params?: With;
  /** What `element` gives. */
  output: "f32";
  /**
   * WGSL: a function `element`, which takes 1 to 8 values and gives one, and the functions,
   * structs, aliases and constants that it needs. It is a body and no more: attributes,
   * bindings, barriers, atomics and variables outside of functions are refused.
   */
  code: string;
  /**
   * How many passes the loops of one element may make together. An element whose loops would
   * make more is NaN. Default: 2²⁰.
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
}

/** A definition that was checked. */
export interface Checked {
  /** The number of its content, by which chains name it. */
  readonly number: number;
  readonly name: string;
  readonly source: Source;
  readonly maxPasses: number;
  /** The names and types of the params. */
  readonly params: readonly (readonly [string, NumberType])[];
  readonly cpu: CpuFunction | undefined;
}

/** Computes an element of its values and params. */
export type CpuFunction = (
  values: Record<string, number>,
  params: Record<string, number>,
) => number;

const NAMES: Record<keyof KernelDefinition<Inputs, Params>, true> = {
  name: true,
  inputs: true,
  params: true,
  output: true,
  code: true,
  maxPasses: true,
  cpu: true,
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
  const { name, inputs, params = {}, output, code, cpu } = definition;
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
  if (cpu !== undefined && typeof cpu !== "function") {
    throw invalid(name, `cpu must be a function, got ${kindOf(cpu)}`);
  }
  if (output !== "f32") {
    throw invalid(name, `output must be 'f32', got '${String(output)}'`);
  }
  if (typeof code !== "string") {
    throw invalid(name, `code must be a string of WGSL, got ${kindOf(code)}`);
  }
  const named = checkParams(name, params);
  const source = checkCode(name, code, Object.keys(params));
  checkInputs(name, inputs, source.inputs);
  const content = JSON.stringify([
    name,
    source.code,
    source.inputs.length,
    maxPasses,
    named,
  ]);
  let number = numbers.get(content);
  if (number === undefined) numbers.set(content, (number = numbers.size));
  return { number, name, source, maxPasses, params: named, cpu };
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
    if (!NAME.test(param)) {
      throw invalid(
        name,
        `the names of params must be letters, digits and underscores, got '${param}'`,
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
  taken: readonly string[],
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
  const isSame =
    given.length === taken.length &&
    given.every((input) => taken.includes(input));
  if (isSame) return;
  throw invalid(
    name,
    `inputs are (${given.join(", ")}), but \`element\` takes (${taken.join(", ")})`,
  );
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
