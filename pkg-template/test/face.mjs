// The compiled face and the fake core under it, for the tests to import.

import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.env.FRAMEBATCH_FACE;
if (folder === undefined)
  throw new Error("run the tests with `npm test` in pkg-template");

/** One compiled module of `src`, by its name; another instance of it for each `query`. */
export function module(name, query = "") {
  return import(pathToFileURL(join(folder, "dist", `${name}.js`)).href + query);
}

/** The package, as an application imports it; or with sessions in a worker of this process. */
export const face = { ...(await module("index")) };

/** The fake core's controls, and whether it compiles at once. */
export const { compiling, fake } = await import(
  pathToFileURL(join(folder, "wasm", "framebatch.js")).href
);

/** The controls of the tokenizers' fake. */
export const { file: tokenizersFile } = await import(
  pathToFileURL(join(folder, "wasm", "tokenizers.js")).href
);

/** The controls of the embeddings' fake. */
export const { chunk } = await import(
  pathToFileURL(join(folder, "wasm", "embeddings.js")).href
);

/** A session that sends only when told, and the core under it. */
export async function manual(options) {
  const gpu = await face.open({ flush: "manual", ...options });
  return { gpu, core: fake.core };
}

/** Lets every task and microtask that is due run. */
export async function settled(turns = 3) {
  for (let turn = 0; turn < turns; turn += 1)
    await new Promise((done) => setImmediate(done));
}

/** What a promise has come to after all that is due: "pending", or its value or reason. */
export async function stateOf(promise) {
  let state = "pending";
  promise.then(
    (value) => (state = { value }),
    (reason) => (state = { reason }),
  );
  await settled();
  return state;
}

// Last, because sessions in a worker are made of what stands above.
if (process.env.FRAMEBATCH_SESSIONS === "worker") {
  const { inWorker } = await import("./in-process.mjs");
  Object.assign(face, await inWorker(module));
}
