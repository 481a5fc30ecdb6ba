// The code of a kernel as it stands in other code, and the way back: from a place in that to the
// caller's own line.
//
// Rust has the same in `src/native/kernels/source.rs` and `src/kernel/complaint.rs`.

import type { Checked } from "./definition.js";
import { ADDED, BESIDE, MARK } from "./source.js";

/** What stands in front of the names that the code of this number gives. */
const own = (number: number): string => `k${number}_`;

/** What stands in front of the names beside these, which the code cannot say. */
const beside = (number: number): string => `c${number}_`;

const ANY_ADDED = new RegExp(`[${ADDED.join("")}]`, "g");

/** The code as it stands in kernels, with the type and the variables that belong to it. */
export function textOf({ number, source, inputs, params }: Checked): string {
  let code = `${source.code}\n`;
  if (source.form === "at") code += inputs.map(looking).join("");
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

// The functions by which `at` looks at an input: at a place, and at a row and a column, clamped
// to what there is.
const looking = (name: string, input: number): string =>
  `fn #${name}_len() -> i32 { return $count${input}(); }
fn #${name}_cols() -> i32 { return $width${input}(); }
fn #${name}_rows() -> i32 { return $count${input}() / $width${input}(); }
fn #${name}(i: i32) -> f32 { return $read${input}(clamp(i, 0, $count${input}() - 1)); }
fn #${name}_at(row: i32, col: i32) -> f32 {
return $read${input}(clamp(row, 0, #${name}_rows() - 1) * $width${input}() + clamp(col, 0, $width${input}() - 1));
}
`;

/** What a compiler says of a shader module, in the lines of the kernel that it speaks of. */
export async function explain(
  kernels: Iterable<Checked>,
  module: GPUShaderModule,
  source: string,
): Promise<string | undefined> {
  const { messages } = await module.getCompilationInfo();
  for (const { type, lineNum, linePos, message } of messages) {
    if (type !== "error") continue;
    for (const kernel of kernels) {
      const at = source.indexOf(textOf(kernel));
      if (at < 0) continue;
      const before = source.slice(0, at).split("\n").length - 1;
      const line = lineNum - 1 - before;
      const marked = kernel.source.code.split("\n")[line];
      if (marked === undefined) continue;
      const prefix = own(kernel.number);
      const { column, text } = placeIn(marked, prefix.length, linePos);
      const said = message.replaceAll(prefix, "").trim();
      return `${kernel.name}:${line + 1}:${column + 1}: ${said}\n  ${text.trim()}`;
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
