// What was measured: the table, and who won. It measures nothing.

import { element, rounded } from "../ways/panel.ts";
import type { Row } from "./measure.ts";
import type { WayName } from "./ways.ts";

const LABELS: Record<WayName, string> = {
  framebatch: "framebatch",
  "per-call": "WebGPU per call",
  loop: "plain loop",
};

/** Fills the table, and says who won. */
export function tellResult(rows: Row[]): void {
  element("#rows").replaceChildren(...rows.map(tableRow));
  element("#measure").textContent = "Measure again";
  const best = rows.reduce((a, b) => (b.milliseconds < a.milliseconds ? b : a));
  const of = (way: WayName) => rows.find((row) => row.way === way);
  const batched = of("framebatch");
  const alone = of("per-call");
  if (batched === undefined || alone === undefined) return;
  const ratio = (row: Row) => rounded(row.milliseconds / best.milliseconds);
  const faster = rounded(alone.milliseconds / batched.milliseconds);
  element("#verdict").textContent =
    `The ${LABELS[best.way]} wins with ${rounded(best.milliseconds)} ms; framebatch takes ${ratio(batched)} times as long, ` +
    `and the same GPU calls one by one ${ratio(alone)} times. Batching made them ${faster} times faster.`;
}

/** Runs `measure` when it is asked for, once at a time. */
export function onMeasure(measure: () => Promise<void>): void {
  const button = element<HTMLButtonElement>("#measure");
  button.addEventListener("click", () => {
    button.disabled = true;
    button.textContent = "Measuring…";
    void measure().finally(() => (button.disabled = false));
  });
}

function tableRow(row: Row): HTMLTableRowElement {
  const out = document.createElement("tr");
  out.style.setProperty("--way", `var(--${row.way})`);
  const name = document.createElement("th");
  name.scope = "row";
  name.textContent = LABELS[row.way];
  out.append(name);
  for (const text of [
    row.submissions.toLocaleString("en"),
    row.readbacks.toLocaleString("en"),
    row.dispatches.toLocaleString("en"),
    rounded(row.milliseconds),
  ]) {
    out.insertCell().textContent = text;
  }
  return out;
}
