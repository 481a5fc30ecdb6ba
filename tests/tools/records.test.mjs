// The rows of a record that count as slower than before, and what lets such a row pass.
//
// Records here are made up, but for one that is kept. Nothing is measured.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import {
  compare,
  isFailing,
  parseNotes,
} from "../../tools/records/comparison.mjs";
import { LIMIT, LIMITS } from "../../tools/records/limits.mjs";
import { isSameKind, machineOf } from "../../tools/records/machines.mjs";
import { rowsOf } from "../../tools/records/rows.mjs";

const TOOL = resolve("tools/records.mjs");
const GRADIENTS = "2026-11-21-nvidia-h200-native-gradients.json";

/** A row of a record, in milliseconds unless `more` says otherwise. */
const row = (value, spread, more = {}) => ({
  ...{ name: "small, framebatch-gpu", value, spread },
  ...{ unit: "ms", better: "lower", ...more },
});

/** Before, now, and the verdict. */
const VERDICTS = {
  "slower by more than the limit and twice the spread": [
    row(10, 0.1),
    row(11, 0.1),
    "slower",
  ],
  "slower by no more than the limit": [row(10, 0), row(10.49, 0), "same"],
  "slower by more than the limit, within twice the spread": [
    row(10, 0.1),
    row(11, 0.6),
    "within spread",
  ],
  "within twice the spread that it had before": [
    row(10, 0.6),
    row(11, 0.1),
    "within spread",
  ],
  "the earlier record kept no spread: that of the new one counts": [
    row(10, undefined),
    row(11, 0.6),
    "within spread",
  ],
  "the earlier record kept no spread, and the new one has little": [
    row(10, undefined),
    row(11, 0.1),
    "slower",
  ],
  "neither kept a spread: the limit alone counts": [
    row(10, undefined),
    row(11, undefined),
    "slower",
  ],
  faster: [row(10, 0.1), row(9, 0.1), "faster"],
  "a rate that fell": [
    row(100, 1, { unit: "texts a second", better: "higher" }),
    row(90, 1, { unit: "texts a second", better: "higher" }),
    "slower",
  ],
  "a rate that rose": [
    row(90, 1, { unit: "texts a second", better: "higher" }),
    row(100, 1, { unit: "texts a second", better: "higher" }),
    "faster",
  ],
  "measured for the first time": [undefined, row(10, 0.1), "new"],
  "in another unit than before": [
    row(10, 0.1),
    row(2, 0.1, { unit: "× by hand" }),
    "not held",
  ],
  "beyond five in a hundred, within a limit of its own": [
    row(10, 0, { name: "first-call, framebatch-gpu" }),
    row(10.9, 0, { name: "first-call, framebatch-gpu" }),
    "same",
  ],
};

/** The lines of one row, and of what else is told. */
function lines(before, now, { notes, failed = [] } = {}) {
  return compare({
    now: { rows: now ? [now] : [], failed, unheld: [] },
    before: (name) => (before?.name === name ? before : undefined),
    notes: new Map(Object.entries(notes ?? {})),
  });
}

const verdicts = (of) => of.map(({ verdict }) => verdict);

for (const [about, [before, now, expected]] of Object.entries(VERDICTS)) {
  test(`a row: ${about}`, () =>
    assert.deepEqual(verdicts(lines(before, now)), [expected]));
}

test("a row that is not in the new record is not asked for", () =>
  assert.deepEqual(lines(row(10, 0), undefined), []));

test("a row without an answer fails, with a note or without", () => {
  const failed = [{ name: "small, framebatch-gpu", problem: "lost" }];
  const found = lines(row(10, 0), undefined, { failed });
  assert.deepEqual(verdicts(found), ["failed"]);
  assert.ok(found.every(isFailing));
});

