// The first page, as built: creatures live by every way's answers, which are right and
// alike, with a GPU and without WebGPU, on wide windows and on narrow ones.
//
// Nothing here is about how fast anything is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { longTest, openBuilt, testIn, times } from "./site.mjs";

const site = openBuilt();
const WAYS = ["framebatch", "awaited", "tfjs", "loop"];

/** Opens the page, `prepare`d before its scripts run, and hands it to `use`. */
async function demo({ width = 1280, prepare }, use) {
  const complaints = [];
  const strangers = [];
  const page = await site.open((text) => complaints.push(text));
  page.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (/^(data|blob):/.test(protocol) || origin === site.url) return;
    strangers.push(request.url());
  });
  try {
    await page.setViewport({ width, height: 900 });
    if (prepare) await page.evaluateOnNewDocument(prepare);
    await page.goto(`${site.url}/`);
    await use(page);
    assert.deepEqual(complaints, []);
    assert.deepEqual(strangers, []);
  } finally {
    await page.close();
  }
}

/** The page's first look at all ways: answers are right and alike, and all of them are shown. */
async function assertLook(page) {
  await page.waitForFunction(() => window.__result);
  const { rows, apart } = await page.evaluate(() => window.__result);
  assert.deepEqual(
    rows.map(({ way, headings }) => [way, headings]),
    [8, 1].flatMap((headings) => WAYS.map((way) => [way, headings])),
  );
  for (const { way, calls, error, runs, batches } of rows) {
    assert.equal(calls, 600);
    assert.ok(runs >= 1, way);
    assert.ok(
      typeof error === "number" && error <= 1e-4,
      `${way}: error ${error}`,
    );
    if (way === "framebatch") assert.equal(batches, 1);
  }
  assert.ok(typeof apart === "number" && apart <= 2e-4, `${apart} apart`);
  const shown = await page.$$eval("#rows tr", (lines) =>
    lines.map((line) => line.innerText.trim().split(/\s*\t\s*/)),
  );
  assert.equal(shown.length, WAYS.length);
  for (const cells of shown) assert.match(cells.at(-1), /^[\d,.]+$/);
  const bars = await page.$$eval("#ways output", (cells) =>
    cells.map((cell) => cell.textContent),
  );
  for (const bar of bars) assert.match(bar, / ms$/);
}

/** What is drawn, as text. */
const picture = (page) =>
  page.$eval("#scene", (canvas) => canvas.toDataURL("image/png"));

for (const width of times([390], [390, 1280])) {
  testIn(
    "chromium",
    `at ${width} pixels: every way answers rightly, and creatures live by it`,
    () =>
      demo({ width }, async (page) => {
        await assertLook(page);
        for (const way of WAYS) {
          await page.click(`label:has([value="${way}"])`);
          await page.waitForFunction(
            (chosen) => document.body.dataset.way === chosen,
            {},
            way,
          );
        }
        const overflow = await page.evaluate(
          () => document.documentElement.scrollWidth - innerWidth,
        );
        assert.ok(overflow <= 0, `${overflow} pixels too wide`);
      }),
  );
}

longTest("without WebGPU: the CPU answers, and the page says so", () =>
  demo(
    {
      prepare: () =>
        Object.defineProperty(navigator, "gpu", { value: undefined }),
    },
    async (page) => {
      await assertLook(page);
      const { rows } = await page.evaluate(() => window.__result);
      for (const { ranOn } of rows) assert.equal(ranOn, "CPU");
      const notice = await page.$eval("#notice", (note) =>
        note.hidden ? "" : note.textContent,
      );
      assert.match(notice, /No WebGPU here \(unsupported\)/);
    },
  ),
);

testIn(
  "chromium",
  "who wants less motion sees a picture that stands until it is played",
  () =>
    demo(
      {
        prepare: () => {
          const { matchMedia } = window;
          window.matchMedia = (query) =>
            query.includes("reduced-motion")
              ? { matches: true }
              : matchMedia.call(window, query);
        },
      },
      async (page) => {
        // The page's own code drew the first picture when its canvas has another size than by default.
        await page.waitForFunction(
          () => document.querySelector("#scene").width !== 300,
        );
        const first = await picture(page);
        await new Promise((resolve) => setTimeout(resolve, 300));
        assert.equal(await picture(page), first);
        await page.click("#pause");
        await page.waitForFunction(
          (before) =>
            document.querySelector("#scene").toDataURL("image/png") !== before,
          {},
          first,
        );
      },
    ),
);
