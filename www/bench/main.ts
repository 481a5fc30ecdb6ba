// Runs every workload on every system, shows the table, and leaves it in
// `window.__result` for the command line. With `?report` it posts it to the server.

import {
  type Call,
  framebatch,
  loop,
  oneBatch,
  perCall,
  type System,
} from "./systems.ts";

/** Calls and floats a call. */
const WORKLOADS = [
  [256, 256],
  [1000, 64],
  [10_000, 16],
] as const;
const WARM = 10;
const RUNS = 40;
/** Milliseconds after which a slow system has been run often enough, if 3 times. */
const ENOUGH = 4000;
/** For f32 on inputs in [-1, 1]. */
const BOUND = 3e-7;

interface Row {
  workload: string;
  system: string;
  runs: number;
  median: number;
  p95: number;
  /** The median, relative to the batch written by hand. */
  ratio: number;
}

const rows: Row[] = [];
for (const [count, length] of WORKLOADS) {
  const calls = inputs(count, length);
  const systems: Record<string, System> = {
    "one batch by hand": await oneBatch(count, length),
    framebatch: await framebatch("gpu"),
    "framebatch, cpu": await framebatch("cpu"),
    "plain loop": await loop(),
    "one call at a time": await perCall(),
  };
  const measured: Omit<Row, "ratio">[] = [];
  // One system after the other: a page has one of them, and a GPU that changes
  // between the devices of two takes longer for either.
  for (const [name, system] of Object.entries(systems)) {
    state(`${count} x ${length}: ${name}`);
    const times = await measure(name, system, calls);
    measured.push({
      workload: `${count} x ${length}`,
      system: name,
      runs: times.length,
      median: quantile(times, 0.5),
      p95: quantile(times, 0.95),
    });
  }
  const reference = measured[0].median;
  rows.push(
    ...measured.map((row) => ({ ...row, ratio: row.median / reference })),
  );
  show(rows);
}
state("");
const adapter = await navigator.gpu.requestAdapter();
const { vendor, architecture, description } = adapter!.info;
const result = {
  adapter: [vendor, architecture, description].filter(Boolean).join(" "),
  browser: navigator.userAgent,
  cores: navigator.hardwareConcurrency,
  rows,
};
Object.assign(window, { __result: result });
if (new URLSearchParams(location.search).has("report")) {
  await fetch("/report", {
    method: "POST",
    body: JSON.stringify(result, null, 1),
  });
}

async function measure(
  name: string,
  system: System,
  calls: Call[],
): Promise<number[]> {
  check(name, calls, await system(calls));
  const times: number[] = [];
  const start = performance.now();
  for (let run = 0; run < WARM + RUNS; run++) {
    const before = performance.now();
    await system(calls);
    const after = performance.now();
    times.push(after - before);
    if (times.length >= 3 && after - start > ENOUGH) break;
    // Nothing of this run's is left to do when the next one starts.
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return times.length > WARM ? times.slice(WARM) : times;
}

function state(text: string): void {
  document.querySelector("#state")!.textContent = text;
}

function inputs(count: number, length: number): Call[] {
  let state = 12345;
  const floats = () =>
    Float32Array.from({ length }, () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state / 2 ** 31 - 1;
    });
  return Array.from({ length: count }, (_, i) => ({
    a: floats(),
    b: floats(),
    t: (i % 101) / 100,
  }));
}

function check(name: string, calls: Call[], answers: Float32Array[]): void {
  calls.forEach(({ a, b, t }, index) => {
    answers[index].forEach((value, i) => {
      const difference = Math.abs(value - ((1 - t) * a[i] + t * b[i]));
      // Written so that NaN counts as wrong.
      if (!(difference <= BOUND)) {
        throw new Error(`${name}: call ${index} is wrong by ${difference}`);
      }
    });
  });
}

function quantile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * share)];
}

function show(rows: Row[]): void {
  document.querySelector("#rows")!.replaceChildren(
    ...rows.map(({ workload, system, median, p95, ratio }) => {
      const row = document.createElement("tr");
      const cells = [workload, system, median, p95, ratio];
      for (const cell of cells) {
        row.insertCell().textContent =
          typeof cell === "number" ? cell.toFixed(2) : cell;
      }
      return row;
    }),
  );
}
