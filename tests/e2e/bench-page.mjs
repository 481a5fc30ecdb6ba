// A page of the bench, as built, that is opened with a query and left without a complaint.

import assert from "node:assert/strict";

/** Opens the page with this query, `prepare`d before its scripts run, and uses it. */
export async function usePage(site, path, query, use, prepare) {
  const complaints = [];
  const page = await site.open((text) => complaints.push(text));
  if (prepare) await page.evaluateOnNewDocument(prepare);
  await page.goto(`${site.url}${path}?${new URLSearchParams(query)}`);
  try {
    await use(page);
    assert.deepEqual(complaints, []);
  } finally {
    await page.close();
  }
}

/** What the page has measured, once it has. */
export async function result(page) {
  await page.waitForFunction(() => window.__result, { timeout: 180_000 });
  // The result as JSON says it: without fields that are undefined.
  return JSON.parse(await page.evaluate(() => JSON.stringify(window.__result)));
}
