// Blanks the texts that only panics would print.
//
// wasm-opt finds that a function that was emptied needs no arguments, but it takes no
// text out of the data. A text is blanked where its address and its length are constants
// of calls to such functions, and where nothing else that is left names the address.
// Which functions are emptied is said in `strip-panics.mjs`.

import { readData, readNumber, segments } from "./wasm-sections.mjs";

const [CONSTANT, CALL] = [0x41, 0x10];
const WORD = 4;
const TEXT = /^[\x20-\x7e]+$/;

/** Functions that take a text as its address and length, then the location in the source. */
const PLAIN = /^core::(panicking::panic|option::expect_failed)$/;
/** One that takes twice the length and 1, where the text is all that is printed. */
const FORMATTED = /^core::panicking::panic_fmt$/;

/**
 * Blanks the texts in a module's data, in place; how many bytes these were. `left` are the
 * bodies of the functions that stay, `gone` those of the emptied ones, whose names are in
 * `names` by their numbers.
 */
export function blankTexts(wasm, { left, gone, names }) {
  const all = segments(wasm);
  const named = new Map();
  const count = (address) => named.set(address, (named.get(address) ?? 0) + 1);
  for (const body of left) for (const at of constants(body)) count(at.value);
  for (const { address, bytes } of all) words(address, bytes).forEach(count);
  const texts = new Map();
  for (const body of gone) {
    for (const { address, length } of printed(body, names)) {
      texts.set(address, length);
    }
  }
  for (const body of left) {
    for (const { address, length } of printed(body, names)) {
      texts.set(address, length);
      named.set(address, named.get(address) - 1);
    }
  }
  let blanked = 0;
  for (const [address, length] of texts) {
    const text = readData(all, address, length);
    if (named.get(address) > 0 || !text) continue;
    if (!TEXT.test(Buffer.from(text).toString("latin1"))) continue;
    text.fill(0);
    blanked += length;
  }
  return blanked;
}

/** Where a body may have constants: more than it has, because instructions are not read. */
function* constants(body) {
  for (let at = 0; at < body.length; at += 1) {
    if (body[at] !== CONSTANT) continue;
    const [value, end] = readNumber(body, at + 1);
    yield { value, end };
  }
}

/** The texts that a body gives to functions that are gone: address and length. */
function* printed(body, names) {
  for (const { value: address, end } of constants(body)) {
    if (body[end] !== CONSTANT) continue;
    const [length, afterLength] = readNumber(body, end + 1);
    let at = afterLength;
    // The location in the source.
    if (body[at] === CONSTANT) at = readNumber(body, at + 1)[1];
    if (body[at] !== CALL) continue;
    const name = names.get(readNumber(body, at + 1)[0]);
    if (PLAIN.test(name)) yield { address, length };
    if (FORMATTED.test(name) && length % 2 === 1) {
      yield { address, length: (length - 1) / 2 };
    }
  }
}

/** The words of a segment, each of which may be an address. */
function words(address, bytes) {
  const first = -address & (WORD - 1);
  const count = Math.floor((bytes.length - first) / WORD);
  const copy = new Uint8Array(bytes.subarray(first, first + count * WORD));
  return new Uint32Array(copy.buffer);
}
