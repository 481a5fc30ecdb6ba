// The page of loads, as built: calls come whatever the answers do, each is accounted for,
// what is wrong or too slow is told, and the record has the fields that are promised.
//
// Nothing here is about how fast anything is.

import assert from "node:assert/strict";
import { report } from "../../tools/bench-report.mjs";
import { ISOLATED } from "../../tools/serve.mjs";
import { result, usePage } from "./bench-page.mjs";
import { lightTest as test, longTest, openBuilt, testIn } from "./site.mjs";

/** Calls that come at random within a second at 40 a second, by the page's seed. */
const DUE_AT_40 = 37;

const COUNTS = ["due", "answered", "refused", "unanswered"];
const PARTS = [
  ...["p90", "p999", "max", ...COUNTS, "late50", "late99"],
  ...["answersPerSecond", "submitsPerSecond", "readbacksPerSecond"],
  ...["batchesPerSecond", "callsABatch"],
  ...["framesPerSecond", "frameGap50", "frameGap99", "frameGapMax"],
];

const isolated = openBuilt({}, ISOLATED);
const site = openBuilt();

/** Opens the page with this query, `prepare`d before its scripts run. */
const load = (query, use, { prepare, at = isolated } = {}) =>
  usePage(at, "/bench/load/", query, use, prepare);

/** Fails unless each call that was due is answered, refused or unanswered. */
function assertAllTold({ system, problem, runs, parts, ...row }) {
  assert.equal(problem, undefined, system);
  const { due, answered, refused, unanswered } = parts;
  assert.equal(answered + refused + unanswered, due, system);
  assert.equal(runs, answered + unanswered, system);
  const { min, median, p95, p99 } = row;
  assert.ok(min <= median && median <= p95 && p95 <= p99, system);
  assert.ok(p99 <= parts.max, system);
}

testIn(
  "chromium",
  "the form: a load of one's own, every call answered, shown with plots",
  () =>
    load({}, async (page) => {
      await page.$eval("#own [name=rate]", (field) => (field.value = "40"));
      await page.$eval("#own [name=seconds]", (field) => (field.value = "1"));
      await page.select("#own [name=mix]", "lerp");
      await page.select("#own [name=engine]", "gpu");
      await Promise.all([
        page.waitForNavigation(),
        page.click("#own [type=submit]"),
      ]);
      const record = await result(page);
      const { rows, cancelled, systems, workloads } = record;
      assert.equal(cancelled, false);
      const names = ["auto", "frame", "eager"].map(
        (policy) => `framebatch-${policy}-gpu`,
      );
      assert.deepEqual(Object.keys(systems), names);
      assert.deepEqual(
        rows.map(({ workload, system }) => [workload, system]),
        names.map((name) => ["poisson-40-lerp", name]),
      );
      assert.equal(workloads[0].compared, "one flush a frame");
      for (const row of rows) {
        assertAllTold(row);
        assert.equal(row.parts.answered, DUE_AT_40, row.system);
        assert.ok(row.error <= 3e-7, `${row.system}: error ${row.error}`);
        for (const part of PARTS) assert.ok(part in row.parts, part);
      }
      const [auto, frame] = rows;
      assert.equal(auto.ratio, auto.median / frame.median);
      assert.equal(auto.p99Ratio, auto.p99 / frame.p99);
      const [plots, shown] = await page.evaluate(() => [
        document.querySelectorAll("#plots canvas").length,
        document.querySelectorAll("#results tbody th").length,
      ]);
      assert.deepEqual([plots, shown], [2, 3]);
      // The form says what it was opened with.
      const rate = await page.$eval("#own [name=rate]", (field) => field.value);
      assert.equal(rate, "40");
      assert.match(report(record), /\| poisson-40-lerp \|/);
    }),
);

longTest(
  "all kinds of calls, in bursts, on either engine and by a loop, are right",
  () =>
    load(
      {
        ...{ run: "", rate: 40, arrivals: "burst", seconds: 0.5, animate: 1 },
        ...{ policy: "auto", engine: "gpu,auto", systems: "cpu-loop" },
      },
      async (page) => {
        const { rows } = await result(page);
        assert.deepEqual(
          rows.map(({ system }) => system),
          ["framebatch-auto-gpu", "framebatch-auto-auto", "cpu-loop"],
        );
        for (const row of rows) {
          assert.equal(row.workload, "burst-40-mixed-animated");
          assertAllTold(row);
          // Four calls at each tenth of a second.
          assert.equal(row.parts.due, 20);
        }
      },
    ),
);

