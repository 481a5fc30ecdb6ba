// A session with an embedder of the small model, for the tests to import.

import { manual, module } from "./face.mjs";
import { folder } from "./folder.mjs";

await module("embeddings/index");

/** An embedder, the session that it is of, and the core under that. */
export async function made(change, options) {
  const { gpu, core } = await manual(options);
  return { gpu, core, embedder: await gpu.embedder(folder(change)) };
}

/** Sends what is queued and answers it. */
export function answer({ gpu, core }) {
  gpu.flush();
  core.answer();
}
