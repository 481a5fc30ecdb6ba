// A record of the bench as rows that can be compared, whatever its form.
//
// A row: {
//   name      the workload and the system, "small-1000x64, framebatch-gpu"
//   value     what was measured, the median of its rounds
//   unit      of the value: "ms", "texts a second", or "× by hand", the time over that of
//             one batch by hand in the same record
//   better    "lower" or "higher"
//   spread    how far apart the quartiles of its rounds lie, in the same unit; of its runs
//             where there was one round; undefined where the record kept neither
//   byHand    milliseconds of the batch by hand, where the record has one
// }
//
// Only rows of this package count, natively and in pages: a rival that gets slower is no
// concern. Rows that cannot be compared come with the reason. Nothing is compared here,
// and no file is read.

import { byHandOf } from "./limits.mjs";

const BY_HAND = "one-batch";
const SOFTWARE = /swiftshader|llvmpipe|software/i;

/** The steps of a page's clock, in milliseconds, with isolation and without. */
const CLOCK_MS = { isolated: 0.005, shared: 0.1 };

/**
 * The rows of a record, those that cannot be compared as `{ name, why }`, and those
 * without an answer as `{ name, problem }`. Undefined where it is no record of the bench.
 */
export function rowsOf(record) {
  const measured = measurements(record);
  if (measured === undefined) return undefined;
  const own = measured.filter(({ system }) => system.startsWith("framebatch"));
  const software = isSoftware(record);
  const byHand = new Map(
    measured
      .filter(({ system, median }) => system === BY_HAND && median > 0)
      .map((row) => [row.workload, row]),
  );
  const found = { rows: [], unheld: [], failed: [] };
  for (const row of own) {
    const name = `${row.workload}, ${row.system}`;
    const reference = byHand.get(byHandOf(row.workload));
    if (row.problem !== undefined) {
      found.failed.push({ name, problem: row.problem });
    } else if (software && reference === undefined) {
      const why = "on a software adapter, without a batch by hand";
      found.unheld.push({ name, why });
    } else if (!(row.median > 0)) {
      // A difference of two times, or one below a step of the clock.
      found.unheld.push({ name, why: `a median of ${row.median} is no time` });
    } else {
      const value = software ? ratio(row, reference) : itself(row);
      found.rows.push({ name, ...value, byHand: reference?.median });
    }
  }
  return found;
}

/** Whether times of this record say nothing but in relation to each other. */
export function isSoftware({ software, adapter }) {
  return software ?? SOFTWARE.test(adapter);
}

function itself({ median, unit = "ms", better = "lower", ...row }) {
  return { value: median, unit, better, spread: spreadOf(row) };
}

/** The time over that of one batch by hand: round by round, where both took turns. */
function ratio(row, reference) {
  const both = { unit: "× by hand", better: "lower" };
  if (row.rounds && row.rounds.length === reference.rounds?.length) {
    const ratios = row.rounds.map((ms, at) => ms / reference.rounds[at]);
    const step = (row.step ?? 0) / reference.median;
    const spread = spreadOf({ rounds: ratios, step });
    return { ...both, value: quantile(ratios, 0.5), spread };
  }
  const value = row.median / reference.median;
  const spreads = [row, reference].map((of) => spreadOf(of) / of.median);
  const spread = value * (spreads[0] + spreads[1]);
  return { ...both, value, spread: Number.isNaN(spread) ? undefined : spread };
}

/** No less than a step of the clock that measured it. */
function spreadOf({ rounds, quartiles, step = 0 }) {
  const [first, third] =
    rounds && rounds.length > 1
      ? [quantile(rounds, 0.25), quantile(rounds, 0.75)]
      : (quartiles ?? []);
  if (first === undefined) return undefined;
  return Math.max(third - first, step);
}

/** The value below which this share of the values lies. */
function quantile(values, share) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** All that was measured, of every system: the present form, or made so. */
function measurements(record) {
  const { rows } = record;
  if (!Array.isArray(rows) || rows.length === 0) return undefined;
  if ("workload" in rows[0] && "median" in rows[0]) return present(record);
  const form = EARLIER.find(({ has }) => has.every((name) => name in rows[0]));
  return form && rows.flatMap(form.read);
}

function present({ rows, workloads = [], browser, isolated }) {
  const abouts = new Map(workloads.map((about) => [about.name, about]));
  const step = CLOCK_MS[isolated ? "isolated" : "shared"];
  return rows.map((row) => {
    const { unit, better } = abouts.get(row.workload) ?? {};
    // A unit of its own is the mean of many, which the clock's steps do not limit.
    const own = browser && unit === undefined ? { step } : {};
    return { ...row, ...own, unit, better };
  });
}

const ms = (workload, system, median) => ({ workload, system, median });
const rate = (workload, median, unit) => ({
  ...{ workload, system: "framebatch", median, unit },
  better: "higher",
});

/**
 * Forms of native records until 2026-11-22, by what their rows have. None kept a spread.
 */
const EARLIER = [
  {
    has: ["states", "batchedMs"],
    read({ states, calls, perCallMs, batchedMs }) {
      const workload = `gradients-${states}-by-${states / calls}`;
      // One call of all is one batch by hand.
      const hand = calls === 1 ? BY_HAND : "per-call";
      return [
        ms(workload, hand, perCallMs),
        ms(workload, "framebatch", batchedMs),
      ];
    },
  },
  {
    has: ["calls", "threads", "way", "ms"],
    read({ calls, threads, way, ms: median }) {
      const system = way === "per-call" ? way : `framebatch-${way}`;
      return [ms(`batching-${calls}x${threads}`, system, median)];
    },
  },
  {
    has: ["floats", "chain", "batchMs"],
    read({ floats, chain, oneByOneMs, batchMs }) {
      const workload = `chain-${chain.replaceAll(" ", "-")}-${floats}`;
      return [
        ms(workload, "framebatch-one-by-one", oneByOneMs),
        ms(workload, "framebatch-batch", batchMs),
      ];
    },
  },
  {
    has: ["side", "msAProduct"],
    read: ({ side, msAProduct }) => [
      ms(`product-${side}`, "framebatch", msAProduct),
    ],
  },
  {
    has: ["callers", "way", "ms"],
    read: ({ callers, way, ms: median }) => [
      ms(
        `callers-${callers}`,
        `framebatch-${way.replaceAll(" ", "-")}`,
        median,
      ),
    ],
  },
  {
    has: ["table", "sessions", "textsPerSecond"],
    read: ({ table, sessions, textsPerSecond, statesPerSecond }) => [
      textsPerSecond === undefined
        ? rate(`gpus-${table}-${sessions}`, statesPerSecond, "states a second")
        : rate(`gpus-${table}-${sessions}`, textsPerSecond, "texts a second"),
    ],
  },
];
