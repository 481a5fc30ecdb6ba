// What is run before a release, and one record of it.
//
//   node tools/long.mjs                            all of it, with a soak of ten minutes
//   LONG_MINUTES=2 node tools/long.mjs             with one of two
//   LONG_PARTS=losses,soak node tools/long.mjs     some of it; the record holds no more
//
// First the property tests in large runs, random graphs and kernels among them, and files of
// strangers for as many minutes a kind and face as the soak has, both faces and the command at once.
// Then a large model beside another library, steps in place under losses and shortages of memory,
// devices destroyed and GPU processes crashed under load, and the soak: calls, cancellations, losses,
// hiding and disposal at high rates, in rounds. Once it is warm nothing may grow.
// Then as long of streams of all kinds under a memory budget, which they never exceed. At
// last the bench, natively and in a page, each in a record of its own that is compared with
// the one before. Everything fails loudly, and nothing is recorded of a run that failed, but
// those of the bench: a row that got slower needs a note beside its record.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { launch, openPage } from "./browser.mjs";
import { serve } from "./serve.mjs";
import { assertFlat, assertNothingLost, assertWithin, held } from "./soak.mjs";

const MINUTES = Number(process.env.LONG_MINUTES ?? 10);
const ROUND_SECONDS = 15;
const WARM_MINUTES = 3;
const FOLDER = "benches/record";
/** How often the ways of the bench take their turn, and how it tells of its record. */
const ROUNDS = "3";
/** How long the bench waits for other work to end. */
const REST_MINUTES = 10;
const RECORD = /^record: (\S+\.json)/m;

/** What the tests of a file are added by that `make test` leaves to one browser. */
const LONGER = /\b(lightTest|heavyTest|longTest|testIn|testOn)\b/;
/** Those elsewhere, which ask Chromium alone. */
const ELSEWHERE = [
  "tests/packaging/convert.test.mjs",
  "tests/site/pages.test.mjs",
];

const CASES = "10000";
// Other cases in each run, and the same again if it is set.
const SEED = process.env.PROPTEST_RNG_SEED ?? String(Date.now());

