// Opens the bench page headless, prints its tables, and keeps them under benches/record.
//
//   node tools/bench.mjs [--workloads A,B] [--systems A,B] [--quick] [--rounds N] [--machine NAME] [--keep WHAT]
//   node tools/bench.mjs --page embeddings/ …
//   node tools/bench.mjs --page load/ [--ask "rate=500,2000&policy=auto,frame&seconds=3"] …
//   node tools/bench.mjs --from FILE [--machine NAME] [--keep WHAT]
//
// With `--rounds` the systems of a workload take turns so often, and a row is of the round
// in the middle. `--page` names another page of the bench. That of embeddings needs a
// model and its rival: `make model`, then `tools/rival.sh`. `--ask` is more of the page's
// address, for pages that take more than the options here.
//
// `--from` takes a record that the page made elsewhere (its download, or what it
// posted with `?report`) instead of measuring. NAME says which machine that was: a
// browser may tell no more of a GPU than who made it. WHAT ends the record's name,
// "rivals" unless given; a part of the bench, or a quick one, is kept only under a name
// of its own. It fails where a system answered wrongly or not at all. No goal is set in
// milliseconds for a software adapter: there only ratios to `one-batch`, one batch by hand
// on the same adapter, count.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { launch, openPage } from "./browser.mjs";
import { report } from "./bench-report.mjs";
import { ISOLATED, serve } from "./serve.mjs";

/** Longer than the whole bench takes on two cores. */
const LONGEST_MS = 40 * 60_000;

const SWITCHES = ["--js-flags=--expose-gc", "--enable-precise-memory-info"];

const { values: options } = parseArgs({
  options: {
    workloads: { type: "string" },
    systems: { type: "string" },
    quick: { type: "boolean" },
    rounds: { type: "string" },
    keep: { type: "string" },
    from: { type: "string" },
    machine: { type: "string" },
    page: { type: "string", default: "" },
    ask: { type: "string" },
  },
});

/** The site, and what is not part of it. */
const MOUNTS = {
  "/": "www/dist",
  "/bench/embeddings/models/minilm/": "models/minilm",
  "/bench/embeddings/models/reference/": "tests/data",
  "/bench/embeddings/models/onnx/": "target/rival/models",
  "/bench/embeddings/rival/": "target/rival/js",
};

const isPart = Boolean(
  options.workloads || options.systems || options.quick || options.page,
);
const what = options.keep ?? (isPart ? undefined : "rivals");

const measured = options.from
  ? JSON.parse(readFileSync(options.from, "utf8"))
  : await measure();
const result = options.machine
  ? { ...measured, machine: options.machine }
  : measured;
const text = report(result);
console.log(text);
if (what !== undefined) console.log(`record: ${keep(result, text)}`);
const problems = result.rows.filter((row) => row.problem !== undefined);
for (const { workload, system, problem } of problems) {
  console.error(`${workload}, ${system}: ${problem}`);
}
process.exitCode = problems.length > 0 ? 1 : 0;

async function measure() {
  const [load] = loadavg();
  if (load > availableParallelism() / 2) {
    console.error(`other work is running (load ${load}): times will be off`);
  }
  const site = await serve(MOUNTS, { headers: () => ISOLATED });
  const browser = await launch({ switches: SWITCHES });
  try {
    const page = await openPage(browser);
    const query = new URLSearchParams(options.ask);
    query.set("run", "");
    if (options.quick) query.set("quick", "");
    for (const of of ["workloads", "systems", "rounds"]) {
      if (options[of]) query.set(of, options[of]);
    }
    await page.goto(`${site.url}/bench/${options.page}?${query}`);
    return { ...(await finished(page)), load };
  } finally {
    await browser.close();
    await site.close();
  }
}

/** Tells what is being measured until there is a result. */
async function finished(page) {
  const end = Date.now() + LONGEST_MS;
  let told = "";
  while (Date.now() < end) {
    const { state, result } = await page.evaluate(() => ({
      state: document.querySelector("#state").textContent,
      result: window.__result,
    }));
    if (result?.problem) throw new Error(result.problem);
    if (result) return result;
    if (state !== told) console.error(state);
    told = state;
    // Seldom, because asking takes time from what is measured.
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
  throw new Error(`no result after ${LONGEST_MS / 60_000} minutes`);
}

function keep(result, text) {
  const folder = "benches/record";
  const { adapter, machine = adapter } = result;
  const slug = machine.replace(/[^a-z0-9]+/gi, "-").toLowerCase();
  const name = `${folder}/${result.date.slice(0, 10)}-${slug}-${what}`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${name}.json`, `${JSON.stringify(result, null, 1)}\n`);
  writeFileSync(`${name}.md`, text);
  return `${name}.json, ${name}.md`;
}
