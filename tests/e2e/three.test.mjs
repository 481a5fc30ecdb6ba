// three.js's WebGPURenderer on the session's device, as the site has it: nothing comes
// back, what is drawn is this frame's, and it is what AnimationMixer poses.

import assert from "node:assert/strict";
import { heavyTest as test, openBuilt } from "./site.mjs";

const site = openBuilt();

/** Pixels that may differ at edges, of those that are not background: matrices round elsewhere. */
const EDGES = 0.001;

for (const clip of ["three", "gltf"]) {
  test(`20,000 meshes with the clip of ${clip}: no read-back, and AnimationMixer's picture`, async () => {
    const complaints = [];
    const page = await site.open((text) => complaints.push(text));
    await page.evaluateOnNewDocument(() => {
      window.readMaps = 0;
      const { mapAsync } = GPUBuffer.prototype;
      GPUBuffer.prototype.mapAsync = function (mode, ...range) {
        if (mode & GPUMapMode.READ) window.readMaps += 1;
        return mapAsync.call(this, mode, ...range);
      };
    });
    try {
      await page.goto(`${site.url}/three/?still&clip=${clip}`);
      await page.waitForFunction(() => window.stage, { timeout: 60_000 });
      const found = await page.evaluate(async () => {
        const { gpu, pixels } = window.stage;
        const size = [960, 480];
        const compare = (a, b) => {
          let [drawn, other] = [0, 0];
          for (let at = 0; at < a.length; at += 4) {
            const isDrawn = [0, 1, 2].some((k) => a[at + k] || b[at + k]);
            if (isDrawn) drawn += 1;
            const far = [0, 1, 2].some(
              (k) => Math.abs(a[at + k] - b[at + k]) > 8,
            );
            if (far) other += 1;
          }
          return { drawn, share: other / drawn };
        };
        const seconds = [0.25, 1.375, 2.75];
        const draw = async (way) => {
          const made = [];
          for (const s of seconds) made.push(await pixels(way, s, size));
          return made;
        };
        const before = [window.readMaps, gpu.stats().readbacks];
        const ours = await draw("framebatch");
        const after = [window.readMaps, gpu.stats().readbacks];
        const theirs = await draw("loop");
        return {
          // The pixels are read back here, and nothing else.
          readMaps: after.map((count, i) => count - before[i]),
          same: seconds.map((_, i) => compare(ours[i], theirs[i])),
          // What would be seen a frame late.
          late: compare(ours[0], theirs[1]).share,
          area: ours[0].length / 4,
        };
      });
      assert.deepEqual(found.readMaps, [3, 0]);
      for (const { drawn, share } of found.same) {
        assert.ok(drawn > found.area / 4, `${drawn} pixels are drawn`);
        assert.ok(share <= EDGES, `${share} of the pixels differ`);
      }
      assert.ok(found.late > 10 * EDGES, `${found.late}: frames are alike`);
      assert.deepEqual(complaints, []);
    } finally {
      await page.close();
    }
  });
}
