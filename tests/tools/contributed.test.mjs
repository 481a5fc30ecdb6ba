// Which contributed records are taken: what the page writes, and nothing that it never does.

import assert from "node:assert/strict";
import { test } from "node:test";
import { listed, problemsOf } from "../../tools/contributed.mjs";
import { keptRecords, names, stories } from "../../tools/records/kept.mjs";

const ROW = {
  workload: "small-1000x64",
  system: "framebatch-auto",
  runs: 40,
  median: 2.5,
  p95: 3,
};
const RECORD = { adapter: "nvidia ampere", browser: "Chrome 156", rows: [ROW] };

const withRow = (row) => ({ ...RECORD, rows: [{ ...ROW, ...row }] });
const { median: _, ...WITHOUT_MEDIAN } = ROW;

const REFUSED = [
  ["a field more", { ...RECORD, cores: 16 }, /has a 'cores'/],
  ["a field less", { adapter: "a", rows: [ROW] }, /lacks 'browser'/],
  ["a list", [], /is no object/],
  ["no rows", { ...RECORD, rows: [] }, /no rows/],
  ["a field more in a row", withRow({ date: "today" }), /has a 'date'/],
  [
    "a row without a time",
    { ...RECORD, rows: [WITHOUT_MEDIAN] },
    /lacks 'median'/,
  ],
  ["markup", { ...RECORD, adapter: "<b>GPU</b>" }, /adapter is no name/],
  [
    "a whole user agent",
    { ...RECORD, browser: "Mozilla/5.0 (X11)" },
    /no browser/,
  ],
  [
    "a system of another row",
    withRow({ system: "framebatch-awaited" }),
    /measures no/,
  ],
  ["a workload of none", withRow({ workload: "trace-chain" }), /measures no/],
  ["a row twice", { ...RECORD, rows: [ROW, ROW] }, /twice/],
  ["times out of order", withRow({ p95: 1 }), /no median/],
  ["a text as a time", withRow({ median: "2.5" }), /no median/],
  ["no whole runs", withRow({ runs: 0.5 }), /0.5 runs/],
];

for (const [name, record, message] of REFUSED) {
  test(`refused: ${name}`, () => {
    assert.match(problemsOf(JSON.stringify(record)).join("\n"), message);
  });
}

test("refused: what is no JSON, and what is too long", () => {
  assert.match(problemsOf("{")[0], /no JSON/);
  assert.match(problemsOf(" ".repeat(20_000))[0], /more than/);
});

test("a record of the page is listed by its rows", () => {
  assert.deepEqual(problemsOf(JSON.stringify(RECORD)), []);
  const [head, row] = listed([{ name: "mine", record: RECORD }]);
  assert.equal(head.length, 3 + stories.length);
  assert.deepEqual(row.slice(0, 4), [
    ...["mine", "nvidia ampere", "Chrome 156", "2.5 ms"],
  ]);
});

test("kept records are there to be drawn beside, the fullest first", () => {
  const kept = keptRecords("benches/record");
  assert.ok(kept.length > 5);
  assert.ok(Object.keys(kept[0].medians).length >= 3);
  for (const { adapter, browser, medians } of kept) {
    assert.match(browser, /^(Chrome|Firefox) \d+$/);
    assert.ok(adapter.length > 0);
    for (const workload of Object.keys(medians)) {
      assert.ok(stories.some((story) => story.workload === workload));
    }
  }
});

test("each bar has a name in plain words", () => {
  const unnamed = stories
    .flatMap(({ systems }) => systems)
    .filter((system) => !(system in names));
  assert.deepEqual(unnamed, []);
});
