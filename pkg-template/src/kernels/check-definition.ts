// Checks definitions of kernels, and numbers their contents.
//
// A wrong definition is thrown as a sentence, with the line and column of the code where it is the
// code that is wrong. What may stand in code is said in `source.ts`.

import { type FramebatchError, invalid, kindOf } from "../checks/errors.js";
import { checkOptions } from "../checks/options.js";
import type {
  AnyDefinition,
  Checked,
  ElementFunction,
  Inputs,
  KernelResult,
  KernelTensor,
  Output,
  Params,
  PlaceFunction,
  ValueType,
} from "./definition.js";
import {
  type Beside,
  MAX_INPUTS,
  Problem,
  readSource,
  SCALARS,
  type Source,
  type Type,
  type Typed,
  typeOf,
} from "./source.js";
import { KEYWORDS, REFUSED, WGSL } from "./words.js";

const NAMES: Record<keyof AnyDefinition, true> = {
  name: true,
  inputs: true,
  shared: true,
  constants: true,
  params: true,
  output: true,
  code: true,
  maxPasses: true,
  flops: true,
  cpu: true,
  cpuAt: true,
};

const MAX_PASSES = 2 ** 20;
const MAX_PARAMS = 16;
const NAME = /^[a-zA-Z][a-zA-Z0-9_]*$/;

/** The numbers of all contents. */
const numbers = new Map<string, number>();

/** Checks a definition. Throws where it is wrong, with the line and column of the code. */
export function checkDefinition(definition: AnyDefinition): Checked {
  checkOptions("kernel", definition, NAMES);
  const { name, code, params = {}, constants = {} } = definition;
  const { cpu, cpuAt } = definition;
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
  const { flops } = definition;
  if (
    flops !== undefined &&
    (!Number.isInteger(flops) || flops < 0 || flops > 2 ** 32 - 2)
  ) {
    throw invalid(
      name,
      `flops must be a whole number from 0 to 2^32 - 2, got ${flops}`,
    );
  }
  for (const [option, given] of Object.entries({ cpu, cpuAt })) {
    if (given === undefined || typeof given === "function") continue;
    throw invalid(name, `${option} must be a function, got ${kindOf(given)}`);
  }
  if (typeof code !== "string") {
    throw invalid(name, `code must be a string of WGSL, got ${kindOf(code)}`);
  }
  const named = checkParams(name, params);
  const source = checkCode(name, code, {
    params: named.map(([param]) => param),
    constants: checkConstants(name, constants),
  });
  const tensors = checkTensors(name, definition, source);
  checkOutput(name, definition.output, source);
  const isAt = source.form === "at";
  if ((isAt ? cpu : cpuAt) !== undefined) {
    throw invalid(
      name,
      "cpu is for the function `element`, and cpuAt for `at`",
    );
  }
  const content = [name, source.code, tensors, maxPasses, named, flops];
  const results = source.results.map(([field, type]): KernelResult => {
    const isTelling = !source.hasLoops || type.scalar === "f32";
    return {
      field,
      type,
      number: numberOf([...content, field]),
      toldBy: isTelling ? undefined : numberOf([...content, type.lanes]),
    };
  });
  return {
    name,
    source,
    tensors,
    results,
    maxPasses,
    flops,
    params: named,
    cpu: cpu as ElementFunction | undefined,
    cpuAt: cpuAt as PlaceFunction | undefined,
  };
}

function numberOf(content: readonly unknown[]): number {
  const key = JSON.stringify(content);
  let number = numbers.get(key);
  if (number === undefined) numbers.set(key, (number = numbers.size));
  return number;
}

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
    if (!SCALARS.includes(type)) {
      throw invalid(
        name,
        `param ${param} must be 'f32', 'i32' or 'u32', got '${String(type)}'`,
      );
    }
  }
  return named;
}

function checkConstants(
  name: string,
  constants: Beside["constants"],
): Beside["constants"] {
  if (typeof constants !== "object" || constants === null) {
    throw invalid(
      name,
      `constants must be an object, got ${kindOf(constants)}`,
    );
  }
  for (const [constant, value] of Object.entries(constants)) {
    if (typeof value === "number" || typeof value === "boolean") continue;
    throw invalid(
      name,
      `constant ${constant} must be a number or a boolean, got ${kindOf(value)}`,
    );
  }
  return constants;
}