test("a note lets a slower row pass, and nothing else", () => {
  const notes = { "small, framebatch-gpu": "calls keep their ids" };
  const [noted] = lines(row(10, 0.1), row(11, 0.1), { notes });
  assert.deepEqual([noted.verdict, isFailing(noted)], ["noted", false]);
  assert.equal(noted.why, "calls keep their ids");
  for (const now of [row(10, 0.1), row(9, 0.1), row(11, 0.6), undefined]) {
    const found = lines(row(10, 0.1), now, { notes });
    assert.equal(found.at(-1).verdict, "stale note");
    assert.ok(isFailing(found.at(-1)));
  }
});

test("notes are a list of rows with reasons", () => {
  const text = "# What got slower\n\n- `a, b`: because\n- `c, d`: of this\n";
  assert.deepEqual(
    [...parseNotes(text)],
    [
      ["a, b", "because"],
      ["c, d", "of this"],
    ],
  );
  assert.throws(() => parseNotes("- a, b: because"), /a note is/);
  assert.throws(() => parseNotes("- `a, b`:"), /a note is/);
  assert.throws(() => parseNotes("- `a`: x\n- `a`: y"), /two notes on a/);
});

test("every limit of its own says why, and is wider than the usual one", () => {
  for (const { limit, reason } of LIMITS) {
    assert.ok(limit > LIMIT);
    assert.ok(reason.length > 20);
  }
});

const page = (rows, more = {}) => ({
  date: "2026-11-23T10:00:00.000Z",
  ...{ adapter: "nvidia", software: false, isolated: true, cores: 16 },
  browser: "Mozilla/5.0 HeadlessChrome/156.0.1.2 Safari/537.36",
  workloads: [],
  ...{ rows, ...more },
});
const timed = (system, median, more = {}) => ({
  ...{ workload: "small", system, median, ...more },
});
const software = { adapter: "google swiftshader", software: true };

test("only rows of this package count, in milliseconds on a GPU", () => {
  const { rows } = rowsOf(
    page([
      timed("one-batch", 2),
      timed("framebatch-gpu", 3, { quartiles: [2.5, 3.25] }),
      timed("framebatch-cpu", 1, { rounds: [0.5, 1, 2] }),
      timed("tfjs", 100),
    ]),
  );
  assert.deepEqual(rows, [
    row(3, 0.75, { byHand: 2 }),
    row(1, 1.5, { name: "small, framebatch-cpu", byHand: 2 }),
  ]);
});

test("on a software adapter rows are ratios to one batch by hand, round by round", () => {
  const { rows, unheld } = rowsOf(
    page(
      [
        timed("one-batch", 2, { rounds: [2, 4, 1] }),
        timed("framebatch-gpu", 3, { rounds: [3, 6, 2] }),
        { ...timed("framebatch-gpu", 1), workload: "alone" },
        { ...timed("one-batch", 4), workload: "small-lerp-1000x64" },
        { ...timed("framebatch-gpu", 6), workload: "paced-frame-1000x64" },
      ],
      software,
    ),
  );
  const ratio = { unit: "× by hand" };
  assert.deepEqual(rows, [
    // A machine that is twice as slow for a round says nothing of the row.
    row(1.5, 0.5, { ...ratio, byHand: 2 }),
    row(1.5, undefined, {
      ...ratio,
      ...{ name: "paced-frame-1000x64, framebatch-gpu", byHand: 4 },
    }),
  ]);
  assert.deepEqual(
    unheld.map(({ name }) => name),
    ["alone, framebatch-gpu"],
  );
});

test("without rounds the spreads of both runs make that of a ratio", () => {
  const { rows } = rowsOf(
    page(
      [
        timed("one-batch", 2, { quartiles: [1.5, 2.5] }),
        timed("framebatch-gpu", 4, { quartiles: [3, 5] }),
      ],
      software,
    ),
  );
  assert.deepEqual([rows[0].value, rows[0].spread], [2, 2]);
});

