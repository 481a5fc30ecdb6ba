// Blanks the places in source files that panics name, once nothing prints them.
//
// A place is four words: the address and length of a file's name, line and column.
// Only what is exactly that is blanked, and the names with it; zeros compress to
// nothing. Functions that would read them are traps by now (`strip-panics.mjs`).

import { readNumber, sections } from "./wasm-sections.mjs";

const WORD = 4;
const PLACE = 4 * WORD;
const FILE = /^(src|library|\/[\w.\/-]+|[A-Z]:\\[\w.\\-]+)\/[\w.\/-]+\.rs$/;
const LONGEST = 300;
const MOST_LINES = 100_000;
const MOST_COLUMNS = 1_000;

/** Blanks them in a module's data, in place; how many there were. */
export function blankPlaces(wasm) {
  const segments = readSegments(wasm);
  const names = new Map();
  let places = 0;
  for (const { address, bytes } of segments) {
    // The zeros that a segment would end with are left out of it.
    const view = new DataView(new ArrayBuffer(bytes.length + PLACE));
    new Uint8Array(view.buffer).set(bytes);
    const first = -address & (WORD - 1);
    for (let at = first; at < bytes.length; at += WORD) {
      const [start, length, line, column] = [0, 1, 2, 3].map((word) =>
        view.getUint32(at + word * WORD, true),
      );
      if (length > LONGEST || line === 0 || line > MOST_LINES) continue;
      if (column === 0 || column > MOST_COLUMNS) continue;
      const name = find(segments, start, length);
      if (name === undefined) continue;
      if (!names.has(start) && !FILE.test(Buffer.from(name).toString()))
        continue;
      names.set(start, name);
      bytes.subarray(at, at + PLACE).fill(0);
      places += 1;
    }
  }
  for (const name of names.values()) name.fill(0);
  return places;
}

function find(segments, start, length) {
  for (const { address, bytes } of segments) {
    const at = start - address;
    if (at >= 0 && at + length <= bytes.length) {
      return bytes.subarray(at, at + length);
    }
  }
  return undefined;
}

// Each has a constant address and lies in the one memory there is.
function readSegments(wasm) {
  const { body } = [...sections(wasm)].find(({ id }) => id === 11);
  const segments = [];
  let [left, at] = readNumber(body, 0);
  for (; left > 0; left -= 1) {
    const [CONST, END] = [0x41, 0x0b];
    const [address, afterAddress] = readNumber(body, at + 2);
    if (
      body[at] !== 0 ||
      body[at + 1] !== CONST ||
      body[afterAddress] !== END
    ) {
      throw new Error("a data segment lies at no constant address");
    }
    const [size, start] = readNumber(body, afterAddress + 1);
    segments.push({ address, bytes: body.subarray(start, start + size) });
    at = start + size;
  }
  return segments;
}
