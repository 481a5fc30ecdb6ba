// Gives the functions that cross into the WebAssembly and out of it short names.
//
// wasm-bindgen names each after its signature and a hash, or after its place, in the
// module and again in the glue: 5 KB gzip of the package. The short ones follow the
// glue's order, so that two builds of one source can share their glue. What the
// module does not import leaves the glue. Nothing else is changed, and module and
// glue must agree on every name or this fails.

import {
  imports,
  readNumber,
  readText,
  section,
  sections,
  writeNumber,
  writeText,
} from "./wasm-sections.mjs";

/**
 * Renames the imports of `wasm` (bytes), its exported closures, and the same names in
 * `glue` (text).
 * @returns {{ wasm: Uint8Array, glue: string }}
 */
export function shorten(wasm, glue) {
  const names = new Map();
  const renamed = renameIn(needed(wasm, glue), names);
  const parts = [wasm.subarray(0, 8)];
  for (const { id, body, whole } of sections(wasm)) {
    const rename = { 2: renameImports, 7: renameExports }[id];
    parts.push(rename ? section(id, rename(body, names)) : whole);
  }
  return { wasm: Buffer.concat(parts), glue: renamed };
}

// What the optimiser found that nothing calls has no import any more.
function needed(wasm, glue) {
  const { body } = [...sections(wasm)].find(({ id }) => id === 2);
  const names = new Set([...imports(body)].map(({ name }) => name));
  return glue.replace(
    /^ {8}(__wb\w+): function\([^]*?^ {8}\},\n/gm,
    (text, name) => (names.has(name) ? text : ""),
  );
}

// In the glue each import is a property of one object, and stands there once; a
// closure's export has a function of its name around it.
function renameIn(glue, names) {
  const short = (name) => {
    if (!names.has(name)) names.set(name, `_${names.size.toString(36)}`);
    return names.get(name);
  };
  return glue
    .replace(
      /^(\s+)(__wb\w+)(?=: function|\()/gm,
      (_, indent, name) => indent + short(name),
    )
    .replace(
      /\b(__wasm_bindgen_func_elem_\d+|wasm_bindgen__convert__closures\w+__h[0-9a-f]{16})\b/g,
      short,
    );
}

function renameImports(body, names) {
  const all = [...imports(body)];
  const parts = all.map(({ module, name, type }) => {
    if (!names.has(name)) throw new Error(`the glue has no ${name}`);
    return Buffer.concat([module, writeText(names.get(name)), type]);
  });
  return Buffer.concat([writeNumber(all.length), ...parts]);
}

function renameExports(body, names) {
  let [left, at] = readNumber(body, 0);
  const parts = [writeNumber(left)];
  for (; left > 0; left -= 1) {
    const [name, afterName] = readText(body, at);
    const [, end] = readNumber(body, afterName + 1);
    parts.push(writeText(names.get(name) ?? name));
    parts.push(body.subarray(afterName, end));
    at = end;
  }
  return Buffer.concat(parts);
}
