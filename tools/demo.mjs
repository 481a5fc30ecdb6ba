// Opens the built demo page and prints what it measured.
//
//   node tools/demo.mjs                  headless: two tables, a screenshot, an exit code
//   WEBGPU=absent node tools/demo.mjs    the same as where a browser has no WebGPU
//   SERVE=1 node tools/demo.mjs          serves all pages until interrupted; search/ has
//                                        the model that `make model` fetched
//
// The command fails when framebatch needed more than one batch for a frame, or when any way
// gave a wrong answer (`demo-verdict.mjs`).

import { existsSync, mkdirSync } from "node:fs";
import { launch, openPage } from "./browser.mjs";
import { problemsOf } from "./demo-verdict.mjs";
import { ISOLATED, serve } from "./serve.mjs";
import { printTable } from "./table.mjs";

/** Whether the page finds WebGPU: "expected" or "absent". */
const WEBGPU = process.env.WEBGPU ?? "expected";
const SCREENSHOT = "target/demo.png";

const site = await serve(
  { "/search/model/": "models/minilm", "/": "www/dist" },
  // The pages of the bench need fine clocks.
  { headers: () => ISOLATED },
);
if (process.env.SERVE === "1") {
  console.log(`The demo is at ${site.url} (Ctrl-C ends it)`);
  console.log(`A novel to search by meaning: ${site.url}/search/`);
  if (!existsSync("models/minilm/config.json")) {
    console.log("  It needs a model: make model");
  }
} else {
  const browser = await launch();
  try {
    const result = await measured(browser);
    print(result);
    const problems = problemsOf(result, WEBGPU);
    for (const problem of problems) console.error(problem);
    process.exitCode = problems.length > 0 ? 1 : 0;
  } finally {
    await browser.close();
    await site.close();
  }
}

/** Lets the page measure, then play for a moment for the picture. */
async function measured(browser) {
  const page = await openPage(browser);
  await page.setViewport({ width: 1200, height: 900 });
  if (WEBGPU === "absent") {
    await page.evaluateOnNewDocument(() =>
      Object.defineProperty(navigator, "gpu", { value: undefined }),
    );
  }
  await page.goto(`${site.url}/?measure`);
  await page.waitForFunction(() => window.__result, { timeout: 240_000 });
  await new Promise((resolve) => setTimeout(resolve, 4000));
  mkdirSync("target", { recursive: true });
  await page.screenshot({ path: SCREENSHOT, fullPage: true });
  return page.evaluate(() => window.__result);
}

function print({ adapter, rows, apart, slerps }) {
  const of = (way, headings) =>
    rows.find((row) => row.way === way && row.headings === headings);
  const eight = rows.filter(({ headings }) => headings > 1);
  const [{ calls, headings }] = eight;
  console.log(
    `\nOne frame, ${calls} creatures, each with a call of a shared network, 32-64-10:\n`,
  );
  printTable([
    [
      ...["way", "computed on", "submissions", "read-backs", "runs"],
      ...[`ms, ${headings} headings each`, "ms, 1 heading each"],
    ],
    ...eight.map((row) => [
      row.way,
      row.ranOn,
      ...[row.submissions, row.readbacks, row.runs].map(String),
      row.milliseconds.toFixed(2),
      of(row.way, 1).milliseconds.toFixed(2),
    ]),
  ]);
  const one = rows.filter((row) => row.headings === 1);
  console.log(`\nFastest: ${fastest(eight)}; with 1 heading ${fastest(one)}.`);
  console.log(`The answers of all ways are ${apart.toExponential(1)} apart.`);

  console.log("\nOne frame, 1,000 components, each with a slerp of its own:\n");
  printTable([
    [
      ...["way", "calls", "submissions", "read-backs", "dispatches"],
      ...["ms (median)", "runs"],
    ],
    ...slerps.map((row) => [
      row.way,
      String(row.calls),
      String(row.submissions),
      String(row.readbacks),
      String(row.dispatches),
      row.milliseconds.toFixed(2),
      String(row.runs),
    ]),
  ]);
  console.log(
    `\nFastest: ${fastest(slerps)}. The page says where batching pays.`,
  );
  console.log(`adapter: ${adapter || "none"}`);
  console.log(`screenshot: ${SCREENSHOT}`);
}

function fastest(rows) {
  return rows.reduce((a, b) => (b.milliseconds < a.milliseconds ? b : a)).way;
}
