// What was measured: the two tables, and who won. It measures nothing.

import { element, rounded } from "../ways/panel.ts";
import { HEADINGS } from "./creatures/senses.ts";
import type { Row } from "./measure.ts";
import type { SlerpRow } from "./slerps/measure.ts";
import type { SlerpWayName } from "./slerps/ways.ts";
import type { WayName } from "./ways.ts";

const LABELS: Record<WayName | SlerpWayName, string> = {
  framebatch: "framebatch",
  awaited: "one call at a time",
  tfjs: "TensorFlow.js",
  loop: "plain loop",
  "per-call": "WebGPU per call",
};

/** Fills the creatures' table, and says who won. */
export function tellCreatures(rows: Row[]): void {
  const all = rows.filter(({ headings }) => headings === HEADINGS);
  const one = rows.filter(({ headings }) => headings === 1);
  element("#rows").replaceChildren(
    ...all.map((row) =>
      tableRow(row.way, [
        row.ranOn,
        row.submissions.toLocaleString("en"),
        rounded(row.milliseconds),
        rounded(one.find(({ way }) => way === row.way)!.milliseconds),
      ]),
    ),
  );
  element("#verdict").textContent =
    `${order("With eight headings each", all)} ${order("With one heading each", one)}`;
}

/** Says who is fastest, and how many times as long the others take. */
function order(work: string, rows: Row[]): string {
  const [first, ...others] = [...rows].sort(
    (a, b) => a.milliseconds - b.milliseconds,
  );
  const behind = others.map(({ way, milliseconds }) => {
    const ratio = (milliseconds / first.milliseconds).toFixed(1);
    return `${SENTENCE[way]} takes ${ratio} times as long`;
  });
  return `${work}, ${SENTENCE[first.way]} is fastest with ${rounded(first.milliseconds)} ms; ${behind.join(", ")}.`;
}

/** The ways as they stand in a sentence. */
const SENTENCE: Record<WayName, string> = {
  framebatch: "framebatch",
  awaited: "one call at a time",
  tfjs: "TensorFlow.js",
  loop: "the plain loop",
};

/** Fills the table of slerps, and says who won. */
export function tellSlerps(rows: SlerpRow[]): void {
  element("#slerps").replaceChildren(
    ...rows.map((row) =>
      tableRow(row.way, [
        row.submissions.toLocaleString("en"),
        row.readbacks.toLocaleString("en"),
        row.dispatches.toLocaleString("en"),
        rounded(row.milliseconds),
      ]),
    ),
  );
  const best = rows.reduce((a, b) => (b.milliseconds < a.milliseconds ? b : a));
  const of = (way: SlerpWayName) => rows.find((row) => row.way === way);
  const batched = of("framebatch");
  const alone = of("per-call");
  if (batched === undefined || alone === undefined) {
    element("#slerp-verdict").textContent =
      "Without WebGPU there is nothing to compare the loop with.";
    return;
  }
  const ratio = (row: SlerpRow) =>
    rounded(row.milliseconds / best.milliseconds);
  const faster = rounded(alone.milliseconds / batched.milliseconds);
  element("#slerp-verdict").textContent =
    `The ${LABELS[best.way]} wins with ${rounded(best.milliseconds)} ms; framebatch takes ${ratio(batched)} times as long, ` +
    `and the same GPU calls one by one ${ratio(alone)} times. Batching made them ${faster} times faster.`;
}

function tableRow(
  way: WayName | SlerpWayName,
  texts: string[],
): HTMLTableRowElement {
  const out = document.createElement("tr");
  out.style.setProperty("--way", `var(--${way})`);
  const name = document.createElement("th");
  name.scope = "row";
  name.textContent = LABELS[way];
  out.append(name);
  for (const text of texts) out.insertCell().textContent = text;
  return out;
}
