// The search page, as built: it indexes, answers what is typed meanwhile and after,
// draws how it goes, stops when asked, and says what is wrong.
//
// A tiny random model reads: what it finds means nothing, but a passage finds itself.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { lightTest, longTest, openBuilt, testIn, times } from "./site.mjs";

const TEXT = readFileSync("www/search/text.txt", "utf8");
const words = (text) => text.split(/\s+/).join(" ").trim();
/** What the page is to find in it, by chapter. */
const CHAPTERS = TEXT.split(/^(?=Chapter \d+$)/m).map((chapter) => {
  const [heading, ...paragraphs] = chapter.split("\n");
  return { heading, text: words(paragraphs.join(" ")) };
});
const FIRST =
  "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife.";

const site = openBuilt({
  "/search/model/": "tests/data/tiny-model",
  "/search/reranker/": "tests/data/models/reranker-bert",
});

/** In the page: notes what it was at when its list first showed something. */
function noteFirstList() {
  document.addEventListener("DOMContentLoaded", () => {
    const list = document.querySelector("#results");
    new MutationObserver(() => {
      window.firstList ??= document.querySelector("#state").textContent;
    }).observe(list, { childList: true });
  });
}

/** In the page: presses the button as soon as a first slice can be searched. */
function stopAtFirstSlice() {
  document.addEventListener("DOMContentLoaded", () => {
    const figure = document.querySelector("[data-figure=passages]");
    const observer = new MutationObserver(() => {
      observer.disconnect();
      document.querySelector("#run").click();
    });
    observer.observe(figure, { childList: true });
  });
}

/** Opens the page, `prepare`d before its scripts run. */
async function reading(use, { query = {}, width = 1280, prepare } = {}) {
  const complaints = [];
  const page = await site.open((text) => {
    // Files that a model's folder need not have.
    if (!/404/.test(text)) complaints.push(text);
  });
  await page.setViewport({ width, height: 844 });
  if (prepare) await page.evaluateOnNewDocument(prepare);
  await page.goto(`${site.url}/search/?${new URLSearchParams(query)}`);
  try {
    await use(page);
    assert.deepEqual(complaints, []);
  } finally {
    await page.close();
  }
}

const text = (page, selector) =>
  page.$eval(selector, (found) => found.textContent.trim());

const until = (page, selector, part) =>
  page.waitForFunction(
    (selector, part) =>
      document.querySelector(selector).textContent.includes(part),
    { timeout: 120_000 },
    selector,
    part,
  );

/** Puts a question in at once, as by pasting it; what is found for it. */
async function ask(page, question) {
  await page.evaluate((question) => {
    document.querySelector("#found").textContent = "";
    const field = document.querySelector("#question");
    field.value = question;
    field.dispatchEvent(new InputEvent("input"));
  }, question);
  await page.waitForFunction(
    () => document.querySelector("#found").textContent !== "",
  );
  return page.$$eval("#results li", (items) =>
    items.map((item) => ({
      where: item.querySelector(".where").textContent,
      passage: item.querySelector("blockquote").textContent,
    })),
  );
}

/** Pixels of a chart that are of a series' color. */
const drawn = (page, chart, color) =>
  page.$eval(
    `${chart} canvas`,
    (canvas, color) => {
      const context = canvas.getContext("2d");
      const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) {
        const off = color.map((value, k) => Math.abs(data[i + k] - value));
        if (data[i + 3] > 200 && Math.max(...off) < 8) count += 1;
      }
      return count;
    },
    color,
  );
const INDEXING = [0x35, 0xd0, 0xba];
const QUESTIONS = [0xff, 0x9d, 0x5c];

