// The playground for kernels, as built: its examples are drawn, merged, verified and profiled,
// errors are marked at their lines, and a kernel travels in the address and runs when asked.
//
// Nothing here is about how fast anything is.

import assert from "node:assert/strict";
import { lightTest as test, openBuilt, times } from "./site.mjs";

const site = openBuilt();

/** What Firefox writes to the console of its own accord where a compiler refuses code. */
const REFUSED = /shader module|parsing error|Shader /;

/** Opens the page at `hash`, `prepare`d before its scripts run, and uses it. */
async function playground(use, { hash = "", width = 1280, prepare } = {}) {
  const complaints = [];
  const page = await site.open((text) => {
    if (!REFUSED.test(text)) complaints.push(text);
  });
  try {
    await page.setViewport({ width, height: 900 });
    if (prepare) await page.evaluateOnNewDocument(prepare);
    await page.goto(`${site.url}/kernels/${hash}`);
    await use(page);
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - innerWidth,
    );
    assert.ok(overflow <= 0, `${overflow} pixels too wide`);
    assert.deepEqual(complaints, []);
  } finally {
    await page.close();
  }
}

/** Presses the button, or what `press` does; what the page found. */
async function run(page, press = () => page.click("#run")) {
  await page.evaluate(() => (window.__result = undefined));
  await press();
  await page.waitForFunction(() => window.__result);
  return page.evaluate(() => {
    const { drawn = [], merged, verified, profile, problem } = window.__result;
    return {
      fields: drawn.map(({ field }) => field),
      isFinite: drawn.every(({ data }) => data.every(Number.isFinite)),
      merged,
      ok: verified?.ok,
      sizes: profile?.sizes.map(({ size }) => size),
      problem,
    };
  });
}

/**
 * What was drawn in each canvas below a selector: the colors of a picture, or the pixels of a
 * plot that have its line's color.
 */
const inked = async (page, selector) => {
  await page.waitForSelector(`${selector} canvas`);
  return page.$$eval(`${selector} canvas`, (canvases) => {
    const style = getComputedStyle(document.documentElement);
    const hex = style.getPropertyValue("--framebatch").trim();
    const line = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return canvases.map((canvas) => {
      const { data } = canvas
        .getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height);
      if (canvas.className === "picture") {
        return new Set(new Uint32Array(data.buffer)).size;
      }
      let count = 0;
      for (let i = 0; i < data.length; i += 4) {
        const off = line.map((part, k) => Math.abs(data[i + k] - part));
        if (data[i + 3] > 200 && Math.max(...off) < 8) count += 1;
      }
      return count;
    });
  });
};

/** Writes other code, as by pasting it. */
const paste = (page, code) =>
  page.$eval(
    "#code",
    (area, code) => {
      area.value = code;
      area.dispatchEvent(new InputEvent("input", { bubbles: true }));
    },
    code,
  );

/** What is told and marked as wrong. */
const told = (page) =>
  page.evaluate(() => ({
    text: document.querySelector("#problem").textContent,
    isTold: !document.querySelector("#problem").hidden,
    marked: [...document.querySelectorAll(".numbers .wrong")].map(
      ({ textContent }) => textContent,
    ),
    isMarked: !document.querySelector(".mark").hidden,
  }));

const MISTAKE = "A mistake: an error at its line";

for (const width of times([390], [390, 1280])) {
  test(`examples are drawn, merged, verified and profiled: ${width} px`, () =>
    playground(
      async (page) => {
        const all = await page.$$eval("#example option:enabled", (options) =>
          options.map(({ value }) => value),
        );
        assert.equal(all.length, 6);
        // A narrow page differs in its layout alone: what is widest of all shows that.
        const examples = width > 1000 ? all : all.slice(3, 4);
        for (const title of examples.filter((title) => title !== MISTAKE)) {
          await page.select("#example", title);
          const { fields, isFinite, merged, ok, sizes, problem } =
            await run(page);
          assert.equal(problem, undefined, title);
          assert.ok(isFinite, title);
          assert.ok(fields.length >= 1, title);
          assert.equal(ok, true, title);
          const { callers, batches, submits, dispatches, plan } = merged;
          assert.deepEqual([callers, batches, submits], [1000, 1, 1], title);
          assert.ok(dispatches >= 1 && dispatches <= 3, title);
          assert.match(plan, /dispatch/);
          assert.deepEqual(sizes, [1, 10, 100, 1000]);
          const drawn = await inked(page, "#drawn");
          assert.equal(drawn.length, fields.length, title);
          for (const count of drawn) assert.ok(count > 50, title);
          const [rates] = await inked(page, ".rates");
          assert.ok(rates > 50, title);
          const rows = await page.$$eval(
            "#profiled > table tbody tr",
            (lines) => lines.map((line) => line.cells[4].textContent),
          );
          assert.equal(rows.length, 4);
          // Where the clock is coarse a few callers take no time that it shows.
          for (const rate of rows) assert.match(rate, /^(?:[\d.,]+[KMB]?|–)$/);
          assert.notEqual(rows[3], "–", title);
        }
      },
      { width },
    ));
}

