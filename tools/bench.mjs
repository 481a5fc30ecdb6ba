// Opens the bench page headless and prints its table.
//
// On a software adapter only the last column means anything.

import { launch, openPage } from "./browser.mjs";
import { serve } from "./serve.mjs";
import { printTable } from "./table.mjs";

const site = await serve({ "/": "www/dist" });
const browser = await launch();
try {
  const page = await openPage(browser);
  await page.goto(`${site.url}/bench/`);
  await page.waitForFunction(() => window.__result, { timeout: 300_000 });
  const rows = await page.evaluate(() => window.__result);
  printTable([
    ["workload", "system", "median ms", "p95 ms", "to one batch"],
    ...rows.map(({ workload, system, median, p95, ratio }) => [
      workload,
      system,
      median.toFixed(2),
      p95.toFixed(2),
      ratio.toFixed(2),
    ]),
  ]);
} finally {
  await browser.close();
  await site.close();
}
