// Random graphs of tensors in a real page, on both engines: within the bounds that are
// stated for each op, and beside others bit for bit as alone.

import assert from "node:assert/strict";
import { openSite, testOn, times } from "./site.mjs";

/** The CPU compiles nothing, and tries more of them in the same time; the native suite tries 200. */
const GRAPHS = {
  gpu: times(40, 10_000),
  cpu: times(100, 10_000),
};
/** Graphs between two words from the page, so that a slow browser is not taken for a dead one. */
const ROUND = 20;

const site = openSite();

for (const [engine, graphs] of Object.entries(GRAPHS)) {
  testOn(engine)(`${graphs} random graphs, on the ${engine}`, () =>
    site.page(async (page) => {
      await page.evaluate(async (engine) => {
        const { Property } = await import("/chains/property.js");
        window.property = await Property.open(engine);
      }, engine);
      let tally;
      for (let first = 0; first < graphs; first += ROUND) {
        tally = await page.evaluate(
          (first, count) => window.property.run(first, count),
          first,
          Math.min(ROUND, graphs - first),
        );
      }
      const { held, open, merged, saved } = tally;
      assert.equal(merged, graphs);
      assert.ok(held > open, `${held} results held, ${open} open`);
      // The CPU counts none.
      if (engine === "gpu") {
        assert.ok(saved > graphs, `merging saved ${saved} dispatches`);
      }
    }),
  );
}