test("errors are told at their lines, of definitions and of compilers", () =>
  playground(async (page) => {
    await page.select("#example", MISTAKE);
    const refused = await run(page);
    assert.equal(refused.problem.code, "shader");
    assert.deepEqual(refused.problem.place, { line: 3, column: 15 });
    const compiler = await told(page);
    assert.match(compiler.text, /^Line 3, column 15 shader .*heigth/s);
    assert.deepEqual(compiler.marked, ["3"]);
    assert.ok(compiler.isMarked && compiler.isTold);
    await page.click("#problem button");
    const selected = await page.$eval("#code", (area) =>
      area.value.slice(area.selectionStart, area.selectionEnd),
    );
    assert.equal(selected, "heigth");

    await paste(page, "fn element(height: f32) -> f32 {\n  return other;\n}\n");
    const edited = await told(page);
    assert.ok(!edited.isMarked && !edited.isTold);

    await paste(page, "\nfn element(x: f32) -> f32 {\n  @diagnostic\n}");
    const { problem } = await run(page);
    assert.equal(problem.code, "invalid-input");
    assert.deepEqual(problem.place, { line: 3, column: 3 });
    assert.deepEqual((await told(page)).marked, ["3"]);
    const names = await page.$$eval("#inputs code", (labels) =>
      labels.map(({ textContent }) => textContent),
    );
    assert.deepEqual(names, ["x"]);

    // What is no kernel at all is told too, as is what is no JavaScript.
    await paste(page, "fn other() {}");
    assert.match((await run(page)).problem.message, /no function `element`/);
    await page.$eval("#cpu", (area) => (area.value = "({ x }) =>"));
    assert.match(
      (await run(page)).problem.message,
      /^the function for the CPU/,
    );
  }));

test("a kernel travels in the address, and runs when somebody asks for it", async () => {
  let address = "";
  await playground(async (page) => {
    await page.select("#example", MISTAKE);
    await paste(
      page,
      "fn element(height: f32) -> f32 {\n  return 2.0 * height * params.half;\n}",
    );
    await page.$eval("#cpu", (area) => (area.value = ""));
    await page.$eval("#params input", (field) => {
      field.value = "0.5";
      field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    });
    await page.click("#share");
    await page.waitForFunction(() =>
      /link/.test(document.querySelector("#state").textContent),
    );
    address = await page.evaluate(() => location.hash);
  });
  await playground(
    async (page) => {
      const [code, isStrange] = await page.evaluate(() => [
        document.querySelector("#code").value,
        !document.querySelector("#stranger").hidden,
      ]);
      assert.match(code, /2\.0 \* height \* params\.half/);
      assert.ok(isStrange);
      assert.equal(await page.evaluate(() => window.__result), undefined);
      await page.focus("#code");
      const found = await run(page, async () => {
        await page.keyboard.down("Control");
        await page.keyboard.press("Enter");
        await page.keyboard.up("Control");
      });
      assert.equal(found.problem, undefined);
      assert.equal(found.ok, undefined);
      const verified = await page.$eval(
        "#verified",
        ({ textContent }) => textContent,
      );
      assert.match(verified, /Nothing is compared/);
    },
    { hash: address, width: 390 },
  );
  await playground(
    async (page) => {
      const state = await page.$eval("#state", (line) => line.textContent);
      assert.match(state, /no kernel that this page can read/);
    },
    { hash: "#bm9uc2Vuc2U" },
  );
});

test("without WebGPU functions for the CPU compute, each as it is now", () =>
  playground(
    async (page) => {
      const first = await run(page);
      // There is nothing that the function could be compared with.
      assert.equal(first.ok, undefined);
      assert.equal(first.merged.dispatches, 0);
      const notice = await page.$eval("#notice", (note) =>
        note.hidden ? "" : note.textContent,
      );
      assert.match(notice, /No WebGPU here \(unsupported\)/);
      await page.$eval("#cpu", (area) => (area.value = "() => 7"));
      await run(page);
      const values = await page.evaluate(() => [
        ...new Set(window.__result.drawn[0].data),
      ]);
      assert.deepEqual(values, [7]);
    },
    {
      prepare: () =>
        Object.defineProperty(navigator, "gpu", { value: undefined }),
    },
  ));