for (const width of times([390], [390, 1280])) {
  lightTest(
    `it indexes, and is searched meanwhile and after: ${width} px`,
    () =>
      reading(
        async (page) => {
          // Typed before there is anything to search.
          await page.type("#question", "the cat");
          await until(page, "#state", "Indexed");
          assert.match(
            await page.evaluate(() => window.firstList),
            /^Indexing/,
          );
          const [size, total] = (await text(page, "[data-figure=passages]"))
            .replaceAll(",", "")
            .split(" / ")
            .map(Number);
          assert.equal(size, total);
          assert.ok(total > 1000, `${total} passages`);
          assert.match(
            await text(page, "#model"),
            /^Engine: .*f32, 2 layers, 64/,
          );

          await until(
            page,
            "#found",
            `The best 10 of ${total.toLocaleString("en")}`,
          );

          const found = await ask(page, FIRST);
          assert.equal(found.length, 10);
          assert.equal(found[0].where, "Chapter 1 · 1.00");
          assert.ok(found[0].passage.startsWith(FIRST));
          const others = await ask(page, "a dog ran on the mat");
          assert.notDeepEqual(others, found);
          for (const { where, passage } of [...found, ...others]) {
            const heading = where.split(" · ")[0];
            const chapter = CHAPTERS.find((one) => one.heading === heading);
            assert.ok(chapter.text.includes(words(passage)), passage);
            assert.ok(words(passage).split(" ").length <= 60, passage);
          }
          assert.match(
            await text(page, "#found"),
            /^The best 10 of 1,\d{3} pass/,
          );

          assert.ok((await drawn(page, "#speed", INDEXING)) > 100);
          assert.ok((await drawn(page, "#batches", INDEXING)) > 20);
          assert.ok((await drawn(page, "#batches", QUESTIONS)) > 20);
          const needed = await page.evaluate(
            () => document.documentElement.scrollWidth,
          );
          assert.ok(needed <= width, `${needed} px`);
        },
        { width, prepare: noteFirstList },
      ),
  );
}

testIn(
  "chromium",
  "a reranker orders what was found, and tells from where",
  () =>
    reading(async (page) => {
      await until(page, "#state", "Indexed");
      const before = await ask(page, FIRST);
      const listed = (isReranked) =>
        page.waitForFunction(
          (isReranked) => {
            const places = [...document.querySelectorAll(".where")];
            const texts = places.map(({ textContent }) => textContent);
            const moved = / · (up from \d+|down from \d+|where it was)$/;
            return (
              texts.length === 10 &&
              texts.every((text) => moved.test(text) === isReranked)
            );
          },
          {},
          isReranked,
        );
      await page.click("#rerank");
      await listed(true);
      const after = await ask(page, FIRST);
      const scores = after.map(({ where }) => Number(where.split(" · ")[1]));
      assert.deepEqual(
        scores,
        scores.toSorted((a, b) => b - a),
      );
      after.forEach(({ where, passage }, at) => {
        const [, from] = /from (\d+)$/.exec(where) ?? [];
        const place = from === undefined ? at : Number(from) - 1;
        assert.ok(place < 30);
        if (place < 10) assert.equal(before[place].passage, passage);
      });
      await page.click("#rerank");
      await listed(false);
      assert.deepEqual(await ask(page, FIRST), before);
    }),
);

longTest("a reranker that is not there is told, and the switch goes back", () =>
  reading(
    async (page) => {
      await until(page, "#state", "Indexed");
      await page.click("#rerank");
      await until(page, "#problem", "config.json is missing");
      assert.equal(
        await page.$eval("#rerank", ({ checked }) => checked),
        false,
      );
      assert.equal((await ask(page, FIRST)).length, 10);
    },
    { query: { reranker: "./none/" } },
  ),
);

longTest("it stops when asked, is searchable then, and begins again", () =>
  reading(
    async (page) => {
      await until(page, "#state", "Stopped");
      const [size, total] = (await text(page, "[data-figure=passages]")).split(
        " / ",
      );
      assert.notEqual(size, total);
      assert.notEqual((await ask(page, "the fog")).length, 0);
      await page.click("#run");
      await until(page, "#state", "Indexed");
      assert.equal(
        await text(page, "[data-figure=passages]"),
        `${total} / ${total}`,
      );
    },
    { prepare: stopAtFirstSlice },
  ),
);

test("what is wrong is told, with what to do", async () => {
  await reading(
    async (page) => {
      await until(page, "#problem", "is missing");
      assert.match(await text(page, "#problem"), /invalid-input/);
      assert.match(await text(page, "#fetching"), /make model/);
      const isSeen = await page.$eval("#fetching", (line) => !line.hidden);
      assert.ok(isSeen);
      await page.click("#run");
      await until(page, "#problem", "is missing");
    },
    { query: { model: "./nowhere/" } },
  );
  await reading(
    async (page) => {
      await until(page, "#problem", "engine");
      assert.match(await text(page, "#problem"), /invalid-input/);
      const isSeen = await page.$eval("#fetching", (line) => !line.hidden);
      assert.ok(!isSeen);
    },
    { query: { engine: "abacus" } },
  );
});
