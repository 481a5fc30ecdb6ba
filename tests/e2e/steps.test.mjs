// Thousands of steps while devices are lost and memory is short: no wrong value, no step twice,
// and all of it typed. The page's simulations judge; the tests only choose them.

import assert from "node:assert/strict";
import { BROWSER } from "../../tools/browser.mjs";
import { lightTest as test, openSite, times } from "./site.mjs";

const site = openSite();

const STEPS = Number(process.env.STEPS ?? times(1_500, 10_000));

/** The codes that calls may reject with. */
const CODES = ["device-lost", "out-of-memory"];

/** Under every policy, and where tensors and batches share little memory. */
const ALL = [
  { flush: "frame" },
  { flush: "eager" },
  { flush: "manual" },
  { flush: "auto", memoryBudget: 2 ** 22 },
  { flush: "manual", memoryBudget: 2 ** 20 },
];
const OPTIONS = times(ALL.slice(0, 1), ALL);
const SEEDS = times(1, 10);
const FIRST = Number(process.env.SEED ?? 1);

/** Rounds from one trouble to the next: Firefox on Lavapipe takes its time for each. */
const EVERY = BROWSER === "firefox" ? 4 : 2;

for (const options of OPTIONS) {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
    test(`${STEPS} steps with losses and shortages: ${JSON.stringify(options)}, seed ${seed}`, (t) =>
      site.page(async (page) => {
        const run = { seed, steps: STEPS, options, every: EVERY };
        const report = await page.evaluate(async (run) => {
          const { stepping } = await import("/steps.js");
          return stepping(run);
        }, run);
        t.diagnostic(JSON.stringify(report));
        const { wrong, pending, refused, losses, shortages, healed } = report;
        assert.deepEqual(wrong, []);
        assert.equal(pending, 0);
        for (const code of Object.keys(refused)) {
          assert.ok(CODES.includes(code), `${code}: ${refused[code]}`);
        }
        assert.ok(losses > 0 && shortages > 0 && healed > 0, "no trouble");
      }));
  }
}
