// Lays the functions of a module in an order that compresses well.
//
// gzip finds what it has seen within 32 KB, and rustc's order is that of crates and
// hashes. So the next function is always the one that has most in common with those
// just laid: sequences of bytes, which count more the fewer functions have them. Only
// the order changes: wasm-opt moves the functions, by names that are given here.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { arrange } from "./optimize.mjs";
import {
  functions,
  imports,
  readText,
  section,
  sections,
  writeNumber,
  writeText,
} from "./wasm-sections.mjs";

const [CUSTOM, IMPORTS, CODE] = [0, 2, 10];
/** Bytes that are looked for together. */
const SEQUENCE = 5;
/** Bytes of functions that gzip still sees, about. */
const WINDOW = 32_000;
/** Sequences are told apart by a hash of so many bits. */
const HASH_BITS = 18;

/** Orders the functions of the module in `file`, which has these features. */
export async function order(file, features) {
  const wasm = readFileSync(file);
  const named = `${file}.named`;
  writeFileSync(named, rename(wasm));
  await arrange(named, file, features);
  rmSync(named);
}

/** The module with names by which its functions are in order when they are sorted. */
function rename(wasm) {
  const parts = [wasm.subarray(0, 8)];
  let [imported, bodies] = [0, []];
  for (const { id, body, whole } of sections(wasm)) {
    if (id === CUSTOM && readText(body, 0)[0] === "name") continue;
    if (id === IMPORTS) imported = [...imports(body)].length;
    if (id === CODE) bodies = [...functions(body)].map(({ body }) => body);
    parts.push(whole);
  }
  const names = new Array(bodies.length);
  chain(bodies).forEach((number, place) => {
    names[number] = [imported + number, `f${String(place).padStart(5, "0")}`];
  });
  const list = names.map(([number, name]) =>
    Buffer.concat([writeNumber(number), writeText(name)]),
  );
  const FUNCTIONS = 1;
  const content = section(
    FUNCTIONS,
    Buffer.concat([writeNumber(list.length), ...list]),
  );
  parts.push(section(CUSTOM, Buffer.concat([writeText("name"), content])));
  return Buffer.concat(parts);
}

/** The numbers of the functions, beginning with the longest. */
function chain(bodies) {
  const all = bodies.map(sequences);
  const holders = new Int32Array(1 << HASH_BITS);
  for (const own of all) for (const hash of own) holders[hash] += 1;
  const weights = Float64Array.from(holders, (count) =>
    count > 1 ? 1 / Math.sqrt(count) : 0,
  );
  const sums = all.map((own) => own.reduce((sum, at) => sum + weights[at], 1));
  const seen = new Int32Array(1 << HASH_BITS);
  /** The share of a function that was seen. */
  const share = (number) => {
    let sum = 0;
    for (const hash of all[number]) if (seen[hash] > 0) sum += weights[hash];
    return sum / sums[number];
  };
  const left = new Set(bodies.keys());
  const order = [];
  let [oldest, bytes] = [0, 0];
  let next = best(left, (number) => bodies[number].length);
  while (next !== undefined) {
    order.push(next);
    left.delete(next);
    for (const hash of all[next]) seen[hash] += 1;
    for (
      bytes += bodies[next].length;
      bytes > WINDOW && oldest < order.length - 1;
      oldest += 1
    ) {
      bytes -= bodies[order[oldest]].length;
      for (const hash of all[order[oldest]]) seen[hash] -= 1;
    }
    next = best(left, share);
  }
  return order;
}

function best(numbers, worth) {
  let [found, most] = [undefined, -1];
  for (const number of numbers) {
    const own = worth(number);
    if (own > most) [found, most] = [number, own];
  }
  return found;
}

/** The sequences of a function's bytes, each once, as hashes. */
function sequences(body) {
  const own = new Set();
  for (let at = 0; at + SEQUENCE <= body.length; at += 1) {
    // FNV-1a, folded.
    let hash = 0x811c9dc5;
    for (let i = 0; i < SEQUENCE; i += 1) {
      hash = Math.imul(hash ^ body[at + i], 0x01000193);
    }
    own.add((hash ^ (hash >>> HASH_BITS)) & ((1 << HASH_BITS) - 1));
  }
  return Int32Array.from(own);
}
