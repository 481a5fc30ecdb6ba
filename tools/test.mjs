// Runs the suites one after another, some of them beside a long one, and ends with one line:
// `N passed, N failed`.
//
//   node tools/test.mjs         every suite
//   node tools/test.mjs unit    only those that need neither a browser nor a GPU
//   node tools/test.mjs web pages    those suites, by their names
//
// The command runs no test itself: each suite's own runner does, and its counts are read
// from what it prints. A suite that fails without saying how often counts as one
// failure, and so does one that ran nothing.

import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { chromedriver } from "./browser.mjs";

const testsIn = (folder) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith(".test.mjs"))
    .map((name) => `${folder}/${name}`);

// One test file of a browser at a time; one that never ends fails in twenty minutes.
const nodeTest = (folder) => () => [
  "node",
  "--test",
  "--test-concurrency=1",
  "--test-timeout=1200000",
  "--test-reporter=spec",
  ...testsIn(folder),
];

// Its files share a browser: Firefox takes as long to start as a test of it.
const pageTest = () => [
  ...["node", "tools/with-browser.mjs"],
  ...nodeTest("tests/e2e")(),
];

const VALUES = [
  ...["conformance", "fields", "states", "merging", "chains"],
  ...["builder", "clips", "search"],
  // Models are chains, and take as long as the rest: `make long` asks them as well.
  ...(process.env.LONG === "1" ? ["embed"] : []),
];

// A store of clips, what they write, a page of an index and a weight of a model are each one buffer;
// descents of so many states take long; and the last says in how many pieces it goes.
const BEYOND_SMALL = [
  "the_store_grows_between_calls_of_one_batch",
  "a_clip_beyond_the_budget_leaves_the_others_as_they_were",
  "ten_thousand_random_tracks",
  "what_is_given_up_writes_the_clip_that_it_was_asked_for",
  "several_pages_are_searched_as_one",
  "a_hundred_thousand_vectors_are_searched_as_a_sort_does",
  "minilm::",
  "descent_of_every_layer_at_many_rates",
  "sixty_four_texts_are_one_submission",
];

// What computes no other values: encoders in several sessions and of many families, rankings, the test
// of storage.
const NO_VALUES = ["several::", "rerankers::", "self_test::", "families::"];

const SUITES = [
  { name: "unit", unit: true, command: () => ["cargo", "test", "--lib"] },
  {
    name: "native",
    // All of it: one failure must not hide what comes after it. The suite before has compiled
    // the crate without features.
    command: () => ["cargo", "test", "--features", "tracing", "--no-fail-fast"],
    // Without a desktop session, Mesa's device chooser complains for every device opened.
    env: { NODEVICE_SELECT: "1" },
  },
  {
    // All that is about values, on a device of 1 MiB a buffer and 4 MiB in all.
    name: "small",
    command: () => [
      "cargo",
      "test",
      // Compiled already.
      ...["--features", "tracing"],
      "--no-fail-fast",
      ...VALUES.flatMap((name) => ["--test", name]),
      "--",
      ...[...BEYOND_SMALL, ...NO_VALUES].flatMap((name) => ["--skip", name]),
    ],
    // The native suite has tried 200 random graphs on a device of its full size.
    env: { NODEVICE_SELECT: "1", SMALL_DEVICE: "1", PROPTEST_CASES: "50" },
  },
  {
    name: "package",
    unit: true,
    command: () => ["npm", "test", "--silent"],
    options: { cwd: "pkg-template" },
  },
  {
    name: "web",
    // One core compiles what the other's suite has no use for.
    beside: "package",
    command: () => [
      ...["wasm-pack", "test", "--headless", "--chrome"],
      ...["--chromedriver", chromedriver()],
      ...[".", "--test", "web"],
    ],
    // The runner's own limit, 20 s for a whole test binary, is too little on SwiftShader. And what
    // computes is the GPU.
    env: {
      WASM_BINDGEN_TEST_TIMEOUT: "300",
      CARGO_PROFILE_DEV_OPT_LEVEL: "0",
      RUSTC_WORKSPACE_WRAPPER: resolve("tools/with-vectors.sh"),
    },
  },
  { name: "tools", unit: true, command: nodeTest("tests/tools") },
  { name: "pages", command: pageTest },
  {
    // A browser waits for frames and timers two fifths of the time.
    name: "firefox",
    beside: "pages",
    command: pageTest,
    env: { BROWSER: "firefox" },
  },
  {
    name: "packaging",
    beside: "pages",
    command: nodeTest("tests/packaging"),
  },
  {
    name: "site",
    beside: "pages",
    command: nodeTest("tests/site"),
  },
];

