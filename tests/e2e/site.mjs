// The browser and the server that every test of this folder uses.
//
// A test file calls `openSite()` once; its pages are fresh, and a page that throws
// where nobody listens fails the test that opened it. `openBuilt()` is for the pages
// of the site.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { BROWSER, launch, openPage } from "../../tools/browser.mjs";
import { serve } from "../../tools/serve.mjs";

/** What Firefox writes to the console of its own accord when a device is lost while it compiles. */
const NOISE =
  BROWSER === "firefox"
    ? /Parent device is lost|while creating shader module/
    : /^$/;

/** How often a test does what it does; `make long` does more of it. */
export const times = (few, many) => (process.env.LONG === "1" ? many : few);

/** A test of what only Chromium can be made to do, and `why`. */
export function chromiumTest(name, why, body) {
  if (BROWSER === "chromium") test(name, body);
  else console.log(`Chromium alone: ${name} (${why})`);
}

/** A test that one browser stands for in `make test`; `make long` asks both. */
export function testIn(browser, name, ...body) {
  if (BROWSER === browser || process.env.LONG === "1") test(name, ...body);
  else console.log(`${BROWSER}, in \`make long\`: ${name}`);
}

/** A test that neither browser has time for in `make test`, as of rivals beside the package. */
export function longTest(name, body) {
  if (process.env.LONG === "1") test(name, body);
  else console.log(`in \`make long\`: ${name}`);
}

/**
 * A test of what is the same code in every browser, and natively: values, counts, refusals. What a browser
 * itself does is asked of both, by `test`: its frames, tasks, workers, memory, caches, policies and losses.
 */
export const lightTest = (...named) => testIn("chromium", ...named);

/**
 * Such a test with kernels that Chromium's GPU in software compiles for half a minute or more, and
 * Firefox's in seconds.
 */
export const heavyTest = (...named) => testIn("firefox", ...named);

/** How tests of values on an engine are added: the GPU's are heavy. */
export const testOn = (engine) => (engine === "gpu" ? heavyTest : lightTest);

/**
 * A server of `mounts` and a browser from the first page on, for as long as the tests of a file
 * run: a file whose tests are all the other browser's starts neither, which nobody would end.
 */
function openServer(mounts, options, headers = {}) {
  let started;
  let browser;
  let server;

  const start = async () => {
    server = await serve(mounts, { headers: () => headers });
    browser = await launch(options);
  };
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  return {
    get browser() {
      return browser;
    },
    get server() {
      return server;
    },

    /** A page that tells everything it complains of to `report`. */
    async open(report) {
      await (started ??= start());
      return openPage(browser, report);
    },
  };
}

/** The site as built, and what lies beside it, served with `headers`. */
export function openBuilt(beside = {}, headers) {
  const at = openServer({ ...beside, "/": "www/dist" }, {}, headers);
  return {
    get url() {
      return at.server.url;
    },

    open: at.open,
  };
}

/** `options` are those of `launch`. */
export function openSite(options) {
  const mounts = {
    "/pkg/": "pkg",
    // Where docs/workers.md has a page's copy of the package.
    "/assets/framebatch/": "pkg",
    "/built/": `target/e2e/${BROWSER}`,
    "/three/": "node_modules/three",
    "/data/": "tests/data",
    "/minilm/": "models/minilm",
    "/models/all-MiniLM-L6-v2/": "tests/data/tiny-model",
    "/models/reranker/": "tests/data/models/reranker-bert",
    "/": "tests/e2e/pages",
  };
  const at = openServer(mounts, options);

  return {
    get browser() {
      return at.browser;
    },

    open: at.open,

    /**
     * Opens the page at `path` from `host`, `prepare`d before its scripts run, hands it to
     * `use`, closes it, and fails if it complained of more than it `may`.
     */
    async page(
      use,
      { prepare, host = "127.0.0.1", path = "/", may = NOISE } = {},
    ) {
      const complaints = [];
      const page = await at.open((text) => {
        if (!may.test(text)) complaints.push(text);
      });
      if (prepare) await page.evaluateOnNewDocument(prepare);
      await page.goto(`http://${host}:${at.server.port}${path}`);
      // A page that is loaded has run its modules, but for one that loads them by a script of its own.
      if (!(await page.evaluate(() => "framebatch" in window))) {
        await page.waitForFunction(() => "framebatch" in window);
      }
      try {
        await use(page);
        assert.deepEqual(complaints, []);
      } finally {
        await page.close();
      }
    },
  };
}
