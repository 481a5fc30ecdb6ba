// Pages whose WebAssembly does not load: each cause is told with the advice that fits it, and
// what needs no WebAssembly goes on. And pages that hold it in a script.

import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "../../tools/serve.mjs";
import { openSite } from "./site.mjs";

const site = openSite();

const FILE = "/pkg/wasm/framebatch_bg.wasm";
const csp = (policy) => () => ({ "content-security-policy": policy });
const answered = (status, type, body) => (request, response) => {
  if (!request.url.endsWith(".wasm")) return false;
  response.writeHead(status, { "content-type": type });
  response.end(body);
  return true;
};

/** Each row: what the server does, and what the error says behind "could not be loaded: ". */
const CASES = {
  "a file that is not there": [
    { answer: answered(404, "text/html", "<p>404") },
    /^URL answers with HTTP 404; import "framebatch\/inline", which holds the file, serve .*, or give .* as the option wasm$/,
  ],
  "a server that answers everything with its page": [
    { answer: answered(200, "text/html", "<!doctype html>") },
    /^URL answers with HTML in place of WebAssembly; import "framebatch\/inline"/,
  ],
  "a policy that forbids WebAssembly": [
    { headers: csp("default-src 'self'; img-src data:") },
    /^the page's Content-Security-Policy forbids WebAssembly; add 'wasm-unsafe-eval' to its script-src$/,
  ],
  "a policy that forbids fetching": [
    {
      headers: csp(
        "script-src 'self' 'wasm-unsafe-eval'; connect-src 'none'; img-src data:",
      ),
    },
    /^URL could not be fetched \(.*\); see that .* the connect-src of the page's Content-Security-Policy allow it, or import "framebatch\/inline"$/,
  ],
};

/** What the page at `query` finds where the server is like this, and the files that it asks for. */
async function look(options, query = "") {
  const mounts = { "/pkg/": "pkg", "/": "tests/e2e/pages" };
  const server = await serve(mounts, options);
  // Browsers write to the console what they cannot get.
  const page = await site.open(() => {});
  try {
    const asked = [];
    page.on("request", (request) => {
      if (request.url().endsWith(".wasm")) asked.push(request.url());
    });
    await page.goto(`${server.url}/loading/${query}`);
    const found = await page
      .waitForFunction(() => window.found)
      .then((handle) => handle.jsonValue());
    return { found, asked, address: server.url + FILE };
  } finally {
    await page.close();
    await server.close();
  }
}

for (const [name, [server, message]] of Object.entries(CASES)) {
  test(`${name}: the error says what to do, and tweens go on`, async () => {
    const { found, asked, address } = await look(server);
    const { call, again, finished, warnings } = found;
    assert.equal(call.code, "unsupported");
    const prefix = "lerp: the WebAssembly file could not be loaded: ";
    assert.ok(call.message.startsWith(prefix), call.message);
    const said = call.message.slice(prefix.length).replace(address, "URL");
    assert.match(said, message);
    assert.equal(again, true, "whoever opens next hears the cause");
    assert.equal(finished, true);
    assert.equal(warnings.length, 1);
    assert.ok(warnings[0].endsWith(said.replace("URL", address)), warnings[0]);
    assert.ok(new Set(asked).size === asked.length, `asked twice: ${asked}`);
  });
}

test("a script that holds the file: nothing else is fetched", async () => {
  const { found, asked } = await look(
    CASES["a file that is not there"][0],
    "?inline",
  );
  assert.deepEqual(found, {
    call: [0.5, 15],
    again: "open",
    finished: true,
    warnings: [],
  });
  assert.deepEqual(asked, []);
});

test("a file of another type is loaded all the same", async () => {
  const { found } = await look({
    headers: (path) =>
      path === FILE
        ? {
            "content-type": "application/octet-stream",
            "x-content-type-options": "nosniff",
          }
        : {},
  });
  assert.deepEqual(found.call, [0.5, 15]);
  assert.deepEqual(found.warnings, []);
});
