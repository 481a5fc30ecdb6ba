// The page of particles, as built: every way moves them alike, and they are drawn from where
// they lie, without a read-back.
//
// Nothing here is about how fast anything is.

import assert from "node:assert/strict";
import { lightTest as test, openBuilt, testIn } from "./site.mjs";

const site = openBuilt();
const WAYS = ["framebatch", "tfjs", "loop"];

/** Opens the page at an address, hands it to `use`, and expects no complaints. */
async function opened(address, use) {
  const complaints = [];
  const page = await site.open((text) => complaints.push(text));
  try {
    await page.goto(`${site.url}/particles/${address}`);
    await use(page);
    assert.deepEqual(complaints, []);
  } finally {
    await page.close();
  }
}

/** The share of the canvas that is brighter than its ground, in a picture of the page. */
async function lit(page) {
  const canvas = await page.$("#scene");
  const picture = await canvas.screenshot({ encoding: "base64" });
  return page.evaluate(async (base64) => {
    const image = await createImageBitmap(
      await (await fetch(`data:image/png;base64,${base64}`)).blob(),
    );
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    let bright = 0;
    for (let at = 0; at < data.length; at += 4) {
      bright += data[at + 1] + data[at + 2] > 60;
    }
    return bright / (data.length / 4);
  }, picture);
}

testIn(
  "chromium",
  "every way moves the particles as double precision does",
  async () => {
    await opened("?check&count=1000", async (page) => {
      await page.waitForFunction(() => window.__check);
      const apart = await page.evaluate(() => window.__check);
      assert.deepEqual(Object.keys(apart), WAYS);
      for (const [way, distance] of Object.entries(apart)) {
        assert.ok(distance < 1e-4, `${way} is ${distance} apart`);
      }
    });
  },
);

test("each way draws them; framebatch steps by one submission and reads nothing", async () => {
  await opened("?count=20000", async (page) => {
    for (const way of WAYS) {
      await page.click(`label:has([value="${way}"])`);
      await page.waitForFunction(
        (way) => document.body.dataset.way === way,
        {},
        way,
      );
      assert.ok((await lit(page)) > 0.01, way);
      const figures = await page.$$eval("[data-figure]", (cells) =>
        Object.fromEntries(
          cells.map((cell) => [cell.dataset.figure, cell.textContent]),
        ),
      );
      assert.equal(figures.particles, "20,000");
      assert.equal(figures.readbacks, "0");
      if (way === "framebatch") assert.equal(figures.submissions, "1");
    }
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - innerWidth,
    );
    assert.ok(overflow <= 0, `${overflow} pixels too wide`);
  });
});