// The tensors that the kernel takes: values of `element` in the order of its parameters, or what
// `at` looks at, and then shared ones.
function checkTensors(
  name: string,
  { inputs, shared = {} }: AnyDefinition,
  { form, inputs: taken }: Source,
): KernelTensor[] {
  const given = typesOf(name, "input", inputs);
  const isAt = form === "at";
  if (!isAt) checkValues(name, given, taken);
  const looked = [...(isAt ? given : []), ...typesOf(name, "shared", shared)];
  const values = isAt ? [] : taken.map(([own]) => own);
  const names = looked.map(([own]) => own);
  checkLookedAt(name, names, values);
  const tensors = [
    ...(isAt ? [] : taken).map(([own, type]) => tensor(own, type, false)),
    ...looked.map(([own, type]) => tensor(own, type, true)),
  ];
  if (isAt && given.length === 0) {
    throw invalid(name, `\`at\` looks at 1 to ${MAX_INPUTS} inputs, got 0`);
  }
  if (tensors.length <= MAX_INPUTS) return tensors;
  throw invalid(
    name,
    `a kernel takes at most ${MAX_INPUTS} tensors, shared ones included, got ${tensors.length}`,
  );
}

const tensor = (name: string, type: Type, isWhole: boolean): KernelTensor => ({
  name,
  type,
  isWhole,
});

function typesOf(
  name: string,
  what: "input" | "shared",
  inputs: Inputs,
): Typed[] {
  if (typeof inputs !== "object" || inputs === null) {
    const option = what === "input" ? "inputs" : what;
    throw invalid(name, `${option} must be an object, got ${kindOf(inputs)}`);
  }
  return Object.entries(inputs).map(([input, given]): Typed => {
    const type = typeOf(given);
    if (type !== undefined) return [input, type];
    throw invalid(
      name,
      `${what} ${input} must be ${VALUE_TYPES}, got '${String(given)}'`,
    );
  });
}

function checkValues(
  name: string,
  given: readonly Typed[],
  taken: readonly Typed[],
): void {
  const named = new Map(given);
  const isSame =
    given.length === taken.length && taken.every(([own]) => named.has(own));
  if (!isSame) {
    const list = (values: readonly Typed[]): string =>
      values.map(([own]) => own).join(", ");
    throw invalid(
      name,
      `inputs are (${list(given)}), but \`element\` takes (${list(taken)})`,
    );
  }
  for (const [input, type] of taken) {
    if (named.get(input) === type) continue;
    throw invalid(
      name,
      `input ${input} is '${named.get(input)!.name}', but \`element\` takes a ${type.name}`,
    );
  }
}

function checkOutput(name: string, output: Output, { results }: Source): void {
  const given: [string, ValueType][] =
    typeof output === "object" && output !== null
      ? Object.entries(output)
      : [["", output]];
  for (const [, type] of given) {
    if (typeOf(type) !== undefined) continue;
    throw invalid(
      name,
      `output must be ${VALUE_TYPES}, or an object of these, got '${String(type)}'`,
    );
  }
  const isSame =
    given.length === results.length &&
    given.every(([field, type]) =>
      results.some(([own, of]) => own === field && of === typeOf(type)),
    );
  if (isSame) return;
  const gives = results.map(([field, type]) =>
    field === "" ? `'${type.name}'` : `${field}: '${type.name}'`,
  );
  const text = results[0][0] === "" ? gives[0] : `{ ${gives.join(", ")} }`;
  throw invalid(name, `output must be what the function gives: ${text}`);
}

const VALUE_TYPES = "'f32', 'i32', 'u32' or a vector of these such as 'vec3f'";

function checkLookedAt(
  name: string,
  inputs: readonly string[],
  values: readonly string[],
): void {
  for (const [at, input] of inputs.entries()) {
    const isOwn = !WGSL.has(input) && !REFUSED.has(input);
    const isSingle = inputs.indexOf(input) === at && !values.includes(input);
    if (NAME.test(input) && isOwn && isSingle && !collides(input, inputs)) {
      continue;
    }
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
  return isOther || ["at", "element", "params"].includes(input);
}

function checkCode(name: string, code: string, beside: Beside): Source {
  try {
    return readSource(code, beside);
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
