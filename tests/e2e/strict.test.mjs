// Strict pages: security policies, isolation, and nothing fetched but its own files.

import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "../../tools/serve.mjs";
import { openSite } from "./site.mjs";

const site = openSite();

const VALUES = [[0.5, 15], Array(16).fill(0x80)];
const POLICY = {
  "content-security-policy":
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; img-src data:",
};
const ISOLATION = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};

// Each row: the headers that the page and all its files are served with, and
// whether they isolate it.
const PAGES = [
  ["no headers", {}, false],
  ["a strict content security policy", POLICY, false],
  ["isolation by COOP and COEP", ISOLATION, true],
  ["both", { ...POLICY, ...ISOLATION }, true],
];

for (const [name, headers, isolated] of PAGES) {
  test(`a page with ${name}, and no requests but for its own files`, async () => {
    const mounts = { "/pkg/": "pkg", "/": "tests/e2e/pages" };
    const server = await serve(mounts, { headers: () => headers });
    const complaints = [];
    const page = await site.open((text) => complaints.push(text));
    try {
      const requests = new Set();
      page.on("request", (request) => requests.add(request.url()));
      await page.goto(`${server.url}/strict/`);
      const found = await page
        .waitForFunction(() => window.found)
        .then((handle) => handle.jsonValue());
      const engine = "gpu";
      const expected = { values: VALUES, isolated, engine, violations: [] };
      assert.deepEqual(found, expected);
      const own = [
        "/strict/",
        "/strict/page.js",
        "/pkg/dist/index.js",
        "/pkg/dist/shared.js",
        "/pkg/wasm/framebatch.js",
        "/pkg/wasm/framebatch_bg.wasm",
      ].map((path) => server.url + path);
      const fetched = [...requests].filter((url) => !url.startsWith("data:"));
      assert.deepEqual(fetched.sort(), own.sort());
      assert.deepEqual(complaints, []);
    } finally {
      await page.close();
      await server.close();
    }
  });
}
