// The built site in a browser: every page on a desktop's width, and on a phone's those of each kind,
// without a violation that axe-core finds; none that scrolls sideways on either; the list at the
// side, search, and the documents without a network. Chromium alone: the rules look at the same
// tree everywhere.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, openPage } from "../../tools/browser.mjs";
import { serve } from "../../tools/serve.mjs";
import { BASE, PAGES, SITE } from "./built.mjs";

const AXE = readFileSync("node_modules/axe-core/axe.min.js", "utf8");
const WIDTHS = { desktop: 1280, phone: 390 };
/** Pages whose dark form is looked at, too, and their colors on phones: one of each kind. */
const IN_COLOR = ["index.html", "docs/configuration.html", "docs/kernels.html"];
/** Pages that the bench opens in a frame, for nobody to look at. */
const FRAMED = ["live/bench/fresh.html", "live/bench/embeddings/first.html"];

/** One page stands for all that have its form: the records, and the decisions. */
const formOf = (path) =>
  /^(benches\/record|docs\/decisions)\/20/.exec(path)?.[1] ?? path;
const looked = PAGES.filter(
  (path, at) =>
    !FRAMED.includes(path) &&
    PAGES.findIndex((other) => formOf(other) === formOf(path)) === at,
);
const isLive = (path) => path.startsWith("live/");
const documents = looked.filter((path) => !isLive(path));
const live = looked.filter(isLive);

let browser;
let server;

before(async () => {
  server = await serve({ [BASE]: SITE });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** Whether the page is wider than the screen. */
const overflows = (page) =>
  page.evaluate(() => {
    const overflow = document.documentElement.scrollWidth - innerWidth;
    return overflow > 0 ? [`${overflow} px wider than the screen`] : [];
  });

/** What axe finds on a page. */
async function violations(page, inColor) {
  return page.evaluate(async (inColor) => {
    // Colors are half of the time. Those of code are the same on all pages, and those of a
    // document are those of its wide form.
    const { violations } = await window.axe.run(
      inColor === "all" ? document : { exclude: [["pre"]] },
      {
        resultTypes: ["violations"],
        preload: false,
        rules: { "color-contrast": { enabled: inColor !== "none" } },
      },
    );
    return violations.map(({ id, nodes }) => {
      const [{ target, failureSummary }] = nodes;
      return `${id}, ${nodes.length} times: ${target} ${failureSummary}`;
    });
  }, inColor);
}

/** Looks at pages in one tab, each on both widths. */
async function look(paths, scheme) {
  const problems = [];
  const page = await openPage(browser, (text) => problems.push(text));
  await page.emulateMediaFeatures([
    { name: "prefers-color-scheme", value: scheme },
    { name: "prefers-reduced-motion", value: "reduce" },
  ]);
  for (const path of paths) {
    await page.goto(`${server.url}${BASE}${path}`);
    await page.evaluate(AXE);
    for (const [name, width] of Object.entries(WIDTHS)) {
      await page.setViewport({ width, height: 900 });
      const isAll = isLive(path) || IN_COLOR.includes(path);
      const found = await overflows(page);
      // What a document has on a phone and not on a desktop all of its kind have.
      if (isAll || name === "desktop" || process.env.LONG === "1") {
        const others = name === "desktop" ? "text" : "none";
        found.push(...(await violations(page, isAll ? "all" : others)));
      }
      problems.push(...found.map((text) => `${path}, ${name}: ${text}`));
    }
  }
  await page.close();
  return problems;
}

/** The same in two tabs at once. */
async function lookAt(paths, scheme = "light") {
  const middle = Math.ceil(paths.length / 2);
  const halves = [paths.slice(0, middle), paths.slice(middle)];
  const problems = await Promise.all(halves.map((half) => look(half, scheme)));
  return problems.flat();
}

test("documents: axe finds nothing, nothing is too wide on either width", async () => {
  assert.ok(documents.length > 30);
  assert.deepEqual(await lookAt(documents), []);
});

test("documents in the dark: axe finds nothing", async () => {
  assert.deepEqual(await lookAt(IN_COLOR, "dark"), []);
});

test("live pages, on both widths: axe finds nothing, nothing is too wide", async () => {
  assert.ok(live.length > 8);
  // A page without its model says so, and asks for it in vain.
  const problems = await lookAt(live);
  assert.deepEqual(
    problems.filter((text) => !/404/.test(text)),
    [],
  );
});

test("the side names every page, and marks the one that is open", async () => {
  const page = await openPage(browser);
  await page.setViewport({ width: 1280, height: 900 });
  const current = () =>
    page.$$eval(".VPSidebar [aria-current=page]", (links) =>
      links.map(({ href }) => new URL(href).pathname),
    );
  await page.goto(`${server.url}${BASE}docs/tensors.html`);
  assert.deepEqual(await current(), [`${BASE}docs/tensors.html`]);
  const listed = await page.$$eval(".VPSidebar li a", (links) =>
    links.map(({ href }) => new URL(href).pathname.replace(/^.*\/docs\//, "")),
  );
  const written = readdirSync("docs").filter((name) => /\.md$/.test(name));
  for (const name of written.filter((name) => name !== "README.md")) {
    assert.ok(listed.includes(name.replace(/\.md$/, ".html")), name);
  }
  await page.click(`.VPSidebar a[href="${BASE}docs/search.html"]`);
  await page.waitForFunction(() => /^Search/.test(document.title));
  assert.deepEqual(await current(), [`${BASE}docs/search.html`]);
  await page.close();
});

/** What the search of a page finds for a word. */
async function found(page, word) {
  await page.waitForSelector(".DocSearch-Button");
  await page.click(".DocSearch-Button");
  await page.waitForSelector(".VPLocalSearchBox input");
  await page.type(".VPLocalSearchBox input", word);
  await page.waitForSelector(".VPLocalSearchBox .result");
  return page.$$eval(".VPLocalSearchBox .result", (links) =>
    links.map(({ href }) => new URL(href).pathname),
  );
}

test("search finds an option by its name", async () => {
  const page = await openPage(browser);
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(`${server.url}${BASE}docs/start.html`);
  const paths = await found(page, "targetLatencyMs");
  assert.ok(paths.includes(`${BASE}docs/configuration.html`), paths.join());
  await page.close();
});

test("without a network the documents are there, once the site was open", async () => {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await page.goto(`${server.url}${BASE}`);
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await page.setOfflineMode(true);
  for (const name of ["docs/tensors", "docs/troubleshooting", "api"]) {
    await page.goto(`${server.url}${BASE}${name}.html`);
    const title = await page.$eval("h1", ({ textContent }) => textContent);
    assert.match(title, /\w/, name);
  }
  await page.setViewport({ width: 1280, height: 900 });
  const paths = await found(page, "superseded");
  assert.ok(paths.includes(`${BASE}docs/troubleshooting.html`), paths.join());
  await context.close();
});
