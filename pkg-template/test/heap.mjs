// What of the heap stays behind work that is done over and over.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { settled } from "./face.mjs";

setFlagsFromString("--expose-gc");
export const collect = runInNewContext("gc");

/** Bytes of the heap once all that can be is collected. */
export async function heap() {
  for (let i = 0; i < 4; i += 1) {
    collect();
    await settled();
  }
  return process.memoryUsage().heapUsed;
}

/**
 * By how many bytes the heap grows while `work` runs: the least of a few times. Work that keeps
 * something grows it each time; what the engine itself compiles and caches comes now and then.
 */
export async function growth(work, enough) {
  let least = Infinity;
  for (let i = 0; i < 4 && least >= enough; i += 1) {
    const before = await heap();
    await work();
    least = Math.min(least, (await heap()) - before);
  }
  return least;
}
