// Compiles the face into a temporary folder, beside a core written in JavaScript,
// and runs the tests there, those of what sessions do once more with sessions in a worker.
// `npm test` runs this, and `npm test -- queue` the files whose names have that word;
// `npm test -- cost` measures, and `npm test -- fuzz` gives strangers'
// files to the face, within little memory.

import { execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { tsc } from "./tsc.mjs";

/** Sessions with calls that nobody answers keep a process alive. */
const TESTING = ["--test", "--test-force-exit"];

const CHOICES = {
  cost: ["cost.mjs"],
  fuzz: ["--max-old-space-size=512", "fuzz.test.mjs"],
};

/** The files that the face loads, here without content: the cores above them are JavaScript. */
const FILES = [
  ...["framebatch_bg.wasm", "framebatch_bg_scalar.wasm", "embeddings_bg.wasm"],
  "tokenizers_bg.wasm",
];
const EMPTY_MODULE = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);
/** What the entries for libraries import, and what their types do. */
const LIBRARIES = [
  ...["react", "@types/react", "vue"],
  ...["@langchain/core", "@llamaindex/core"],
];
/** The tests of what sessions do wherever they live, which look at no GPUBuffer. */
const ANYWHERE = [
  ...["calls", "check", "clips", "embed-many", "embedder-compute", "events"],
  ...["fn", "motion", "priorities", "run-all", "search", "spring"],
  ...["stream", "stream-ends", "tensor", "tensor-errors"],
  ...["tensor-reading-errors", "tensor-structures"],
].map((name) => `${name}.test.mjs`);

const here = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "framebatch-face-"));
// Laid out as an application has it, so that types resolve as they will there.
const installed = join(folder, "node_modules", "framebatch");
try {
  build();
  const [, , choice] = process.argv;
  const args = CHOICES[choice];
  process.exitCode = args === undefined ? runTests(choice) : run(args);
} finally {
  rmSync(folder, { recursive: true });
}

function build() {
  mkdirSync(join(installed, "wasm"), { recursive: true });
  copyFileSync(
    join(here, "..", "package.json"),
    join(installed, "package.json"),
  );
  copyFileSync(
    join(here, "fake-core.mjs"),
    join(installed, "wasm", "framebatch.js"),
  );
  for (const name of ["fake-batches.mjs", "fake-calls.mjs", "fake-chain.mjs"]) {
    copyFileSync(join(here, name), join(installed, "wasm", name));
  }
  copyFileSync(
    join(here, "fake-embeddings.mjs"),
    join(installed, "wasm", "embeddings.js"),
  );
  copyFileSync(
    join(here, "fake-tokenizers.mjs"),
    join(installed, "wasm", "tokenizers.js"),
  );
  for (const name of FILES) {
    writeFileSync(join(installed, "wasm", name), EMPTY_MODULE);
  }
  // What an application brings along.
  const react = createRequire(import.meta.url).resolve("react/package.json");
  for (const name of LIBRARIES) {
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(dirname(react), "..", name), link);
  }
  const lancedb = join(folder, "node_modules", "@lancedb", "lancedb");
  mkdirSync(lancedb, { recursive: true });
  copyFileSync(join(here, "fake-lancedb.mjs"), join(lancedb, "embedding.js"));
  writeFileSync(
    join(lancedb, "package.json"),
    JSON.stringify({
      type: "module",
      exports: { "./embedding": "./embedding.js" },
    }),
  );
  const dist = join(installed, "dist");
  execFileSync(process.execPath, [tsc, "-p", dirname(here), "--outDir", dist], {
    stdio: "inherit",
  });
}

function tests(word = "") {
  const files = readdirSync(here).filter((name) => name.endsWith(".test.mjs"));
  return files.filter((name) => name.includes(word));
}

function runTests(word) {
  const names = tests(word);
  const anywhere = names.filter((name) => ANYWHERE.includes(name));
  const status = run([...TESTING, ...names]);
  if (status !== 0 || anywhere.length === 0) return status;
  return run([...TESTING, ...anywhere], { FRAMEBATCH_SESSIONS: "worker" });
}

function run(args, more = {}) {
  const env = { ...process.env, FRAMEBATCH_FACE: installed, ...more };
  return (
    spawnSync(process.execPath, args, { cwd: here, env, stdio: "inherit" })
      .status ?? 1
  );
}
