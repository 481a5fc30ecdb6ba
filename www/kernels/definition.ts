// The definition of a kernel that a sketch describes.

import type {
  KernelDefinition,
  Output,
  Params,
  ValueType,
} from "framebatch/kernels";
import { evaluated } from "./script.ts";
import { signatureOf } from "./signature.ts";
import type { Sketch } from "./sketch.ts";

export type Definition = KernelDefinition<
  Record<string, ValueType>,
  Params,
  Output
>;

/** Throws where the function for the CPU is none; what is wrong with the code, the library says. */
export function definitionOf(sketch: Sketch): Definition {
  const { name, code, cpu, params } = sketch;
  const { form, inputs, output } = signatureOf(code);
  const twin =
    cpu.trim() === "" ? undefined : evaluated("the function for the CPU", cpu);
  return {
    name,
    // The code does not name what `at` looks at: the sketch's inputs do.
    inputs: form === "at" ? ofFloats(Object.keys(sketch.inputs)) : inputs,
    params: Object.fromEntries(
      Object.entries(params).map(([param, { type }]) => [param, type]),
    ),
    output,
    code: code + "\n".repeat(timesChanged(code, cpu)),
    [form === "at" ? "cpuAt" : "cpu"]: twin,
  };
}

const ofFloats = (names: readonly string[]): Record<string, ValueType> =>
  Object.fromEntries(names.map((name) => [name, "f32"]));

/** The functions for the CPU that each code has had. */
const twins = new Map<string, string[]>();

/**
 * How many other functions for the CPU the same code had before this one. Of equal kernels the
 * first function computes where there is no GPU; with so many empty lines at its end the code
 * is that of another kernel.
 */
function timesChanged(code: string, cpu: string): number {
  const known = twins.get(code) ?? [];
  if (!known.includes(cpu)) known.push(cpu);
  twins.set(code, known);
  return known.indexOf(cpu);
}
