// How much memory of a page a model takes while it loads: little more than its weights, whether the
// page keeps them to restore them after a loss or not.
//
// Chromium says how much there is between two tasks of the page. What is made and gone within one is
// not seen.

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { BROWSER } from "../../tools/browser.mjs";
import { longTest, openSite } from "./site.mjs";

const site = openSite();
const { size } = statSync("models/minilm/model.safetensors");

/** The largest share of the weights' bytes that a page takes at any time. */
const MOST = 1.3;

/** In the page: loads the model. */
async function load(keep) {
  const options = { dtype: "f32", keep, cache: false, verify: false };
  window.embedder = await gpu.embedder("/minilm/", options);
}

/** Loads the model on a GPU that computes in software, which compiles for half a minute. */
const measure = (t) =>
  site.page(
    async (page) => {
      const client = await page.createCDPSession();
      /** Bytes of scripts, arrays and WebAssembly. */
      const taken = async () => {
        const heap = await client.send("Runtime.getHeapUsage");
        return heap.usedSize + heap.backingStorageSize;
      };
      const settled = async () => {
        await client.send("HeapProfiler.collectGarbage");
        return taken();
      };
      await page.evaluate(async () => {
        window.gpu = await framebatch.open({ engine: "gpu" });
        await gpu.lerp(new Float32Array(4), new Float32Array(4), 0.5);
      });
      for (const keep of [true, false]) {
        const before = await settled();
        const share = (bytes) => (bytes - before) / size;
        let most = before;
        let isLoading = true;
        const loading = page
          .evaluate(load, keep)
          .finally(() => (isLoading = false));
        while (isLoading) {
          most = Math.max(most, await taken());
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        await loading;
        const left = share(await settled());
        t.diagnostic(`keep ${keep}: at most ${share(most)}, ${left} behind`);
        assert.ok(share(most) <= MOST, `${share(most)}, keep ${keep}`);
        assert.ok(Math.abs(left - Number(keep)) < 0.1, `${left} stays`);
        await page.evaluate(() => embedder.dispose());
      }
      await page.evaluate(() => gpu.dispose());
    },
    { may: /404/ },
  );

// No other browser tells bytes of arrays.
if (BROWSER === "chromium") {
  longTest(
    "a model loads in little more memory of the page than its weights take",
    measure,
  );
}
