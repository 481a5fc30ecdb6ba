// What tensors leave behind: nothing, whether they are disposed of or collected.

import assert from "node:assert/strict";
import { BROWSER } from "../../tools/browser.mjs";
import { chromiumTest, lightTest as test, openSite, times } from "./site.mjs";

/** Firefox makes about a thousand buffers a second. */
const TENSORS = BROWSER === "chromium" ? times(20_000, 100_000) : 5000;
/** Tensors between two looks. */
const ROUND = 1000;

const site = openSite({
  switches: ["--js-flags=--expose-gc", "--enable-precise-memory-info"],
});

/**
 * Makes many tensors that lie on the device at once, a round at a time, and does
 * `after` to those of a round; what of the session and the page was there before and
 * behind it.
 */
async function made(page, after) {
  return page.evaluate(
    async (after, tensors, round) => {
      const finish = new Function(`return ${after}`)();
      const gpu = await framebatch.open({ engine: "gpu" });
      // 64 KiB, which is on the device from the start; never copied.
      const data = new Float32Array(16_384).fill(1);
      const look = () => ({
        bytes: gpu.stats().pool.bytes,
        buffers: gpu.stats().pool.buffers,
        live: counting.count().liveBuffers,
      });
      const one = gpu.tensor(data);
      await one.sum().read();
      one.dispose();
      const before = look();
      let most = 0;
      for (let done = 0; done < tensors; done += round) {
        let all = Array.from({ length: round }, () => gpu.tensor(data));
        most = Math.max(most, look().buffers);
        const [sum] = await all[done % 7].sum().read();
        if (sum !== 16_384) throw new Error(`a sum of ${sum}`);
        finish(all);
        all = undefined;
        // A collection tells its registry in a task of its own.
        for (let n = 0; n < 200 && look().live > before.live; n++) {
          globalThis.gc?.();
          await new Promise((resolve) => setTimeout(resolve));
        }
      }
      return { before, after: look(), most };
    },
    after.toString(),
    TENSORS,
    ROUND,
  );
}

test(`${TENSORS} tensors that are disposed of: freed at once`, () =>
  site.page(async (page) => {
    const atOnce = (all) => {
      const before = counting.count().liveBuffers;
      for (const tensor of all) tensor.dispose();
      const freed = before - counting.count().liveBuffers;
      if (freed !== all.length) throw new Error(`${freed} buffers were freed`);
    };
    const { before, after, most } = await made(page, atOnce);
    assert.deepEqual(after, before);
    assert.ok(most >= before.buffers + ROUND, `${most} buffers`);
  }));

chromiumTest(
  `${TENSORS} tensors that nobody holds: freed by a collection`,
  "it can be asked for one",
  () =>
    site.page(async (page) => {
      const { before, after, most } = await made(page, () => {});
      assert.deepEqual(after, before);
      assert.ok(most >= before.buffers + ROUND, `${most} buffers`);
    }),
);