test("no spread is less than a step of the page's clock", () => {
  const rows = [timed("framebatch-cpu", 0.01, { rounds: [0.01, 0.01, 0.01] })];
  const spread = (isolated) => rowsOf(page(rows, { isolated })).rows[0].spread;
  assert.deepEqual([true, false].map(spread), [0.005, 0.1]);
});

test("a median of nothing or less is not compared", () => {
  const { rows, unheld } = rowsOf(
    page([timed("framebatch-gpu", -0.1), timed("framebatch-cpu", 0)]),
  );
  assert.deepEqual([rows.length, unheld.length], [0, 2]);
});

test("a problem is told, and no record of the bench is none", () => {
  const { failed } = rowsOf(
    page([timed("framebatch-gpu", 0, { problem: "x" })]),
  );
  assert.deepEqual(failed, [{ name: "small, framebatch-gpu", problem: "x" }]);
  assert.equal(rowsOf({ machine: "2 cores", soak: {} }), undefined);
  assert.equal(rowsOf({ rows: [{ name: "matmul", gpuMs: 1 }] }), undefined);
});

const KINDS = [
  ["the same, of another version", {}, { browser: "Chrome/157.0" }, true],
  ["named by whoever kept it", {}, { machine: "NVIDIA" }, true],
  ["another adapter", {}, { adapter: "amd" }, false],
  ["another of that maker's", {}, { machine: "nvidia h200" }, false],
  ["in another browser", {}, { browser: "Firefox/140.0" }, false],
  ["natively", {}, { browser: undefined }, false],
  ["with fewer processors", {}, { cores: 2 }, false],
  ["with nobody knows how many", {}, { cores: undefined }, true],
];
for (const [about, a, b, expected] of KINDS) {
  test(`a kind of machine: ${about}`, () => {
    const [one, other] = [a, b].map((more) => machineOf(page([], more)));
    assert.equal(isSameKind(one, other), expected);
  });
}

/** A folder with these records, by name; `records` runs the tool in it. */
function folder(t, records) {
  const root = mkdtempSync(join(tmpdir(), "framebatch-records-"));
  t.after(() => rmSync(root, { recursive: true }));
  const of = (name) => join(root, "benches/record", name);
  mkdirSync(of(""), { recursive: true });
  for (const [name, content] of Object.entries(records)) {
    const isText = typeof content === "string";
    writeFileSync(of(name), isText ? content : JSON.stringify(content));
  }
  return {
    of,
    records(...args) {
      const options = { cwd: root, encoding: "utf8" };
      const ran = spawnSync("node", [TOOL, ...args], options);
      return { status: ran.status, text: ran.stdout + ran.stderr };
    },
  };
}

const rounds = (around) => [0.99 * around, around, 1.01 * around];
const on = (day, systems) =>
  page(
    Object.entries(systems).map(([system, median]) =>
      timed(system, median, { rounds: rounds(median) }),
    ),
    { date: `${day}T10:00:00.000Z` },
  );

test("each row's newest measurement is held, against the one before", (t) => {
  const { records } = folder(t, {
    "a.json": on("2026-12-01", { "framebatch-gpu": 3, "framebatch-cpu": 1 }),
    // Holds some rows only.
    "b.json": on("2026-12-02", { "framebatch-gpu": 4 }),
    "c.json": on("2026-12-03", { "framebatch-gpu": 4 }),
    "d.json": on("2026-12-04", { "framebatch-cpu": 2 }),
    "e.json": { ...on("2026-12-05", { "framebatch-cpu": 9 }), quick: true },
    "f.json": { ...on("2026-12-06", { "framebatch-cpu": 9 }), cores: 2 },
  });
  const { status, text } = records();
  assert.equal(status, 1, text);
  // Record b is slower than a; that c was as slow later is another matter.
  assert.equal(records("benches/record/b.json").status, 1);
  // What b lost was that record's matter.
  assert.match(text, /c\.json[^]*small, framebatch-gpu .* same/);
  assert.match(
    text,
    /small, framebatch-cpu is slower: say why in .*d\.notes\.md/,
  );
  assert.doesNotMatch(text, /[abe]\.json: /);
  assert.match(text, /f\.json[^]*small, framebatch-cpu .* new/);
});

