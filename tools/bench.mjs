// Opens the bench page headless, prints its table, and keeps it under benches/record.
//
// On a software adapter only the last column means anything.

import { mkdirSync, writeFileSync } from "node:fs";
import { launch, openPage } from "./browser.mjs";
import { serve } from "./serve.mjs";
import { printTable } from "./table.mjs";

const site = await serve({ "/": "www/dist" });
const browser = await launch();
try {
  const page = await openPage(browser);
  await page.goto(`${site.url}/bench/`);
  await page.waitForFunction(() => window.__result, { timeout: 300_000 });
  const result = await page.evaluate(() => window.__result);
  printTable([
    ["workload", "system", "runs", "median ms", "p95 ms", "to one batch"],
    ...result.rows.map(({ workload, system, runs, median, p95, ratio }) => [
      workload,
      system,
      String(runs),
      median.toFixed(2),
      p95.toFixed(2),
      ratio.toFixed(2),
    ]),
  ]);
  console.log(`adapter: ${result.adapter}`);
  console.log(`record: ${keep(result)}`);
} finally {
  await browser.close();
  await site.close();
}

function keep(result) {
  const folder = "benches/record";
  const machine = result.adapter.replace(/[^a-z0-9]+/gi, "-").toLowerCase();
  const file = `${folder}/${new Date().toISOString().slice(0, 10)}-${machine}-small-lerp.json`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, `${JSON.stringify(result, null, 1)}\n`);
  return file;
}
