// What the code says of a kernel: what its function takes and gives, and which params it reads.
//
// This is for the form, which has a field for each: a definition is checked by the library.

import type { Output, ValueType } from "framebatch/kernels";

export interface Signature {
  /** What the function is of; undefined where there is none that can be read. */
  readonly form: "element" | "at" | undefined;
  /** What `element` takes. What `at` looks at stands nowhere in the code but in its calls. */
  readonly inputs: Readonly<Record<string, ValueType>>;
  readonly output: Output;
  /** The params that the code names. */
  readonly params: readonly string[];
}

const HEAD = /\bfn\s+(element|at)\s*\(([^)]*)\)\s*(?:->\s*([\w<>\s]+?)\s*)?\{/;

export function signatureOf(code: string): Signature {
  const text = withoutComments(code);
  const [, form, taken = "", result = ""] = HEAD.exec(text) ?? [];
  const params = Array.from(
    text.matchAll(/\bparams\s*\.\s*([a-zA-Z]\w*)/g),
    ([, name]) => name,
  );
  return {
    form: form as Signature["form"],
    inputs: form === "element" ? typed(taken) : {},
    output: outputOf(text, result),
    params: [...new Set(params)],
  };
}

/** A value type, whichever way it is written; undefined for any other. */
function valueType(text: string): ValueType | undefined {
  const bare = text
    .replace(/\s/g, "")
    .replace(/^(vec[234])<([fiu])32>$/, "$1$2");
  return /^(?:[fiu]32|vec[234][fiu])$/.test(bare)
    ? (bare as ValueType)
    : undefined;
}

/** The values among `name: type` between commas. */
function typed(list: string): Record<string, ValueType> {
  const values: Record<string, ValueType> = {};
  for (const part of list.split(",")) {
    const [name, type = ""] = part.split(":").map((word) => word.trim());
    const known = valueType(type);
    if (known !== undefined) values[name] = known;
  }
  return values;
}

function outputOf(text: string, result: string): Output {
  const known = valueType(result);
  if (known !== undefined) return known;
  const struct = new RegExp(
    `\\bstruct\\s+${result.trim() || "-"}\\s*\\{([^}]*)\\}`,
  ).exec(text);
  // Where this is not what the function gives, the library says so.
  return struct === null ? "f32" : typed(struct[1]);
}

const withoutComments = (code: string): string =>
  code.replace(/\/\/.*|\/\*[^]*?\*\//g, " ");
