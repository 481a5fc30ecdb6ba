// The package as a user gets it: packed, installed elsewhere, and used.
//
// Nothing here reads the sources of the package. Which files it holds is told by
// lists.test.mjs, how its types are found by types.test.mjs.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { build, createServer, preview } from "vite";
import { WITHOUT_VECTORS, launch, openPage } from "../../tools/browser.mjs";
import { serve } from "../../tools/serve.mjs";
import { packed, run } from "./packed.mjs";

const CORES = ["framebatch_bg.wasm", "framebatch_bg_scalar.wasm"];
const LOOPBACK = { host: "127.0.0.1", port: 0 };

let folder;
let remove;
let browser;

before(async () => {
  ({ folder, remove } = await packed(["vite-app", "plain-page"]));
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await remove?.();
});

/** Opens a page and compares what it reports with what it should. */
async function assertPageWorks(url, { within = browser, loads } = {}) {
  const complaints = [];
  const page = await openPage(within, (text) => complaints.push(text));
  const files = [];
  page.on("request", (request) => {
    const name = /\/(framebatch_bg[a-z_]*)[^/]*\.wasm/.exec(request.url());
    if (name) files.push(name[1]);
  });
  await page.goto(url);
  const found = page.waitForFunction(() => document.body.dataset.result, {
    timeout: 60_000,
  });
  const result = await found.then(
    (handle) => handle.jsonValue(),
    () => assert.fail(`no result; ${complaints.join("; ")}`),
  );
  await page.close();
  assert.deepEqual(JSON.parse(result), {
    halfway: [0.5, 15, 30],
    refused: "invalid-input",
    calls: 100,
    submits: 1,
  });
  assert.deepEqual(complaints, []);
  if (loads) assert.deepEqual(files, [loads]);
}

test("one WebAssembly file has vectors, and the other runs where there are none", async () => {
  const isValid = async (name, ...switches) => {
    const file = join(folder, "plain-page/node_modules/framebatch/wasm", name);
    const check = `WebAssembly.validate(fs.readFileSync(${JSON.stringify(file)}))`;
    const { stdout } = await run("node", [...switches, "-p", check]);
    return stdout.trim() === "true";
  };
  for (const name of CORES) assert.ok(await isValid(name), name);
  const without = CORES.map((name) => isValid(name, ...WITHOUT_VECTORS));
  assert.deepEqual(await Promise.all(without), [false, true]);
});

test("the WebAssembly holds no texts that only a panic would print", async () => {
  for (const name of CORES) {
    const file = join(folder, "plain-page/node_modules/framebatch/wasm", name);
    const text = await readFile(file, "latin1");
    assert.match(text, /fn main\(@builtin/, `${name} has its kernels`);
    assert.doesNotMatch(text, /[/\\][\w.-]+\.rs\b/, `${name} names no file`);
    assert.doesNotMatch(text, /assertion failed: |entered unreachable code/);
  }
});

test("a Vite app: the types fit", async () => {
  await run("node_modules/.bin/tsc", ["-p", join(folder, "vite-app")]);
});

test("a Vite app, built", async () => {
  const root = join(folder, "vite-app");
  await build({ root, logLevel: "warn", build: { target: "es2022" } });
  const server = await preview({ root, logLevel: "warn", preview: LOOPBACK });
  const old = await launch({
    switches: [`--js-flags=${WITHOUT_VECTORS.join(" ")}`],
  });
  try {
    const url = server.resolvedUrls.local[0];
    await assertPageWorks(url, { loads: "framebatch_bg" });
    const loads = "framebatch_bg_scalar";
    await assertPageWorks(url, { within: old, loads });
  } finally {
    await old.close();
    await server.close();
  }
});

test("a Vite app, in development", async () => {
  const root = join(folder, "vite-app");
  const server = await createServer({
    root,
    logLevel: "warn",
    server: LOOPBACK,
  });
  try {
    await server.listen();
    await assertPageWorks(server.resolvedUrls.local[0]);
  } finally {
    await server.close();
  }
});

test("a plain page with an import map", async () => {
  const server = await serve({ "/": join(folder, "plain-page") });
  try {
    await assertPageWorks(server.url);
  } finally {
    await server.close();
  }
});

test("a server that imports the package: nothing happens, and it can end", async () => {
  const cwd = join(folder, "plain-page");
  const { stdout, stderr } = await run("node", ["import.mjs"], {
    cwd,
    timeout: 20_000,
  });
  assert.equal(stderr, "");
  assert.deepEqual(JSON.parse(stdout), {
    exports: ["CODES", "FramebatchError", "isSupported", "open", "shared"],
    added: [],
    supported: false,
  });
});
