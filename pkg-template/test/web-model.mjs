// A small model on a server, and what loading it comes to, for the tests of folders on the
// web.

import assert from "node:assert/strict";
import { afterEach, beforeEach } from "node:test";
import { module, settled } from "./face.mjs";
import { folder } from "./folder.mjs";
import { SITE, webServer } from "./web-server.mjs";

await module("embeddings/index");

export let server;
beforeEach(() => (server = webServer(folder())));
afterEach(() => server.restore());

export const WEIGHTS = "model.safetensors";

/** The page of a server for applications. */
export const page = (status = 200) => {
  const headers = { "content-type": "text/html; charset=utf-8" };
  return () => new Response("<!doctype html>", { headers, status });
};
export const status = (status) => () => new Response("", { status });
/** A body that ends early. */
export const breaking = (bytes) => () => {
  const start = (to) => to.enqueue(bytes.slice(0, 9));
  const pull = (to) => to.error(new TypeError("network error"));
  const how = { highWaterMark: 0 };
  return new Response(new ReadableStream({ start, pull }, how));
};

/** What the embedder says of "a": the model works. */
export async function works({ gpu, core }, embedder) {
  const result = embedder.embed("a");
  gpu.flush();
  core.answer();
  const floats = await result;
  assert.equal(floats.length, 4);
  return floats;
}

/** Loads the folder, tries the model, and lets the cache finish. */
export async function load(session, options) {
  server.asked = [];
  server.given = [];
  const embedder = await session.gpu.embedder(SITE, options);
  await works(session, embedder);
  await settled(20);
  assert.equal(server.locks.size, 0);
  return embedder;
}

/** The same for a load that fails; its error. */
export async function fails(session, options) {
  server.asked = [];
  server.given = [];
  const tensors = session.core.tensors.size;
  const error = await session.gpu.embedder(SITE, options).then(
    () => assert.fail("it loaded"),
    (error) => error,
  );
  await settled(20);
  // An embedder that nobody holds any more may be collected meanwhile, with its tensors.
  assert.ok(session.core.tensors.size <= tensors);
  assert.equal(server.locks.size, 0);
  assert.equal(error.name, "FramebatchError", error.stack);
  assert.equal(error.code, "invalid-input", error.message);
  return error;
}
