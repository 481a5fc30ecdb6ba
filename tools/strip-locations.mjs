// Blanks the locations in source files that panics name, once nothing prints these.
//
// A location is four words: the address and length of a file's name, line and column.
// Only words that are exactly this are blanked, and the names with them; zeros compress
// to nothing. Functions that would read a location are traps by now (`strip-panics.mjs`).

import { readData, segments } from "./wasm-sections.mjs";

const WORD = 4;
const LOCATION = 4 * WORD;
const FILE = /^(src|library|\/[\w.\/-]+|[A-Z]:\\[\w.\\-]+)\/[\w.\/-]+\.rs$/;
const LONGEST = 300;
const MOST_LINES = 100_000;
const MOST_COLUMNS = 1_000;

/** Blanks the locations in a module's data, in place; how many there were. */
export function blankLocations(wasm) {
  const all = segments(wasm);
  const names = new Map();
  let locations = 0;
  for (const { address, bytes } of all) {
    // The zeros that a segment would end with are left out of it.
    const view = new DataView(new ArrayBuffer(bytes.length + LOCATION));
    new Uint8Array(view.buffer).set(bytes);
    const first = -address & (WORD - 1);
    for (let at = first; at < bytes.length; at += WORD) {
      const [start, length, line, column] = [0, 1, 2, 3].map((word) =>
        view.getUint32(at + word * WORD, true),
      );
      if (length > LONGEST || line === 0 || line > MOST_LINES) continue;
      if (column === 0 || column > MOST_COLUMNS) continue;
      const name = readData(all, start, length);
      if (name === undefined) continue;
      if (!names.has(start) && !FILE.test(Buffer.from(name).toString()))
        continue;
      names.set(start, name);
      bytes.subarray(at, at + LOCATION).fill(0);
      locations += 1;
    }
  }
  for (const name of names.values()) name.fill(0);
  return locations;
}