const PARTS = {
  async properties() {
    const [[, tests]] = await run(
      ["cargo", "test", "--release", "--lib"],
      {
        PROPTEST_CASES: CASES,
        PROPTEST_RNG_SEED: SEED,
        MODEL_SCHEDULES: CASES,
      },
      /test result: ok\. (\d+) passed/,
    );
    return { cases: Number(CASES), seed: SEED, tests: Number(tests) };
  },
  async fuzzedTexts() {
    const FUZZED_TEXTS = "1000000";
    await run(["tools/tokenizers.sh"], {}, /^/);
    await run(
      [
        "cargo",
        "test",
        "--release",
        ...["-p", "framebatch-tokenizer-peer"],
        ...["--test", "peer", "--test", "real"],
      ],
      { FUZZED_TEXTS },
      /test result: ok\. (\d+) passed/,
    );
    return Number(FUZZED_TEXTS);
  },
  async mpnet() {
    await run(["tools/mpnet.sh"], {}, /^/);
    const found = await run(
      [
        ...["cargo", "test", "--release", "--test", "mpnet"],
        ...["--", "--nocapture"],
      ],
      { NODEVICE_SELECT: "1" },
      /^fidelity on (\w+): (.*)$/gm,
    );
    return Object.fromEntries(found.map(([, engine, all]) => [engine, all]));
  },
  async fuzzedFiles() {
    const FUZZ_SECONDS = String(Math.round(MINUTES * 60));
    const env = { FUZZ_SECONDS, FUZZ_SEED: SEED };
    const facts = /fuzzed (\w+): (\d+) inputs/g;
    const native = run(
      [
        "cargo",
        "test",
        "--test",
        "fuzz",
        "--",
        "--nocapture",
        "--test-threads=1",
      ],
      env,
      facts,
    );
    const page = run(
      ["npm", "test", "--silent", "--prefix", "pkg-template", "--", "fuzz"],
      env,
      facts,
      // A page's parser that hangs cannot be asked to end.
      (5 * MINUTES + 15) * 60_000,
    );
    const command = run(
      [
        ...["node", "--test", "--test-reporter=spec"],
        "tests/packaging/gguf-fuzz.test.mjs",
      ],
      env,
      facts,
    );
    const inputs = async (found) =>
      Object.fromEntries(
        (await found).map(([, name, count]) => [name, Number(count)]),
      );
    // What one face finds does not end the others' run.
    const faces = await Promise.allSettled([native, page, command].map(inputs));
    const failed = faces.find(({ status }) => status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const [ofNative, ofPage, ofCommand] = faces.map(({ value }) => value);
    const found = { native: ofNative, page: ofPage, command: ofCommand };
    return { minutes: MINUTES, seed: SEED, ...found };
  },
  // Most of their time is the driver's, which compiles: no build of their own for it.
  async graphs() {
    const [[, devices]] = await run(
      ["cargo", "test", "--test", "chains", "under_random::random_graphs"],
      {
        PROPTEST_CASES: CASES,
        PROPTEST_RNG_SEED: SEED,
        NODEVICE_SELECT: "1",
      },
      /test result: ok\. (\d+) passed/,
    );
    return { cases: Number(CASES), seed: SEED, devices: Number(devices) };
  },
  // What `make test` does less of: words that no plan has, a model in fewer bits, steps and losses,
  // and models on a device of little memory.
  async natives() {
    const targets = ["endings", "embed", "builder"];
    const found = await run(
      [
        ...["cargo", "test", "--no-fail-fast"],
        ...targets.flatMap((name) => ["--test", name]),
      ],
      { LONG: "1", NODEVICE_SELECT: "1" },
      /test result: ok\. (\d+) passed/g,
    );
    const [[, small]] = await run(
      ["node", "tools/test.mjs", "small"],
      { LONG: "1" },
      /^small +(\d+) passed, 0 failed/m,
    );
    return [...found.map(([, passed]) => passed), small].map(Number);
  },
  // Cut into chunks: each is compiled for many sizes, so fewer of them.
  async graphsInChunks() {
    const GRAPHS = "1000";
    await run(
      ["cargo", "test", "--test", "chains", "chunks::random_graphs"],
      {
        PROPTEST_CASES: GRAPHS,
        PROPTEST_RNG_SEED: SEED,
        NODEVICE_SELECT: "1",
      },
      /test result: ok\. (\d+) passed/,
    );
    return { cases: Number(GRAPHS), seed: SEED };
  },
  async graphsInPages() {
    const counts = [];
    for (const BROWSER of ["chromium", "firefox"]) {
      const found = await run(
        ["node", "--test", "--test-reporter=spec", "tests/e2e/chains.test.mjs"],
        { LONG: "1", BROWSER },
        /(\d+) random graphs, on the \w+/g,
      );
      counts.push(...found.map(([, count]) => Number(count)));
    }
    return counts;
  },
  // What one browser stands for in `make test`, in both; and what takes too long there.
  async heavyPages() {
    const folder = "tests/e2e";
    const files = readdirSync(folder)
      .filter((name) => name.endsWith(".test.mjs"))
      .map((name) => `${folder}/${name}`)
      .filter((name) => LONGER.test(readFileSync(name, "utf8")));
    const passed = [];
    for (const BROWSER of ["chromium", "firefox"]) {
      const also = BROWSER === "chromium" ? ELSEWHERE : [];
      const [[, count]] = await run(
        [
          ...["node", "--test", "--test-reporter=spec", "--test-concurrency=1"],
          ...[...files, ...also],
        ],
        { LONG: "1", BROWSER },
        /pass (\d+)/,
      );
      passed.push(Number(count));
    }
    return passed;
  },
  // Bodies of kernels of a program's own: each is compiled for two devices natively.
  async bodies() {
    const BODIES = "2000";
    await run(
      ["cargo", "test", "--test", "kernel_bodies"],
      {
        PROPTEST_CASES: BODIES,
        PROPTEST_RNG_SEED: SEED,
        NODEVICE_SELECT: "1",
      },
      /test result: ok\. (\d+) passed/,
    );
    const pages = [];
    for (const BROWSER of ["chromium", "firefox"]) {
      const found = await run(
        [
          ...["node", "--test", "--test-reporter=spec"],
          "tests/e2e/kernel-bodies.test.mjs",
        ],
        { LONG: "1", BROWSER },
        /(\d+) random bodies of \w+, on the \w+/g,
      );
      pages.push(...found.map(([, count]) => Number(count)));
    }
    return { native: Number(BODIES), seed: SEED, pages };
  },
  // Steps in place, each kind of trouble in its turn, from many seeds.
  async steps() {
    const STEPS_RUNS = "20";
    const [[, runs]] = await run(
      ["cargo", "test", "--test", "builder", "steps::", "--", "--nocapture"],
      { STEPS_RUNS, STEPS_SEED: "1", NODEVICE_SELECT: "1" },
      /test result: ok\. (\d+) passed/,
    );
    const pages = [];
    for (const BROWSER of ["chromium", "firefox"]) {
      const [[, passed]] = await run(
        ["node", "--test", "--test-reporter=spec", "tests/e2e/steps.test.mjs"],
        { LONG: "1", BROWSER },
        /pass (\d+)/,
      );
      pages.push(Number(passed));
    }
    return { native: Number(runs) * Number(STEPS_RUNS), pages };
  },
  async longestGapMs() {
    const [[, destroyed], [, crashed]] = await run(
      ["node", "--test", "--test-reporter=spec", "tests/e2e/loss.test.mjs"],
      { LONG: "1" },
      /longest gap (\d+) ms/g,
    );
    return { destroyed: Number(destroyed), crashed: Number(crashed) };
  },
  async soak() {
    const found = await inBrowser(soak);
    assertFlat(found.first, found.last);
    return found;
  },
  streams: () => inBrowser(streams),
  // In rounds, so that each row tells how far the same work differs.
  async records() {
    // Before the rest, because compiling is work as well.
    await run(["cargo", "bench", "--bench", "batching", "--no-run"], {}, /^/);
    await rest();
    const [[, native]] = await run(
      [
        ...["cargo", "bench", "--bench", "batching", "--"],
        ...["--rounds", ROUNDS, "--record", FOLDER],
      ],
      { NODEVICE_SELECT: "1" },
      RECORD,
    );
    await rest();
    const [[, page]] = await run(
      [
        ...["node", "tools/bench.mjs", "--rounds", ROUNDS, "--keep", "ours"],
        ...["--systems", "one-batch,framebatch"],
      ],
      {},
      RECORD,
    );
    const verdicts = await run(["node", "tools/records.mjs"], {}, /^\d+ .*$/gm);
    return {
      ...{ rounds: Number(ROUNDS), files: [native, page] },
      verdicts: verdicts.map(([line]) => line),
    };
  },
};
const NAMES = {
  fuzz: "fuzzedFiles",
  losses: "longestGapMs",
  pages: "graphsInPages",
};

let site;
let browser;
const wanted = process.env.LONG_PARTS?.split(",") ?? Object.keys(PARTS);
const record = { machine: undefined };
for (const part of wanted.map((name) => NAMES[name] ?? name)) {
  if (PARTS[part] === undefined) throw new Error(`there is no part ${part}`);
  record[part] = await PARTS[part]();
}
record.machine = machine();
console.log(`record: ${keep(record)}`);

/** Runs a command to its good end; what `facts` finds in what it printed. */
async function run([command, ...rest], env, facts, timeout) {
  const child = spawn(command, rest, {
    timeout,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  let stdout = "";
  for await (const text of child.stdout.setEncoding("utf8")) {
    process.stdout.write(text);
    stdout += text;
  }
  const [status] = await ended;
  if (status !== 0) throw new Error(`${command} failed with ${status}`);
  const found = facts.global
    ? [...stdout.matchAll(facts)]
    : [stdout.match(facts)];
  if (found.length === 0 || found[0] === null) {
    throw new Error(`${command} did not print ${facts}`);
  }
  return found;
}

/** Waits until the work before is no longer in the load, which the bench keeps. */
async function rest() {
  const end = Date.now() + REST_MINUTES * 60_000;
  while (loadavg()[0] > availableParallelism() / 2) {
    if (Date.now() > end) {
      throw new Error(`other work is running (load ${loadavg()[0]})`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5000));
  }
}

async function inBrowser(use) {
  site = await serve({ "/pkg/": "pkg", "/": "tests/e2e/pages" });
  browser = await launch();
  try {
    return await use();
  } finally {
    await browser.close();
    await site.close();
  }
}

/** A page with a session, `gpu`, and what it runs on. */
async function opened(complaints, options) {
  const page = await openPage(browser, (text) => complaints.push(text));
  await page.goto(site.url);
  await page.waitForFunction(() => "framebatch" in window);
  const info = await page.evaluate(async (options) => {
    window.gpu = await framebatch.open({ engine: "gpu", ...options });
    return { adapter: gpu.info.adapter, browser: navigator.userAgent };
  }, options);
  return { page, info };
}

async function streams() {
  const complaints = [];
  const memoryBudget = 64 * 2 ** 20;
  // A busy machine takes its time, which is no loss; losses are other parts' business.
  const options = { memoryBudget, stallMs: 120_000 };
  const { page, info } = await opened(complaints, options);
  const until = Date.now() + MINUTES * 60_000;
  const total = { rounds: 0, chunks: 0, results: 0, wrong: 0, fallbacks: 0 };
  while (Date.now() < until) {
    const report = await page.evaluate(
      (round) => scarcity.streaming(gpu, round),
      {
        seconds: ROUND_SECONDS,
        seed: total.rounds + 1,
      },
    );
    console.log(JSON.stringify(report));
    assertWithin(report, memoryBudget);
    if (complaints.length > 0) throw new Error(complaints.join("; "));
    total.rounds++;
    for (const name of ["chunks", "results", "wrong"])
      total[name] += report[name];
    total.fallbacks = report.fallbacks;
    total.peakBytes = report.pool.peakBytes;
  }
  return { ...info, minutes: MINUTES, memoryBudget, ...total };
}

async function soak() {
  const complaints = [];
  const { page, info } = await opened(complaints);
  const other = await browser.newPage();
  const protocol = await page.createCDPSession();
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
  const looks = rounds.map(({ look }) => look);
  return { ...info, ...sum(rounds), first: warm(looks), last: looks.at(-1) };
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

/** What the page held when it was warm. */
function warm(looks) {
  // The first look counts in a soak that is too short for another.
  return looks.find(({ minute }) => minute >= WARM_MINUTES) ?? looks[0];
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
  const file = `${FOLDER}/${day}-${wanted.length < Object.keys(PARTS).length ? wanted.join("-") : "long"}.json`;
  writeFileSync(file, `${JSON.stringify(record, null, 1)}\n`);
  return file;
}
