// The long soak: minutes of trouble in Chromium, and a record of them.
//
//   node tools/long.mjs                  ten minutes
//   LONG_MINUTES=2 node tools/long.mjs   two
//
// Calls, cancellations, losses, hiding and disposal at high rates, in rounds. After
// the first minute nothing may grow. It fails when a call got a wrong answer or none.

import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { launch, openPage } from "./browser.mjs";
import { serve } from "./serve.mjs";
import { assertFlat, assertNothingLost, held } from "./soak.mjs";

const MINUTES = Number(process.env.LONG_MINUTES ?? 10);
const ROUND_SECONDS = 15;
const FOLDER = "benches/record";

const site = await serve({ "/pkg/": "pkg", "/": "tests/e2e/pages" });
const browser = await launch();
try {
  const record = await soak();
  console.log(`record: ${keep(record)}`);
  assertFlat(record.first, record.last);
} finally {
  await browser.close();
  await site.close();
}

async function soak() {
  const complaints = [];
  const page = await openPage(browser, (text) => complaints.push(text));
  const other = await browser.newPage();
  const protocol = await page.createCDPSession();
  await page.goto(site.url);
  await page.waitForFunction(() => "framebatch" in window);
  const info = await page.evaluate(async () => {
    window.gpu = await framebatch.open({ engine: "gpu" });
    return { adapter: gpu.info.adapter, browser: navigator.userAgent };
  });
  const start = Date.now();
  const minutes = () => (Date.now() - start) / 60_000;
  const rounds = [];
  while (minutes() < MINUTES) {
    const round = await trouble(page, other, rounds.length);
    assertNothingLost(round);
    const look = { minute: minutes(), ...(await held(page, protocol)) };
    rounds.push({ ...round, look });
    console.log(JSON.stringify(rounds.at(-1)));
    if (complaints.length > 0) throw new Error(complaints.join("; "));
  }
  // Of a soak too short to have one, the first round counts as the first minute.
  const warm = rounds.find(({ look }) => look.minute >= 1) ?? rounds[0];
  const [first, last] = [warm, rounds.at(-1)].map(({ look }) => bytes(look));
  return { ...info, machine: machine(), ...sum(rounds), first, last };
}

/** One round, the page now shown, now hidden. */
async function trouble(page, other, seed) {
  await page.bringToFront();
  let shown = true;
  const toggle = setInterval(() => {
    shown = !shown;
    // The round's end may be faster; then nobody looks.
    (shown ? page : other).bringToFront().catch(() => {});
  }, 1700);
  try {
    return await page.evaluate((round) => trouble(gpu, round), {
      seconds: ROUND_SECONDS,
      seed,
    });
  } finally {
    clearInterval(toggle);
  }
}

function bytes({ minute, ...rest }) {
  return rest;
}

function machine() {
  const load = loadavg()[0].toFixed(1);
  return `${availableParallelism()} cores, shared; load ${load} at the end`;
}

function sum(rounds) {
  const total = { minutes: rounds.at(-1).look.minute, rounds: rounds.length };
  for (const name of [
    ...["made", "right", "wrong", "unsettled"],
    ...["losses", "sessions"],
  ]) {
    total[name] = rounds.reduce((sum, round) => sum + round[name], 0);
  }
  total.refused = {};
  for (const [code, amount] of rounds.flatMap(({ refused }) =>
    Object.entries(refused),
  )) {
    total.refused[code] = (total.refused[code] ?? 0) + amount;
  }
  return total;
}

function keep(record) {
  mkdirSync(FOLDER, { recursive: true });
  const day = new Date().toISOString().slice(0, 10);
  const file = `${FOLDER}/${day}-soak.json`;
  writeFileSync(file, `${JSON.stringify(record, null, 1)}\n`);
  return file;
}
