// Another wasm-bindgen crate that links the library: tests/wasm-app, as an application is.
//
// Its JavaScript is the application's alone. What the package's own WebAssembly exports is
// told by lists.test.mjs.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { test } from "node:test";
import { run } from "./packed.mjs";

const TARGET = "wasm32-unknown-unknown";
const OUT = "target/wasm-app";

test("a wasm-bindgen crate that depends on framebatch builds, and computes", async () => {
  const crate = "framebatch-wasm-app";
  const words = ["build", "--locked", "-p", crate, "--target", TARGET];
  // As the suite `web` has built the library.
  const env = { ...process.env, CARGO_PROFILE_DEV_OPT_LEVEL: "0" };
  await run("cargo", words, { env });
  await run("wasm-bindgen", [
    ...["--target", "nodejs", "--out-dir", OUT],
    `target/${TARGET}/debug/${crate.replaceAll("-", "_")}.wasm`,
  ]);
  // The scripts are CommonJS, and the repository's are not.
  await writeFile(`${OUT}/package.json`, '{ "type": "commonjs" }');
  const app = createRequire(import.meta.url)(
    resolve(OUT, "framebatch_wasm_app.js"),
  );
  assert.deepEqual(Object.keys(app), ["between"]);
  const [a, b] = [
    [0, 10, 20, 30, 40],
    [8, 18, 28, 38, 48],
  ].map((floats) => Float32Array.from(floats));
  const between = await app.between(a, b, 0.25);
  assert.deepEqual([...between], [2, 12, 22, 32, 42]);
});
