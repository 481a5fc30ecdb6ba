// Empties functions of the WebAssembly that only say why it is about to trap, or that
// nothing calls: each becomes a bare trap.
//
// Nobody hears a panic in the browser: there is no hook, and what a page sees is the
// trap. So neither the text nor the place of one is needed, nor what formats
// them; wasm-opt then finds that nothing uses these, nor their arguments at each
// check. It runs before wasm-opt and needs the names of functions, which are
// stripped later.

import { blankTexts } from "./strip-panic-texts.mjs";
import {
  functions,
  imports,
  readNumber,
  readText,
  section,
  sections,
  writeNumber,
} from "./wasm-sections.mjs";

/** What checks call when they fail, in every crate, by the names without hashes. */
const PANICS = [
  /^core::panicking::/,
  /^core::(option|result)::(unwrap|expect)_failed$/,
  /^core::slice::index::slice_\w+_fail/,
  /^alloc::raw_vec::(handle_error|capacity_overflow)$/,
  // What carries a panic on, and what it carries.
  /^std::panicking::/,
  /^<std::panicking::/,
];

/**
 * What becomes a trap, by crate. Each must match something, or this fails: the names
 * are the libraries' and may change with them.
 */
export const TRAPS = {
  framebatch: [
    ...PANICS,
    /^core::cell::panic_already_/,
    /^core::slice::copy_from_slice_impl::len_mismatch_fail$/,
    /^alloc::alloc::handle_alloc_error$/,
    /^<alloc::vec::Vec<.*>>::\w+::assert_failed$/,
    // What only panics print: no text of the core's own is made with Debug. (That
    // of an error of the browser's stands in wgpu's errors, too.)
    /^<(?!wasm_bindgen::JsValue ).* as core::fmt::Debug>::fmt$/,
    /^<core::fmt::builders::PadAdapter /,
    /^<wgpu::api::buffer::Subrange /,
  ],
  // A small crate, in which not everything can fail.
  embeddings: [new RegExp(PANICS.map(({ source }) => source).join("|"))],
  tokenizers: [new RegExp(PANICS.map(({ source }) => source).join("|"))],
};

const TRAP = Uint8Array.of(3, 0, 0x00, 0x0b); // No locals, `unreachable`, `end`.

/** The module with the functions of those names emptied, and without their texts. */
export function emptied(wasm, patterns) {
  const names = functionNames(wasm);
  const unused = new Set(patterns);
  const printers = new Map();
  const [left, gone] = [[], []];
  let index = 0;
  const parts = [wasm.subarray(0, 8)];
  for (const { id, body, whole } of sections(wasm)) {
    if (id === 2) index = [...imports(body)].length;
    if (id !== 10) {
      parts.push(whole);
      continue;
    }
    const [count] = readNumber(body, 0);
    const bodies = [writeNumber(count)];
    for (const { body: instructions, whole } of functions(body)) {
      const name = names.get(index);
      const pattern = name && patterns.find((pattern) => pattern.test(name));
      unused.delete(pattern);
      if (pattern) printers.set(index, name);
      (pattern ? gone : left).push(instructions);
      bodies.push(pattern ? TRAP : whole);
      index += 1;
    }
    parts.push(section(id, Buffer.concat(bodies)));
  }
  if (unused.size > 0) {
    throw new Error(`no function is named ${[...unused].join(", ")}`);
  }
  const module = Buffer.concat(parts);
  if (blankTexts(module, { left, gone, names: printers }) === 0) {
    throw new Error("no panic has a text");
  }
  return module;
}

/** The functions' names by their number, without the hashes of crates and of themselves. */
export function functionNames(wasm) {
  const FUNCTIONS = 1;
  const names = new Map();
  for (const { id, body } of sections(wasm)) {
    if (id !== 0) continue;
    let [title, at] = readText(body, 0);
    if (title !== "name") continue;
    while (at < body.length) {
      const [size, start] = readNumber(body, at + 1);
      if (body[at] === FUNCTIONS) readNames(body.subarray(start, start + size));
      at = start + size;
    }
  }
  if (names.size === 0) throw new Error("the module has no names");
  return names;

  function readNames(body) {
    let [left, at] = readNumber(body, 0);
    for (; left > 0; left -= 1) {
      const [index, afterIndex] = readNumber(body, at);
      const [name, end] = readText(body, afterIndex);
      names.set(
        index,
        name.replace(/\[[0-9a-f]{16}\]/g, "").replace(/::h[0-9a-f]{16}$/, ""),
      );
      at = end;
    }
  }
}
