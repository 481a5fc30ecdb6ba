// What the WebAssembly's bytes are: by part of the source, as they stand in the package
// and by gzip, each part by itself. Needs what `make build` leaves.
//
//   node tools/sizes.mjs                     the core
//   node tools/sizes.mjs embeddings          what embeddings need besides
//   node tools/sizes.mjs tokenizers          tokenizers that few of them need

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { optimize } from "./optimize.mjs";
import {
  functions,
  imports,
  readNumber,
  readText,
  sections,
} from "./wasm-sections.mjs";

const CRATES = {
  framebatch: ["glue", ["simd"]],
  embeddings: ["glue-embeddings", []],
  tokenizers: ["glue-tokenizers", []],
};
const [CUSTOM, IMPORTS, CODE, DATA] = [0, 2, 10, 11];
/** What custom sections hold; of it, the names of functions. */
const FUNCTIONS = 1;
/** Modules of the crate that are told apart. */
const DEPTH = 3;

const crate = process.argv[2] ?? "framebatch";
const [folder, features] = CRATES[crate];
const work = mkdtempSync(join(tmpdir(), "sizes-"));
const file = join(work, "named.wasm");
await optimize(`target/${folder}/${crate}.trap.wasm`, file, features, ["-g"]);
const wasm = readFileSync(file);
rmSync(work, { recursive: true });

const { imported, names, bodies, data } = read(wasm);
const parts = new Map();
bodies.forEach((body, i) => {
  const part = partOf(names.get(imported + i) ?? "");
  parts.set(part, [...(parts.get(part) ?? []), body]);
});
const rows = [...parts].map(([part, bodies]) => ({
  part,
  functions: bodies.length,
  ...sizes(Buffer.concat(bodies)),
}));
rows.sort((a, b) => b.gzip - a.gzip);
rows.push({
  part: "all code",
  functions: bodies.length,
  ...sizes(Buffer.concat(bodies)),
});
rows.push({ part: "texts and tables", functions: 0, ...sizes(data) });
console.log("| part | functions | bytes | gzip |\n|---|---:|---:|---:|");
for (const { part, functions, bytes, gzip } of rows) {
  console.log(`| ${part} | ${functions || ""} | ${bytes} | ${gzip} |`);
}

function read(wasm) {
  let imported = 0;
  const names = new Map();
  const bodies = [];
  let data = Buffer.alloc(0);
  for (const { id, body } of sections(wasm)) {
    if (id === IMPORTS) imported = [...imports(body)].length;
    if (id === DATA) data = Buffer.from(body);
    if (id === CODE)
      bodies.push(...[...functions(body)].map(({ body }) => body));
    if (id === CUSTOM) readNames(body, names);
  }
  return { imported, names, bodies, data };
}

function readNames(body, names) {
  let [title, at] = readText(body, 0);
  if (title !== "name") return;
  while (at < body.length) {
    const kind = body[at];
    const [size, start] = readNumber(body, at + 1);
    at = start + size;
    if (kind !== FUNCTIONS) continue;
    let [left, place] = readNumber(body, start);
    for (; left > 0; left -= 1) {
      const [index, afterIndex] = readNumber(body, place);
      const [name, afterName] = readText(body, afterIndex);
      names.set(index, name);
      place = afterName;
    }
  }
}

/** The module of the source that a function is of, or its crate. */
function partOf(name) {
  const own = name.match(
    new RegExp(`(?:framebatch|embeddings|tokenizers)(?:_\\w+)?(?:::\\w+)*`),
  );
  if (own) return own[0].split("::").slice(0, DEPTH).join("::");
  return name.match(/^<?&?(\w+)/)?.[1] ?? "unnamed";
}

function sizes(bytes) {
  const gzip = execFileSync("gzip", ["-9", "-c"], { input: bytes }).length;
  return { bytes: bytes.length, gzip };
}
