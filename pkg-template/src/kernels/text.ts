// The code of a kernel as it stands in other code, and the way back: from a place in that to the
// caller's own line.
//
// Rust has the same in `src/native/kernels/text.rs` and `src/kernel/complaint.rs`.

import type { Checked, KernelTensor } from "./definition.js";
import { ADDED, BESIDE, MARK, type Type } from "./source.js";

/** What stands in front of the names that the code of this number gives. */
const own = (number: number): string => `k${number}_`;

/** What stands in front of the names beside these, which the code cannot say. */
const beside = (number: number): string => `c${number}_`;

const ANY_ADDED = new RegExp(`[${ADDED.join("")}]`, "g");

/** What the core knows as a kernel of its own: one result of a kernel. */
export interface Part {
  readonly kernel: Checked;
  /** The number by which chains name the part. */
  readonly number: number;
  /** The type of the result. */
  readonly type: Type;
  /** The result's place among those of the kernel; undefined for what says whether loops were stopped. */
  readonly result: number | undefined;
}

/** The parts of a kernel: what computes each result, and what says of it that loops were stopped. */
export function partsOf(kernel: Checked): Part[] {
  return kernel.results.flatMap(({ number, type, toldBy }, result) => {
    const own: Part = { kernel, number, type, result };
    if (toldBy === undefined) return [own];
    const { lanes } = type;
    const name = lanes === 1 ? "f32" : `vec${lanes}f`;
    const told: Type = { name, scalar: "f32", lanes };
    return [{ kernel, number: toldBy, type: told, result: undefined }, own];
  });
}

/** Whether a part is of single values, so that it fuses with what is computed around it. */
export const isFused = ({ kernel, type }: Part): boolean =>
  kernel.source.form === "element" &&
  type.lanes === 1 &&
  kernel.tensors.every(({ type, isWhole }) => type.lanes === 1 && !isWhole);

/** The code as it stands in kernels, with the type and the variables that belong to it. */
export function textOf(part: Part): string {
  const { source, tensors, params } = part.kernel;
  const { number } = part;
  let code = `${source.code}\n`;
  for (const [at, tensor] of tensors.entries()) {
    if (!isFused(part)) code += valueAt(at, tensor.type);
    if (tensor.isWhole) code += looking(at, tensor);
  }
  code += resultOf(part);
  if (params.length > 0) {
    const fields = params.map(([name, type]) => `${name}: ${type}, `).join("");
    code += `struct $Params { ${fields}}\nvar<private> #params: $Params;\n`;
  }
  if (source.hasLoops) {
    code += "var<private> $passes: u32;\nvar<private> $stopped: bool;\n";
  }
  return code
    .replace(ANY_ADDED, "")
    .replaceAll(MARK, own(number))
    .replaceAll(BESIDE, beside(number));
}

// The function of one component of a result: of values, or of a place among all components.
function resultOf(part: Part): string {
  const { kernel, type, result } = part;
  const { source, tensors } = kernel;
  const { scalar, lanes } = type;
  let head = `fn $result(i: i32) -> ${scalar} { let p = i / ${lanes}; `;
  let given = ["p"];
  if (isFused(part)) {
    const taken = tensors.map(({ type }, at) => `a${at}: ${type.name}`);
    head = `fn $result(${taken.join(", ")}) -> ${scalar} { `;
    given = tensors.map((_, at) => `a${at}`);
  } else if (source.form === "element") {
    given = source.inputs.map((_, at) => `$value${at}(p % $count${at}())`);
  }
  const value = `#${source.form}(${given.join(", ")})`;
  if (result === undefined) {
    return `${head}let value = ${value}; return ${scalar}(); }\n`;
  }
  const { field } = kernel.results[result];
  const own = field === "" ? value : `${value}.${field}`;
  return lanes === 1
    ? `${head}return ${own}; }\n`
    : `${head}let value = ${own}; return value[i % ${lanes}]; }\n`;
}

// The function that reads the value at a place of a tensor.
function valueAt(at: number, { name, lanes }: Type): string {
  const parts = Array.from(
    { length: lanes },
    (_, lane) => `$read${at}(p * ${lanes} + ${lane})`,
  );
  const value = lanes === 1 ? `$read${at}(p)` : `${name}(${parts.join(", ")})`;
  return `fn $value${at}(p: i32) -> ${name} { return ${value}; }\n`;
}

// The functions by which code looks at a tensor: at a place, and at a row and a column, clamped
// to what there is.
const looking = (at: number, { name, type }: KernelTensor): string =>
  `fn #${name}_len() -> i32 { return $count${at}(); }
fn #${name}_cols() -> i32 { return $width${at}(); }
fn #${name}_rows() -> i32 { return $count${at}() / $width${at}(); }
fn #${name}(i: i32) -> ${type.name} { return $value${at}(clamp(i, 0, $count${at}() - 1)); }
fn #${name}_at(row: i32, col: i32) -> ${type.name} {
return $value${at}(clamp(row, 0, #${name}_rows() - 1) * $width${at}() + clamp(col, 0, $width${at}() - 1));
}
`;

/** What a compiler says of a shader module, in the lines of the kernel that it speaks of. */
export async function explain(
  parts: Iterable<Part>,
  module: GPUShaderModule,
  source: string,
): Promise<string | undefined> {
  const { messages } = await module.getCompilationInfo();
  for (const { type, lineNum, linePos, message } of messages) {
    if (type !== "error") continue;
    for (const part of parts) {
      const { number } = part;
      const { name, source: code } = part.kernel;
      const at = source.indexOf(textOf(part));
      if (at < 0) continue;
      const before = source.slice(0, at).split("\n").length - 1;
      const line = lineNum - 1 - before;
      const marked = code.code.split("\n")[line];
      if (marked === undefined) continue;
      const prefix = own(number);
      const { column, text } = placeIn(marked, prefix.length, linePos);
      const bare = message.replaceAll(prefix, "");
      const said = bare.replaceAll(beside(number), "").trim();
      return `${name}:${line + 1}:${column + 1}: ${said}\n  ${text.trim()}`;
    }
  }
  return undefined;
}

/** The column of a marked line that is this one where marks are prefixes, and the line itself. */
function placeIn(
  marked: string,
  prefix: number,
  linePos: number,
): { column: number; text: string } {
  let text = "";
  let printed = 1;
  let column: number | undefined;
  let isAdded = false;
  for (const next of marked) {
    if (next === ADDED[0] || next === ADDED[1]) {
      isAdded = next === ADDED[0];
      continue;
    }
    if (printed >= linePos) column ??= text.length;
    if (next === MARK || next === BESIDE) {
      printed += prefix;
      continue;
    }
    printed += next.length;
    if (!isAdded) text += next;
  }
  return { column: column ?? text.length, text };
}
