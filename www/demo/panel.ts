// Everything around the picture: the switch, the figures, the table, the words.
//
// It shows what it is told and says what is chosen; it makes no call and counts nothing.

import type { Counts } from "./counting.ts";
import type { Row } from "./measure.ts";
import type { WayName, Ways } from "./ways.ts";

const LABELS: Record<WayName, string> = {
  framebatch: "framebatch",
  "per-call": "WebGPU per call",
  loop: "plain loop",
};

export class Panel {
  /** The adapter's name and kind, once known. */
  adapter = "";
  private lastFigures = 0;

  canvas(id: string): HTMLCanvasElement {
    return element<HTMLCanvasElement>(`canvas#${id}`);
  }

  /** The way that is chosen. */
  get way(): WayName {
    return element<HTMLInputElement>("#ways :checked").value as WayName;
  }

  color(way: WayName): string {
    return getComputedStyle(document.documentElement)
      .getPropertyValue(`--${way}`)
      .trim();
  }

  /** Names the adapter, or says plainly that there is none. */
  tellAdapter({ ways, gpu, problem }: Ways): void {
    const info = gpu?.info;
    if (info !== undefined) {
      this.adapter = `${info.adapter}${info.software ? " (software)" : ""}`;
      element("#adapter").textContent = `WebGPU adapter: ${this.adapter}`;
      return;
    }
    const { code, message } = problem as { code?: string; message?: string };
    const notice = element("#notice");
    notice.hidden = false;
    notice.textContent = `No WebGPU here (${code ?? "error"}): ${message ?? problem}. The plain loop turns the shards.`;
    for (const input of document.querySelectorAll<HTMLInputElement>(
      "#ways input",
    )) {
      input.disabled = !(input.value in ways);
      input.checked = input.value === "loop";
    }
  }

  /** Shows a frame's figures, often enough to be live and seldom enough to be read. */
  tellFigures(figures: Counts & { calls: number; milliseconds: number }): void {
    const now = performance.now();
    if (now - this.lastFigures < 200) return;
    this.lastFigures = now;
    for (const name of ["calls", "submissions", "readbacks"] as const) {
      figure(name).textContent = figures[name].toLocaleString("en");
    }
    figure("milliseconds").textContent = `${rounded(figures.milliseconds)} ms`;
  }

  /** Fills the table, and says who won. */
  tellResult(rows: Row[]): void {
    element("#rows").replaceChildren(...rows.map(tableRow));
    element("#measure").textContent = "Measure again";
    const best = rows.reduce((a, b) =>
      b.milliseconds < a.milliseconds ? b : a,
    );
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
  onMeasure(measure: () => Promise<void>): void {
    const button = element<HTMLButtonElement>("#measure");
    button.addEventListener("click", () => {
      button.disabled = true;
      button.textContent = "Measuring…";
      void measure().finally(() => (button.disabled = false));
    });
  }
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

/** Two digits for small numbers, none for large ones. */
function rounded(value: number): string {
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return value.toLocaleString("en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

const figure = (name: string) => element(`[data-figure="${name}"]`);

function element<T extends HTMLElement = HTMLElement>(selector: string): T {
  return document.querySelector<T>(selector)!;
}
