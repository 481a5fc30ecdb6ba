// Compiles the face into a temporary folder, beside a core written in JavaScript,
// and runs the tests there. `npm test` runs this; `npm test -- cost` measures, and
// `npm test -- fuzz` gives strangers' files to the face, within little memory.

import { execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { tsc } from "./tsc.mjs";

const CHOICES = {
  cost: ["cost.mjs"],
  fuzz: ["--max-old-space-size=512", "fuzz.test.mjs"],
};

const here = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "framebatch-face-"));
// Laid out as an application has it, so that types resolve as they will there.
const installed = join(folder, "node_modules", "framebatch");
try {
  build();
  process.exitCode = run(CHOICES[process.argv[2]] ?? ["--test", ...tests()]);
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
  // What an application brings along.
  for (const name of ["react", "@types/react"]) {
    const file = createRequire(import.meta.url).resolve(`${name}/package.json`);
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(dirname(file), link);
  }
  const dist = join(installed, "dist");
  execFileSync(process.execPath, [tsc, "-p", dirname(here), "--outDir", dist], {
    stdio: "inherit",
  });
}

function tests() {
  return readdirSync(here).filter((name) => name.endsWith(".test.mjs"));
}

function run(args) {
  const env = { ...process.env, FRAMEBATCH_FACE: installed };
  return (
    spawnSync(process.execPath, args, { cwd: here, env, stdio: "inherit" })
      .status ?? 1
  );
}
