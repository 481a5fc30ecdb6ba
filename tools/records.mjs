// Compares records of the bench, native ones too, with earlier ones of the same kind of
// machine, row by row, and fails for a row that got slower until a note says why.
//
//   node tools/records.mjs                 each row's newest measurement with the one before
//   node tools/records.mjs FILE            all rows of one record with what was measured before
//   node tools/records.mjs FILE BEFORE     with those of this record, whatever its machine
//
// The command measures nothing: records are written by `tools/bench.mjs` and `cargo bench`, to
// benches/record. A row is slower when it lost more than its limit and more than twice the
// spread of its rounds. The note is a line of `RECORD.notes.md`, beside `RECORD.json`:
//
//   - `small-1000x64, framebatch-gpu`: each call keeps its id, which a retry needs
//
// A note for a row that is not slower fails as well, and so does a record that began while
// the machine had more other work than processors: that one says nothing, and is not
// compared with. Records from before the day in tools/records/limits.mjs are not held: the
// table of one shows what differs, and passes.

import { compare, isFailing } from "./records/comparison.mjs";
import { earlier, history, load, newestPart } from "./records/history.mjs";
import { HELD_SINCE } from "./records/limits.mjs";
import { described } from "./records/machines.mjs";
import { printTable } from "./table.mjs";

const FOLDER = "benches/record";

const [file, before] = process.argv.slice(2);
const failing = file === undefined ? all() : [one(file, before)];
process.exitCode = failing.some((count) => count > 0) ? 1 : 0;

/** Every record that holds the newest measurement of a row, if it is held. */
function all() {
  const { records, others } = history(FOLDER);
  const held = records.filter(({ isHeld }) => isHeld);
  const parts = held.flatMap((record) => newestPart(records, record) ?? []);
  const counts = parts.map((part) => show(part, earlier(records, part)));
  console.log(
    `${FOLDER}: ${records.length} records of the bench, ${held.length} of them held, ` +
      `${parts.length} with a row's newest measurement; ${others.length} of other things`,
  );
  return counts;
}

function one(file, before) {
  const record = loaded(file);
  if (before === undefined) {
    return show(record, earlier(history(FOLDER).records, record));
  }
  const from = loaded(before);
  return show(record, (name) => {
    const row = from.found.rows.find((row) => row.name === name);
    return row && { ...row, from };
  });
}

function loaded(file) {
  const record = load(file);
  if (record === undefined) {
    throw new Error(`${file} is no finished record of the bench`);
  }
  return record;
}

/** Prints the table of a record, and gives the number of lines that fail. */
function show({ found, notes, ...record }, before) {
  const lines = compare({ now: found, before, notes });
  console.log(`\n${record.file}: ${described(record.machine)}`);
  for (const source of sources(lines)) console.log(`compared with ${source}`);
  printTable([
    ["row", "before", "now", "slower by", "limit", "2 x spread", "by hand", ""],
    ...lines.map(cells),
  ]);
  console.log(counted(lines));
  if (!record.isHeld) {
    console.log(`it is from before ${HELD_SINCE}, and is not held`);
    return 0;
  }
  const failing = lines.filter(isFailing);
  if (record.isBusy) {
    const { load, machine } = record;
    const name = `${record.file}, of ${machine.cores} cores with a load of ${load}`;
    failing.push({ name, verdict: "busy", why: "measure again at rest" });
  }
  for (const { name, verdict, why } of failing) {
    console.error(
      verdict === "slower"
        ? `${name} is slower: say why in ${record.notesFile}`
        : `${name}, ${verdict}: ${why}`,
    );
  }
  return failing.length;
}

/** The records that the earlier rows are of, with their versions. */
function sources(lines) {
  const records = new Set(lines.flatMap(({ before }) => before?.from ?? []));
  return [...records].map(
    ({ file, machine }) => `${file}, version ${machine.version ?? "unknown"}`,
  );
}

function cells({ name, now, before, change, limit, noise, verdict, why }) {
  const known = now?.spread ?? before?.spread;
  return [
    name,
    before === undefined ? "" : digits(before.value),
    now === undefined ? "" : `${digits(now.value)} ${now.unit}`,
    change === undefined ? "" : percent(change),
    limit === undefined ? "" : percent(limit),
    noise === undefined
      ? ""
      : known === undefined
        ? "none kept"
        : percent(noise),
    // What one batch by hand lost meanwhile, which is the machine's doing.
    before?.byHand && now.byHand ? percent(now.byHand / before.byHand - 1) : "",
    why === undefined ? verdict : `${verdict}: ${why}`,
  ];
}

function counted(lines) {
  const verdicts = [...new Set(lines.map(({ verdict }) => verdict))];
  const count = (of) => lines.filter(({ verdict }) => verdict === of).length;
  return verdicts.map((verdict) => `${count(verdict)} ${verdict}`).join(", ");
}

function percent(share) {
  return `${(100 * share).toFixed(0)} %`;
}

function digits(value) {
  return value.toFixed(value < 0.1 ? 4 : value < 10 ? 3 : value < 100 ? 1 : 0);
}
