// A model from another origin, as such servers have it: compressed, and now and then the
// line breaks.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { openSite } from "./site.mjs";

const MODEL = "tests/data/tiny-model/";
const WEIGHTS = "model.safetensors";

/** What browsers write of files that a folder need not have, and of the broken line. */
const may = /404|Failed to load|ERR_/;

const site = openSite();
let server;
let address;
/** Whether the next weights below `once` break off. */
let isBreaking = true;

before(async () => {
  server = createServer(async (request, response) => {
    const [, how, ...rest] = new URL(request.url, "http://any").pathname.split(
      "/",
    );
    const name = rest.join("/");
    const bytes = await readFile(MODEL + name).catch(() => undefined);
    const headers = { "access-control-allow-origin": "*" };
    if (bytes === undefined) return response.writeHead(404, headers).end();
    const packed = gzipSync(bytes);
    response.writeHead(200, {
      ...headers,
      "content-encoding": "gzip",
      "content-length": packed.length,
    });
    if (how === "whole" || name !== WEIGHTS || !isBreaking) {
      return response.end(packed);
    }
    isBreaking = false;
    response.write(packed.subarray(0, packed.length >> 1), () =>
      setTimeout(() => response.destroy(), 50),
    );
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  address = `http://127.0.0.1:${server.address().port}/`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

/** In the page: loads it, and embeds; or what was said. */
async function load(address) {
  const gpu = await framebatch.open({ engine: "cpu" });
  const heard = [];
  const onProgress = (progress) => heard.push(progress);
  try {
    const embedder = await gpu.embedder(address, { onProgress });
    const { length } = await embedder.embedIds([2, 9, 3]);
    const { loaded, total } = heard.at(-1);
    return { length, left: total - loaded };
  } catch ({ code, message }) {
    return { code, message };
  } finally {
    await gpu.dispose();
  }
}

test("a model from another origin comes compressed", () =>
  site.page(
    async (page) => {
      const whole = { length: 64, left: 0 };
      assert.deepEqual(await page.evaluate(load, `${address}whole/`), whole);
      // From the cache as well, where it is kept as it came.
      assert.deepEqual(await page.evaluate(load, `${address}whole/`), whole);
    },
    { may },
  ));

test("what breaks off on its way is told so, and is whole the next time", () =>
  site.page(
    async (page) => {
      const url = `${address}once/`;
      const { code, message } = await page.evaluate(load, url);
      assert.equal(code, "invalid-input");
      // Firefox takes what came of a compressed file for all of it.
      assert.match(message, /broke off on its way from|it is truncated/);
      const whole = { length: 64, left: 0 };
      assert.deepEqual(await page.evaluate(load, url), whole);
    },
    { may },
  ));