test("a note beside the record lets it pass, until the row is measured again", (t) => {
  const { of, records } = folder(t, {
    "a.json": on("2026-12-01", { "framebatch-gpu": 3 }),
    "b.json": on("2026-12-02", { "framebatch-gpu": 4 }),
    "b.notes.md": "- `small, framebatch-gpu`: calls keep their ids\n",
  });
  assert.equal(records().status, 0);
  assert.match(records().text, /noted: calls keep their ids/);
  writeFileSync(
    of("b.json"),
    JSON.stringify(on("2026-12-02", { "framebatch-gpu": 3 })),
  );
  assert.equal(records().status, 1);
  assert.match(
    records().text,
    /framebatch-gpu, stale note: the row is not slower/,
  );
  const c = on("2026-12-03", { "framebatch-gpu": 3 });
  writeFileSync(of("c.json"), JSON.stringify(c));
  assert.equal(records().status, 0);
});

test("records from before they were held are compared with, and pass", (t) => {
  const { records } = folder(t, {
    "a.json": on("2026-11-20", { "framebatch-gpu": 3 }),
    "b.json": on("2026-11-22", { "framebatch-gpu": 4 }),
  });
  assert.equal(records().status, 0);
  const { status, text } = records("benches/record/b.json");
  assert.equal(status, 0);
  assert.match(text, /small, framebatch-gpu .* slower\n[^]*is not held/);
});

test("a record of a machine that did other work is none", (t) => {
  const calm = (day, ms) => ({ ...on(day, { "framebatch-gpu": ms }), load: 9 });
  const { of, records } = folder(t, {
    "a.json": calm("2026-12-01", 3),
    "b.json": { ...calm("2026-12-02", 9), load: 17 },
  });
  const { status, text } = records();
  assert.equal(status, 1);
  assert.match(
    text,
    /b\.json, of 16 cores with a load of 17, busy: measure again/,
  );
  rmSync(of("b.json"));
  writeFileSync(of("c.json"), JSON.stringify(calm("2026-12-03", 3)));
  assert.equal(records().status, 0);
  writeFileSync(
    of("b.json"),
    JSON.stringify({ ...calm("2026-12-02", 1), load: 17 }),
  );
  assert.match(records("benches/record/c.json").text, /framebatch-gpu .* same/);
});

test("gradients of 1e7 states, twice as slow within two days, are found", (t) => {
  const { of, records } = folder(t, {});
  cpSync(join("benches/record", GRADIENTS), of(GRADIENTS));
  // What three runs on another such machine took, in the form that is written since.
  const took = {
    "gradients-1000000-by-10000": [35, 48, 61],
    "gradients-10000000-by-10000": [492, 499, 506],
  };
  const after = {
    ...{ date: "2026-11-23T08:00:00Z", adapter: "NVIDIA H200" },
    ...{ driver: "NVIDIA", software: false, cores: 16, workloads: [] },
    rows: Object.entries(took).map(([workload, rounds]) => ({
      ...{ workload, system: "framebatch", median: rounds[1], rounds },
    })),
  };
  writeFileSync(of("after.json"), JSON.stringify(after));
  for (const args of [
    [],
    ["benches/record/after.json"],
    ["benches/record/after.json", `benches/record/${GRADIENTS}`],
  ]) {
    const { status, text } = records(...args);
    assert.equal(status, 1, text);
    assert.match(text, /10000000-by-10000, framebatch is slower/);
    assert.match(text, /1000000-by-10000, framebatch .* within spread/);
  }
});

test("what is kept here holds", () => {
  const { status, stdout, stderr } = spawnSync("node", [TOOL], {
    encoding: "utf8",
  });
  assert.equal(status, 0, stdout + stderr);
});
