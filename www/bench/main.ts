// Runs every workload on every system in turns, shows the table, and leaves it in
// `window.__result` for the command line.

import {
  type Call,
  framebatch,
  loop,
  oneBatch,
  type System,
} from "./systems.ts";

/** Calls and floats a call. */
const WORKLOADS = [
  [256, 256],
  [1000, 64],
  [10_000, 16],
] as const;
const WARM = 10;
const RUNS = 60;
/** For f32 on inputs in [-1, 1]. */
const BOUND = 3e-7;

interface Row {
  workload: string;
  system: string;
  median: number;
  p95: number;
  /** The median, relative to the batch written by hand. */
  ratio: number;
}

const rows: Row[] = [];
for (const [count, length] of WORKLOADS) {
  const systems = {
    "one batch by hand": await oneBatch(count, length),
    framebatch: await framebatch(),
    "plain loop": await loop(),
  };
  rows.push(...(await compare(`${count} x ${length}`, systems, count, length)));
  show(rows);
}
document.querySelector("#state")!.textContent = "";
Object.assign(window, { __result: rows });

async function compare(
  workload: string,
  systems: Record<string, System>,
  count: number,
  length: number,
): Promise<Row[]> {
  const calls = inputs(count, length);
  const names = Object.keys(systems);
  const times = new Map<string, number[]>(names.map((name) => [name, []]));
  for (let run = 0; run < WARM + RUNS; run++) {
    for (const name of names) {
      const start = performance.now();
      const answers = await systems[name](calls);
      const elapsed = performance.now() - start;
      if (run === 0) check(name, calls, answers);
      if (run >= WARM) times.get(name)!.push(elapsed);
      // The next system starts with nothing of this one's left to do.
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
  const reference = quantile(times.get(names[0])!, 0.5);
  return names.map((system) => {
    const median = quantile(times.get(system)!, 0.5);
    const p95 = quantile(times.get(system)!, 0.95);
    return { workload, system, median, p95, ratio: median / reference };
  });
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
