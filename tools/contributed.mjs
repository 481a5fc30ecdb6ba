// Checks and lists the records that visitors of the bench page contributed.
//
//   node tools/contributed.mjs           those in benches/contributed
//   node tools/contributed.mjs FILE…     these
//
// A record has an adapter, a browser and rows, as the page's "Save a record" writes them
// (www/bench/stories/share.ts), and nothing else: what the page never writes is refused, so
// that no record tells more of a person than was said. Whether the times are true, nobody
// can check: they are listed by themselves, and never beside those of benches/record.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stories } from "./records/kept.mjs";
import { printTable } from "./table.mjs";

const FOLDER = "benches/contributed";
/** More is no record of the page. */
const MOST_BYTES = 16_384;
const FIELDS = { record: ["adapter", "browser", "rows"] };
FIELDS.row = ["workload", "system", "runs", "median", "p95"];
/** Letters, digits and what stands in names of adapters; no markup. */
const NAME = /^[\p{L}\p{N} .,:()/_@+-]{1,120}$/u;
const BROWSER = /^(Chrome|Edge|Firefox|Safari|another browser)( \d{1,4})?$/;

/** What is wrong with the text of a record, in sentences; none of a good one. */
export function problemsOf(text) {
  if (text.length > MOST_BYTES) return [`more than ${MOST_BYTES} bytes`];
  let record;
  try {
    record = JSON.parse(text);
  } catch (error) {
    return [`no JSON: ${error.message}`];
  }
  const strange = otherFields("the record", record, FIELDS.record);
  if (strange.length > 0) return strange;
  const { adapter, browser, rows } = record;
  const problems = [];
  if (!NAME.test(adapter)) problems.push("the adapter is no name");
  if (!BROWSER.test(browser)) problems.push(`no browser is called ${browser}`);
  if (!Array.isArray(rows) || rows.length === 0) {
    return [...problems, "there are no rows"];
  }
  const seen = new Set();
  rows.forEach((row, at) => {
    problems.push(...problemsOfRow(row, `row ${at + 1}`, seen));
  });
  return problems;
}

function problemsOfRow(row, about, seen) {
  const strange = otherFields(about, row, FIELDS.row);
  if (strange.length > 0) return strange;
  const { workload, system, runs, median, p95 } = row;
  const story = stories.find((story) => story.workload === workload);
  if (!story?.systems.includes(system)) {
    return [`${about}: the page measures no ${workload} by ${system}`];
  }
  const key = `${workload} ${system}`;
  if (seen.has(key)) return [`${about}: ${key} is there twice`];
  seen.add(key);
  const isTime = (value) =>
    typeof value === "number" && value >= 0 && value < 1e6;
  if (!isTime(median) || !isTime(p95) || p95 < median) {
    return [`${about}: ${median} and ${p95} are no median and 95th percentile`];
  }
  if (!Number.isSafeInteger(runs) || runs < 1 || runs > 1000) {
    return [`${about}: ${runs} runs`];
  }
  return [];
}

function otherFields(about, value, fields) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return [`${about} is no object`];
  }
  const given = Object.keys(value);
  return [
    ...given
      .filter((name) => !fields.includes(name))
      .map((name) => `${about} has a '${name}', which the page never writes`),
    ...fields
      .filter((name) => !given.includes(name))
      .map((name) => `${about} lacks '${name}'`),
  ];
}

/** A row of the list for each record: its machine, and its medians of framebatch. */
export function listed(records) {
  const head = [
    "record",
    "adapter",
    "browser",
    ...stories.map(({ title }) => title),
  ];
  const rows = records.map(({ name, record: { adapter, browser, rows } }) => [
    ...[name, adapter, browser],
    ...stories.map(({ workload }) => {
      const row = rows.find(
        (row) => row.workload === workload && row.system === "framebatch-auto",
      );
      return row === undefined ? "" : `${row.median} ms`;
    }),
  ]);
  return [head, ...rows];
}

function filesIn(folder) {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return names.sort().map((name) => join(folder, name));
}

function main(given) {
  const files = given.length > 0 ? given : filesIn(FOLDER);
  const good = [];
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    const problems = problemsOf(text);
    for (const problem of problems) console.error(`${file}: ${problem}`);
    if (problems.length > 0) process.exitCode = 1;
    else good.push({ name: basename(file, ".json"), record: JSON.parse(text) });
  }
  if (good.length > 0) printTable(listed(good));
  console.log(`${good.length} of ${files.length} contributed records are good`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(process.argv.slice(2));
}