const names = process.argv.slice(2);
const chosen = SUITES.filter((suite) => {
  if (names[0] === "unit") return suite.unit;
  // The unit tests are among the native ones.
  return names.length > 0 ? names.includes(suite.name) : suite.name !== "unit";
});
const known = SUITES.map((suite) => suite.name);
const unknown = names.find((name) => !known.includes(name));
if (unknown)
  throw new Error(
    `there is no suite '${unknown}'; there are ${known.join(", ")}`,
  );
const results = [];
const show = (text) => process.stdout.write(text);
for (let i = 0; i < chosen.length; i++) {
  const suite = chosen[i];
  console.log(`\n== ${suite.name}`);
  const others = [];
  while (chosen[i + 1]?.beside === suite.name) others.push(chosen[++i]);
  const otherwise = inTurn(others);
  results.push({ name: suite.name, ...(await run(suite, show)) });
  for (const { name, texts, found } of await otherwise) {
    console.log(`\n== ${name}, at the same time`);
    texts.forEach(show);
    results.push({ name, ...found });
  }
}

console.log();
for (const { name, passed, failed, skipped } of results) {
  console.log(
    `${name.padEnd(10)} ${passed} passed, ${failed} failed` +
      (skipped > 0 ? `, ${skipped} skipped` : ""),
  );
}
const total = (count) => results.reduce((sum, suite) => sum + suite[count], 0);
console.log(`${total("passed")} passed, ${total("failed")} failed`);
process.exitCode = total("failed") > 0 ? 1 : 0;

/** Runs suites one after another, and keeps what they print. */
async function inTurn(suites) {
  const done = [];
  for (const suite of suites) {
    const texts = [];
    const found = await run(suite, (text) => texts.push(text));
    done.push({ name: suite.name, texts, found });
  }
  return done;
}

/** Runs one suite, handing its output to `show` as it comes. */
async function run({ command, env, options }, show) {
  const [program, ...args] = command();
  const child = spawn(program, args, {
    ...options,
    env: { ...process.env, NO_COLOR: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (text) => {
      output += text;
      show(text);
    });
  }
  const code = await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  return judge(count(output), code);
}

/** Adds up the summaries of libtest, wasm-bindgen-test and node:test. */
function count(output) {
  const sums = { passed: 0, failed: 0, skipped: 0 };
  const add = (key, text) => (sums[key] += Number(text));
  const libtest =
    /^test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored/gm;
  for (const [, passed, failed, ignored] of output.matchAll(libtest)) {
    add("passed", passed);
    add("failed", failed);
    add("skipped", ignored);
  }
  const node = /^\S (pass|fail|cancelled|skipped|todo) (\d+)\s*$/gm;
  const keys = { pass: "passed", fail: "failed", cancelled: "failed" };
  for (const [, word, amount] of output.matchAll(node)) {
    add(keys[word] ?? "skipped", amount);
  }
  return sums;
}

/** Nothing passes silently: no tests, skipped tests and a bad exit are failures. */
function judge({ passed, failed, skipped }, code) {
  if (skipped > 0) console.error(`${skipped} tests were skipped`);
  if (passed + failed === 0) console.error("the suite ran no test");
  const silent = code !== 0 || passed === 0 ? 1 : 0;
  return { passed, failed: Math.max(failed + skipped, silent), skipped };
}
