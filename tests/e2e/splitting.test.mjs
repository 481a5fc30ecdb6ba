// Work beyond a device's limits: in chunks with the bits of the whole, or an error
// with the numbers. `ROWS=16777216` streams a matrix of 4 GiB instead of a small one.

import assert from "node:assert/strict";
import { heavyTest, lightTest, openSite, times } from "./site.mjs";

const site = openSite();
const ROWS = Number(process.env.ROWS ?? 8_000);

heavyTest("calls beyond a buffer have the bits of whole ones", () =>
  site.page(async (page) => {
    const { differ, seen, chunks, rejected, left } = await page.evaluate(
      async () => {
        const { large, LOWERED, SLOW_MS } = await import("/matrix.js");
        const usual = await framebatch.open({
          engine: "gpu",
          flush: "eager",
          stallMs: SLOW_MS,
        });
        const small = await framebatch.open({
          engine: "gpu",
          flush: "eager",
          ...LOWERED,
        });
        const expected = large(usual);
        const [differ, chunks] = [[], {}];
        let seen = 0;
        for (const [name, call] of large(small)) {
          const before = small.stats().subBatches;
          const [got, other] = await Promise.all([
            call,
            expected.next().value[1],
          ]);
          chunks[name] = small.stats().subBatches - before;
          seen += got.length;
          const isSame =
            got.length === other.length &&
            got.every((value, k) => Object.is(value, other[k]));
          if (!isSame) differ.push(name);
        }
        const { rejected, ranOn } = small.stats();
        return { differ, seen, chunks, rejected, left: ranOn.cpu };
      },
    );
    assert.deepEqual(differ, []);
    assert.ok(seen > 2e6, `${seen} elements`);
    const whole = Object.entries(chunks).filter(([, count]) => count < 2);
    assert.deepEqual(whole, []);
    assert.deepEqual([rejected, left], [0, 0]);
  }),
);

const GRAPHS = times(16, 1000);

heavyTest("random graphs have the same bits under lowered limits", () =>
  site.page(async (page) => {
    const { differ, refused } = await page.evaluate(async (graphs) => {
      const { LOWERED } = await import("/matrix.js");
      const { Property } = await import("/chains/property.js");
      const usual = await Property.open("gpu", { stallMs: LOWERED.stallMs });
      const small = await Property.open("gpu", LOWERED);
      const [differ, refused] = [[], []];
      for (let seed = 0; seed < graphs; seed++) {
        const own = { seed, rows: 1 + (seed % 40), data: seed };
        const expected = await usual.alone({ ...own });
        try {
          const got = await small.alone({ ...own });
          if (got.bits !== expected.bits) differ.push(seed);
        } catch (error) {
          // Few graphs cannot be cut by rows, and are too large whole.
          if (error.code !== "limit-exceeded") throw error;
          refused.push(seed);
        }
      }
      return { differ, refused };
    }, GRAPHS);
    assert.deepEqual(differ, []);
    assert.ok(refused.length <= GRAPHS / 20, `refused: ${refused}`);
  }),
);

lightTest("what cannot be cut says so with the numbers", () =>
  site.page(async (page) => {
    const errors = await page.evaluate(async () => {
      const { LOWERED } = await import("/matrix.js");
      const small = await framebatch.open({ engine: "gpu", ...LOWERED });
      const long = new Float32Array(300_000);
      const outcomes = [
        async () => small.tensor(long, [300_000]).sum().read(),
        async () => small.tensor(long, [1, 300_000]).softmax().read(),
      ].map((call) => workload.outcome(call()));
      return Promise.all(outcomes);
    });
    assert.equal(errors.length, 2);
    for (const { code, message } of errors) {
      assert.equal(code, "limit-exceeded", message);
      assert.match(message, /1200\d\d\d bytes.* 10485\d\d/);
    }
  }),
);

heavyTest(`${ROWS} rows of 64 floats stream through a network`, () =>
  site.page(async (page) => {
    const { rows, seconds, wrong, peak } = await page.evaluate(
      async (rows) => (await import("/matrix.js")).stream(rows),
      ROWS,
    );
    assert.equal(rows, ROWS);
    assert.equal(wrong, 0);
    assert.ok(peak <= 1 << 30, `${peak} bytes at most`);
    const pace = (ROWS * 256) / seconds / 2 ** 30;
    console.log(
      `${(ROWS / seconds / 1e6).toFixed(2)} million rows/s, ${pace.toFixed(2)} GiB/s up, ${(peak / 2 ** 20).toFixed(0)} MiB of device memory at most`,
    );
  }),
);
