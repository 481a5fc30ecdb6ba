// Kernels of one's own with random bodies in a real page, on both engines: within the bounds that
// are stated for what WGSL computes, and merged bit for bit as alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { lightTest, openSite, times } from "./site.mjs";

const BODIES = times(12, 500);
/** Bodies of a session, which keeps all that it ever compiled. */
const ROUND = 50;

const site = openSite();

for (const engine of ["gpu", "cpu"]) {
  const add = engine === "gpu" ? test : lightTest;
  for (const form of ["element", "at"]) {
    add(`${BODIES} random bodies of ${form}, on the ${engine}`, () =>
      site.page(async (page) => {
        for (let first = 1; first <= BODIES; first += ROUND) {
          const { tight, loose, open } = await page.evaluate(
            async (engine, form, first, count) => {
              const { tryBodies } = await import("/bodies/property.js");
              return tryBodies(engine, form, first, count);
            },
            ...[engine, form, first, Math.min(ROUND, BODIES - first + 1)],
          );
          assert.ok(
            tight > 3 * (loose + open),
            `${tight} held to narrow bounds, ${loose} to wide ones, ${open} open`,
          );
        }
      }),
    );
  }
}
