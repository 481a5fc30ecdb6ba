// Tweens and springs in a real page: one call of a frame for all, and nothing left.

import assert from "node:assert/strict";
import { lightTest as test, openSite } from "./site.mjs";

const site = openSite();

for (const engine of ["cpu", "gpu"]) {
  test(`500 tweens and 500 springs, values by the ${engine}`, () =>
    site.page(async (page) => {
      const { wrong, frames, counts, left } = await page.evaluate(
        async (engine) => {
          const gpu = await framebatch.open({ engine: "gpu" });
          const many = (x) => new Float32Array(64).fill(x);
          const shown = new Set();
          let frame = 0;
          requestAnimationFrame(function next() {
            frame++;
            requestAnimationFrame(next);
          });
          const options = {
            engine,
            onUpdate: () => shown.add(frame),
          };
          const stiff = { stiffness: 2000, damping: 80 };
          const run = async () => {
            const motions = Array.from({ length: 500 }, (_, i) => [
              gpu.tween(many(0), many(i), { ...options, duration: 0.2 }),
              gpu.spring(many(i), many(-i), { ...stiff, ...options }),
            ]).flat();
            const ends = motions.map(({ finished }) => finished);
            motions.pop().cancel();
            const done = await Promise.all(ends);
            if (done.pop()) throw new Error("it was ended");
            if (!done.every(Boolean)) throw new Error("one has not ended");
            return motions;
          };
          await run();
          // What the session keeps for the next calls is there by now.
          const buffers = counting.count().liveBuffers;
          const { value: motions, counts } = await counting.during(run);
          let wrong = 0;
          motions.forEach(({ value }, k) => {
            const i = Math.floor(k / 2);
            const want = k % 2 ? -i : i;
            if (value.length !== 64 || value.some((x) => x !== want)) wrong++;
          });
          await new Promise((resolve) => setTimeout(resolve, 50));
          const left = counting.count().liveBuffers - buffers;
          return { wrong, frames: shown.size, counts, left };
        },
        engine,
      );
      assert.equal(wrong, 0);
      assert.ok(frames > 2, `${frames} frames`);
      if (engine === "cpu") {
        assert.deepEqual([counts.submits, counts.readMaps], [0, 0]);
      } else {
        // One of each for a step of all, and three copies when the motions are others.
        assert.ok(counts.readMaps >= 2 && counts.readMaps < 200);
        const copies = counts.submits - counts.readMaps;
        assert.ok(copies <= 9, `${copies} copies`);
        assert.ok(left <= 0, `${left} buffers are left`);
      }
    }));
}
