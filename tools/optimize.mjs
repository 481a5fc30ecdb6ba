// wasm-opt, as the package is made with it.

import { execFileSync } from "node:child_process";

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
// moves there where that is about the call's own size. Passes are repeated until they
// find nothing more. And nothing lies in the first kilobyte, where the stack would end.
const SMALL = [
  "-Os",
  "--converge",
  "--low-memory-unused",
  "--one-caller-inline-max-function-size=24",
];

/** Optimises a module for size; `features` are what it has besides, `more` is for wasm-opt. */
export function optimize(from, to, features, more) {
  execFileSync("wasm-opt", [
    ...[...FEATURES, ...features].map((feature) => `--enable-${feature}`),
    ...[...SMALL, ...more, from, "-o", to],
  ]);
}
