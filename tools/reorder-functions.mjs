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
/** Bytes that are looked for together: six are exact as a number. */
const SEQUENCE = 6;
/** Bytes of functions that gzip still sees, about. */
const WINDOW = 32_000;
/** What a sequence counts that one function has: a whole number, so that sums are exact. */
const WEIGHT = 2 ** 20;

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
  const { all, count } = sequences(bodies);
  const holders = Array.from({ length: count }, () => []);
  all.forEach((own, number) => own.forEach((at) => holders[at].push(number)));
  const weights = holders.map(({ length }) =>
    length > 1 ? Math.round(WEIGHT / Math.sqrt(length)) : 0,
  );
  const sums = all.map((own) =>
    own.reduce((sum, at) => sum + weights[at], WEIGHT),
  );
  /** How many functions of the window have a sequence, and what a function has of those. */
  const seen = new Int32Array(count);
  const common = new Float64Array(bodies.length);
  const add = (sequence, weight) => {
    for (const number of holders[sequence]) common[number] += weight;
  };
  const enter = (number) => {
    for (const at of all[number]) if (seen[at]++ === 0) add(at, weights[at]);
  };
  const leave = (number) => {
    for (const at of all[number]) if (--seen[at] === 0) add(at, -weights[at]);
  };
  const left = new Set(bodies.keys());
  const order = [];
  let [oldest, bytes] = [0, 0];
  let next = best(left, (number) => bodies[number].length);
  while (next !== undefined) {
    order.push(next);
    left.delete(next);
    enter(next);
    for (
      bytes += bodies[next].length;
      bytes > WINDOW && oldest < order.length - 1;
      oldest += 1
    ) {
      bytes -= bodies[order[oldest]].length;
      leave(order[oldest]);
    }
    next = best(left, (number) => common[number] / sums[number]);
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

/** The sequences of each function, once each, by numbers from zero that are given to them here. */
function sequences(bodies) {
  const numbers = new Map();
  const all = bodies.map((body) => {
    const own = new Set();
    for (let at = 0; at + SEQUENCE <= body.length; at += 1) {
      const bytes = body.readUIntBE(at, SEQUENCE);
      if (!numbers.has(bytes)) numbers.set(bytes, numbers.size);
      own.add(numbers.get(bytes));
    }
    return Int32Array.from(own);
  });
  return { all, count: numbers.size };
}
