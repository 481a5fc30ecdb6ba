// wasm-opt, as the package is made with it.

import { execFile } from "node:child_process";
import { promisify } from "node:util";

// What rustc turns on for wasm32-unknown-unknown, by wasm-opt's names.
const FEATURES = [
  "bulk-memory",
  "bulk-memory-opt",
  "call-indirect-overlong",
  "multivalue",
  "mutable-globals",
  "nontrapping-float-to-int",
  "reference-types",
  "sign-ext",
];

// What is inlined compresses worse than a call: a function with one caller only
// moves there where that is about the call's own size. And nothing lies in the first
// kilobyte, where the stack would end.
// Locals share numbers as far as a search finds that they can, and those that are used
// most come first, so that functions look alike; what LLVM computed twice stays so,
// because a local for it is larger. A second round of all passes would take as long as the
// first, for 0.1 %.
const SMALL = [
  "-Os",
  "--low-memory-unused",
  "--one-caller-inline-max-function-size=24",
  "--coalesce-locals-learning",
  "--reorder-locals",
  "--skip-pass=local-cse",
];

/** Optimises a module for size; `features` are what it has besides, `more` is for wasm-opt. */
export function optimize(from, to, features, more) {
  return run(features, [...SMALL, ...more, from, "-o", to]);
}

/** Sorts a module's functions by their names, and drops these. */
export function arrange(from, to, features) {
  const passes = ["--reorder-functions-by-name", "--strip-debug"];
  return run(features, [...passes, from, "-o", to]);
}

function run(features, rest) {
  const enabled = [...FEATURES, ...features];
  return promisify(execFile)("wasm-opt", [
    ...enabled.map((feature) => `--enable-${feature}`),
    ...rest,
  ]);
}
