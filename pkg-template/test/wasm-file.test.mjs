// Finding and compiling the WebAssembly file: each source that a page may give, each way in
// which a file is not there, and what is said of it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { module } from "./face.mjs";

const { compile, hold } = await module("core/wasm-file");

const path = join(process.env.FRAMEBATCH_FACE, "wasm", "framebatch_bg.wasm");
const bytes = readFileSync(path);
const missing = pathToFileURL("/nowhere/framebatch_bg.wasm");

/** A file of the package that lies at an address, or at none. */
const file = (address, name = "framebatch_bg.wasm") => ({
  name,
  inline: "framebatch/inline",
  address: () => new URL(address),
});
const anywhere = file(missing);
const loaded = (source, of = anywhere) => compile("the file", of, source);

const ANSWERS = {
  "/good.wasm": [200, "application/wasm", bytes],
  "/as-text.wasm": [200, "text/plain", bytes],
  "/page.wasm": [200, "text/html; charset=utf-8", "<!doctype html><p>"],
  "/untyped-page.wasm": [200, "application/octet-stream", "<!doctype html>"],
  "/text.wasm": [200, "text/plain", "hello"],
  "/short.wasm": [200, "application/octet-stream", "no"],
  "/broken.wasm": [200, "application/wasm", bytes.subarray(0, 6)],
};

let server;
let origin;
const asked = [];

before(async () => {
  server = createServer(({ url }, response) => {
    asked.push(url);
    const [status, type, body] = ANSWERS[url] ?? [404, "text/html", "<p>404"];
    response.writeHead(status, { "content-type": type }).end(body);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  origin = `http://127.0.0.1:${server.address().port}`;
});

after(() => {
  server.closeAllConnections();
  server.close();
});

test("what a page may give is compiled", async () => {
  const SOURCES = {
    module: new WebAssembly.Module(bytes),
    "an array": new Uint8Array(bytes),
    "a part of a buffer": Uint8Array.of(9, ...bytes).subarray(1),
    "a buffer": new Uint8Array(bytes).buffer,
    "a promise of an answer": fetch(`${origin}/good.wasm`),
    "an answer": await fetch(`${origin}/good.wasm`),
    "an answer of another type": await fetch(`${origin}/as-text.wasm`),
    "a request": new Request(`${origin}/good.wasm`),
    "an address": new URL(`${origin}/good.wasm`),
    "an address as text": `${origin}/good.wasm`,
    "an address of a file": pathToFileURL(path),
    "the same as text": pathToFileURL(path).href,
    "a path": path,
    "an address with its data": `data:application/wasm;base64,${bytes.toString("base64")}`,
  };
  for (const [name, source] of Object.entries(SOURCES)) {
    const found = await loaded(source).catch((error) => error);
    assert.ok(found instanceof WebAssembly.Module, `${name}: ${found}`);
  }
});

test("what cannot be loaded says why, and what to do", async () => {
  const ELSEWHERE =
    'import "framebatch/inline", which holds the file, serve the package\'s wasm/framebatch_bg.wasm there, or give its address or its bytes as the option wasm';
  const CASES = [
    ["/gone.wasm", `${origin}/gone.wasm answers with HTTP 404; ${ELSEWHERE}`],
    [
      "/page.wasm",
      `${origin}/page.wasm answers with HTML in place of WebAssembly; ${ELSEWHERE}`,
    ],
    [
      "/untyped-page.wasm",
      `${origin}/untyped-page.wasm answers with HTML in place of WebAssembly; ${ELSEWHERE}`,
    ],
    [
      "/text.wasm",
      `${origin}/text.wasm answers with what is not WebAssembly (text/plain); ${ELSEWHERE}`,
    ],
    ["/short.wasm", /not WebAssembly \(application\/octet-stream\)/],
    ["/broken.wasm", /CompileError|unexpected|expected/i],
  ];
  for (const [name, message] of CASES) {
    await assert.rejects(loaded(`${origin}${name}`), (error) => {
      assert.equal(error.code, "unsupported", name);
      assert.ok(error.cause instanceof Error, `${name} keeps its cause`);
      if (message instanceof RegExp) assert.match(error.message, message);
      else
        assert.equal(error.message, `the file could not be loaded: ${message}`);
      return true;
    });
  }
  await assert.rejects(loaded(missing), (error) => {
    assert.match(error.message, /nowhere.* cannot be read \(ENOENT/);
    assert.equal(error.cause.code, "ENOENT");
    return true;
  });
  await assert.rejects(loaded(new Uint8Array(8)), {
    message: `the file could not be loaded: what was given is not WebAssembly; ${ELSEWHERE}`,
  });
  const closed = "http://127.0.0.1:9/framebatch_bg.wasm";
  await assert.rejects(loaded(closed), {
    message:
      /could not be fetched \(.*\); see that the server runs.*connect-src/,
  });
});

test("an engine that may not compile says which policy forbids it", async (t) => {
  const CASES = [
    [
      "WebAssembly.compile(): Compiling or instantiating WebAssembly module violates the following Content Security policy directive because 'unsafe-eval' is not an allowed source of script",
      "the page's Content-Security-Policy forbids WebAssembly; add 'wasm-unsafe-eval' to its script-src",
    ],
    [
      "call to WebAssembly.compile() blocked by CSP",
      "the page's Content-Security-Policy forbids WebAssembly; add 'wasm-unsafe-eval' to its script-src",
    ],
    [
      "WebAssembly.compile(): Wasm code generation disallowed by embedder",
      'this runtime compiles no WebAssembly at run time; import module from "framebatch/framebatch_bg.wasm", and give it as the option wasm',
    ],
  ];
  for (const [said, message] of CASES) {
    const cause = new WebAssembly.CompileError(said);
    const compiling = t.mock.method(WebAssembly, "compile", async () => {
      throw cause;
    });
    await assert.rejects(loaded(bytes), {
      message: `the file could not be loaded: ${message}`,
      cause,
    });
    compiling.mock.restore();
  }
});

test("without a source the first place that has the file counts", async () => {
  // Tests run as an application that has the package installed.
  const beside = file(pathToFileURL(path));
  assert.ok((await loaded(undefined, beside)) instanceof WebAssembly.Module);
  asked.length = 0;
  // A server that answers with its page, whatever it is asked for.
  const served = file(`${origin}/page.wasm`, "nothing.wasm");
  await assert.rejects(loaded(undefined, served), {
    message: /page\.wasm answers with HTML/,
  });
  assert.deepEqual(asked, ["/page.wasm"], "it is asked for once");
});

test("a file that a script holds is not looked for", async () => {
  hold("held.wasm", async () => bytes);
  const held = file(`${origin}/gone.wasm`, "held.wasm");
  asked.length = 0;
  assert.ok((await loaded(undefined, held)) instanceof WebAssembly.Module);
  assert.deepEqual(asked, []);
  await assert.rejects(loaded(`${origin}/gone.wasm`, held), /HTTP 404/);
});
