// Opens the built demo page and prints what it measured.
//
//   node tools/demo.mjs            headless: a table, a screenshot, an exit code
//   SERVE=1 node tools/demo.mjs    serves all pages until interrupted; search/ has
//                                  the model that `make model` fetched
//
// The command fails when framebatch needed more than one submission and one read-back for
// the frame, or when any way gave a wrong answer.

import { existsSync, mkdirSync } from "node:fs";
import { launch, openPage } from "./browser.mjs";
import { ISOLATED, serve } from "./serve.mjs";
import { printTable } from "./table.mjs";

// How far unit quaternions may be from a slerp in double precision. WGSL promises little of
// the acos that the per-call way uses, so its answers get more room.
const BOUNDS = { framebatch: 1e-6, "per-call": 1e-3, loop: 1e-6 };
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
    const problems = judge(result.rows);
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
  await page.goto(`${site.url}/?measure`);
  await page.waitForFunction(() => window.__result, { timeout: 120_000 });
  await new Promise((resolve) => setTimeout(resolve, 4000));
  mkdirSync("target", { recursive: true });
  await page.screenshot({ path: SCREENSHOT, fullPage: true });
  return page.evaluate(() => window.__result);
}

function print({ adapter, rows }) {
  console.log("\nOne frame, 1,000 components, each with a slerp of its own:\n");
  printTable([
    [
      ...["way", "calls", "submissions", "read-backs", "dispatches"],
      ...["ms (median)", "runs"],
    ],
    ...rows.map((row) => [
      row.way,
      String(row.calls),
      String(row.submissions),
      String(row.readbacks),
      String(row.dispatches),
      row.milliseconds.toFixed(2),
      String(row.runs),
    ]),
  ]);
  const best = rows.reduce((a, b) => (b.milliseconds < a.milliseconds ? b : a));
  console.log(`\nFastest: ${best.way}. The page says where batching pays.`);
  console.log(`adapter: ${adapter}`);
  console.log(`screenshot: ${SCREENSHOT}`);
}

function judge(rows) {
  const problems = [];
  for (const way of Object.keys(BOUNDS)) {
    const row = rows.find((candidate) => candidate.way === way);
    if (row === undefined) {
      problems.push(`${way} did not run`);
    } else if (!(row.error <= BOUNDS[way])) {
      problems.push(`${way}: an answer is wrong by ${row.error}`);
    }
  }
  const batched = rows.find((row) => row.way === "framebatch");
  if (batched && (batched.submissions !== 1 || batched.readbacks !== 1)) {
    problems.push("framebatch needed more than one submission or read-back");
  }
  return problems;
}
