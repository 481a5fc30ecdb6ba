// The page of shapes, as built: it draws, follows the pointer, and switches its ways.

import assert from "node:assert/strict";
import { heavyTest as test, openBuilt, times } from "./site.mjs";

const site = openBuilt();

/** The share of the pixels around a place that something is drawn on. */
function filled(x, y) {
  const canvas = document.querySelector("#scene");
  const [left, top] = [x * canvas.width - 20, y * canvas.height - 20];
  const { data } = canvas.getContext("2d").getImageData(left, top, 40, 40);
  let drawn = 0;
  for (let at = 3; at < data.length; at += 4) drawn += data[at] > 64;
  return drawn / 1600;
}

/** Whether a way drew what is seen, with shapes that are grown at its place and not elsewhere. */
const IS_DRAWN = `(way, x) => {
  ${filled}
  const near = filled(x, 0.5);
  const far = filled(1 - x, 0.5);
  return document.body.dataset.way === way && near > 0.4 && far < near / 2;
}`;

for (const width of times([1280], [390, 1280])) {
  test(`at ${width} pixels: it draws under the pointer, and every way does`, async () => {
    const complaints = [];
    const page = await site.open((text) => complaints.push(text));
    try {
      await page.setViewport({ width, height: 900 });
      await page.goto(`${site.url}/morph/`);
      const canvas = await page.waitForSelector("#scene");
      const box = await canvas.boundingBox();
      const submissions = {};
      const ways = { framebatch: 0.25, "per-call": 0.75, loop: 0.25 };
      for (const [way, x] of Object.entries(ways)) {
        await page.click(`label:has([value="${way}"])`);
        const across = box.x + box.width * x;
        await page.mouse.move(across, box.y + box.height / 2 - 1);
        await page.mouse.move(across, box.y + box.height / 2);
        await page.waitForFunction(`(${IS_DRAWN})("${way}", ${x})`);
        submissions[way] = await page.$eval(
          '[data-figure="submissions"]',
          ({ textContent }) => Number(textContent),
        );
      }
      const expected = { framebatch: 1, "per-call": 400, loop: 0 };
      assert.deepEqual(submissions, expected);
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - innerWidth,
      );
      assert.ok(overflow <= 0, `${overflow} pixels too wide`);
      const shapes = await page.$eval(
        '[data-figure="shapes"]',
        ({ textContent }) => textContent,
      );
      assert.equal(shapes, "20,000");
      assert.deepEqual(complaints, []);
    } finally {
      await page.close();
    }
  });
}
