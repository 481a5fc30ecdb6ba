// Prints what a user of the package downloads, gzipped, and fails when it is too much.
//
//   node tools/size.mjs FOLDER
//
// Only what a page loads is counted: scripts and WebAssembly, not types or papers.

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

const BUDGET = 90_000;

const folder = resolve(process.argv[2] ?? "pkg");
const files = readdirSync(folder, { recursive: true })
  .filter((name) => /\.(js|wasm)$/.test(name))
  .map((name) => {
    const bytes = readFileSync(join(folder, name));
    return { name, raw: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length };
  });
const sum = (part) => part.reduce((total, file) => total + file.gzip, 0);
const wasm = files.filter((file) => file.name.endsWith(".wasm"));
const scripts = files.filter((file) => file.name.endsWith(".js"));
if (wasm.length === 0 || scripts.length === 0) {
  throw new Error(`${folder} holds no built package`);
}

const total = sum(files);
console.log(
  `package, gzip: wasm ${sum(wasm)} + js ${sum(scripts)} = ${total} bytes of ${BUDGET}`,
);
if (total > BUDGET) {
  console.error(`the package is ${total - BUDGET} bytes too large`);
  process.exit(1);
}