longTest("the rivals answer the same calls", () =>
  load(
    {
      ...{ run: "", rate: 20, seconds: 0.5 },
      systems: "per-call,tfjs,tfjs-gpu,jax-js",
    },
    async (page) => {
      const { rows } = await result(page);
      assert.equal(rows.length, 4);
      rows.forEach(assertAllTold);
    },
  ),
);

test("awaited calls, and one submission for the calls of a frame", () =>
  load(
    {
      ...{ run: "", quick: "", policy: "auto", engine: "gpu" },
      workloads: "awaited-chain-4096,frame-100-chains-64",
    },
    async (page) => {
      const { rows } = await result(page);
      assert.deepEqual(
        rows.map(({ workload, problem, runs }) => [workload, problem, runs]),
        [
          ["awaited-chain-4096", undefined, 20],
          ["frame-100-chains-64", undefined, 20],
        ],
      );
      assert.equal(rows[1].parts.submits, 1);
    },
  ));

// On the engine that a software adapter's page chooses: that adapter takes a second a text.
test("a text, by an encoder of drawn weights, is what the CPU says", () =>
  load(
    {
      ...{ run: "", quick: "", policy: "auto", engine: "auto" },
      workloads: "awaited-text-8",
    },
    async (page) => {
      const { rows } = await result(page);
      assert.equal(rows[0].problem, undefined);
      assert.ok(rows[0].error <= 1e-4);
    },
  ));

test("without shared memory calls come all the same", () =>
  load(
    {
      ...{ run: "", rate: 40, mix: "lerp", seconds: 0.5 },
      systems: "cpu-loop",
    },
    async (page) => {
      const { rows, isolated } = await result(page);
      assert.equal(isolated, false);
      assertAllTold(rows[0]);
    },
    { at: site },
  ));

test("a wrong answer is told, and not timed", () =>
  load(
    {
      ...{ run: "", rate: 40, mix: "lerp", seconds: 0.5 },
      systems: "per-call",
    },
    async (page) => {
      const { rows } = await result(page);
      assert.match(rows[0].problem, /is wrong by/);
      assert.equal(rows[0].runs, 0);
    },
    {
      prepare: () => {
        if (!globalThis.GPUQueue) return; // The blank page before has no WebGPU.
        GPUQueue.prototype.writeBuffer = () => {};
      },
    },
  ));

test("who falls behind is stopped, and calls without an answer count", () =>
  load(
    {
      ...{ run: "", rate: 40, mix: "lerp", seconds: 2 },
      systems: "per-call",
    },
    async (page) => {
      const { rows } = await result(page);
      const [{ note, parts, median }] = rows;
      assert.match(note, /^stopped after .* when an answer was 3.\d s behind$/);
      assert.ok(parts.unanswered > 0 && parts.answered < parts.due);
      // None of them is shorter than what is waited for.
      assert.ok(median > 1000, `${median}`);
      const shown = await page.$eval("#results", (all) => all.textContent);
      assert.ok(shown.includes(note));
      assertAllTold(rows[0]);
    },
    {
      prepare: () => {
        if (!globalThis.GPUBuffer) return; // The blank page before has no WebGPU.
        const { mapAsync } = GPUBuffer.prototype;
        let reads = 0;
        GPUBuffer.prototype.mapAsync = async function (...args) {
          // Behind the calls that are made ahead of the load.
          const isLate = (reads += 1) > 100;
          if (isLate) await new Promise((later) => setTimeout(later, 3500));
          return mapAsync.apply(this, args);
        };
      },
    },
  ));

test("cancel ends a load", () =>
  load(
    {
      ...{ run: "", rate: 40, mix: "lerp", seconds: 500 },
      systems: "cpu-loop",
    },
    async (page) => {
      await page.waitForFunction(
        () => document.querySelector("#state").textContent !== "",
      );
      await page.click("#cancel");
      const { cancelled, rows } = await result(page);
      assert.deepEqual([cancelled, rows], [true, []]);
    },
  ));

const REFUSED = [
  [{ rate: 0 }, /rate is more than 0 and at most 1000000, not 0/],
  [{ rate: "many" }, /rate is more than 0 .*, not many/],
  [{ rate: 1, seconds: -1 }, /seconds is more than 0 and at most 600, not -1/],
  [{ rate: 1, mix: "nothing" }, /mix is one of mixed, lerp, not nothing/],
  [{ policy: "never" }, /policy is one of auto, frame, eager, not never/],
  [{ workloads: "nothing" }, /none of the workloads is called nothing/],
];

test("what the page does not know is refused by its name", async () => {
  for (const [query, message] of REFUSED) {
    await load({ run: "", ...query }, async (page) => {
      const { problem } = await result(page);
      assert.match(problem, message);
    });
  }
});
