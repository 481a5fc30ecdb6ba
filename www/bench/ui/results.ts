// The results as panels: one a workload, one line a system.
//
// Bars are logarithmic, because the slowest is a thousand times the fastest.

import type { About, Row } from "../record.ts";

/** A workload; whether its parts add up to its time. */
type Shown = About & { readonly isSum?: true };

const BAR = "shorter is better";
const COLUMNS = ["system", "median", "p95", "runs", "×", BAR];
/** Columns that a narrow screen has no room for. */
const OPTIONAL = ["p95", "runs"];

export function showResults(
  into: HTMLElement,
  workloads: readonly Shown[],
  rows: readonly Row[],
): void {
  const panels = workloads.flatMap((workload) => {
    const own = rows.filter((row) => row.workload === workload.name);
    return own.length > 0 ? [panel(workload, own)] : [];
  });
  into.replaceChildren(...panels);
}

function panel(workload: Shown, rows: Row[]): HTMLElement {
  const section = element("section", "panel");
  const title = element("h2");
  title.textContent = workload.name;
  const about = element("p", "quiet");
  about.textContent = `${workload.unit ?? "ms"}, ${workload.about}`;
  const table = element("table");
  const head = element("tr");
  for (const name of COLUMNS) {
    const cell = element("th", OPTIONAL.includes(name) ? "optional" : "");
    cell.scope = "col";
    cell.textContent = heading(name, workload);
    head.append(cell);
  }
  table.createTHead().append(head);
  const longest = Math.max(...rows.map((row) => row.median));
  const shortest = Math.min(
    ...rows.filter((row) => row.median > 0).map((row) => row.median),
  );
  table
    .createTBody()
    .append(
      ...rows.flatMap((row) => lines(workload, row, [shortest, longest])),
    );
  section.append(title, about, table);
  return section;
}

function heading(name: string, { compared, better }: Shown): string {
  if (name === "×") return `× ${compared ?? "one batch"}`;
  return name === BAR && better === "higher" ? "longer is better" : name;
}

function lines(
  workload: Shown,
  row: Row,
  range: [shortest: number, longest: number],
): HTMLElement[] {
  const line = element("tr");
  line.style.setProperty("--way", `var(--${row.system})`);
  const name = element("th");
  name.scope = "row";
  name.textContent = row.system;
  line.append(name);
  if (row.problem !== undefined) {
    const cell = line.insertCell();
    cell.colSpan = COLUMNS.length - 1;
    cell.className = "problem";
    cell.textContent = row.problem;
    return [line];
  }
  line.insertCell().textContent = rounded(row.median);
  for (const text of [rounded(row.p95), String(row.runs)]) {
    const cell = line.insertCell();
    cell.className = "optional";
    cell.textContent = text;
  }
  line.insertCell().textContent = row.ratio ? rounded(row.ratio) : "";
  const bar = line.insertCell();
  bar.className = "bar-cell";
  const amount = element("span", "amount");
  amount.style.setProperty("--share", share(row.median, ...range));
  bar.append(amount);
  const shown: HTMLElement[] = [line];
  if (row.note !== undefined) shown.push(noted(row.note));
  const { p99, p99Ratio, parts } = row;
  const tails = { ...(p99 && { p99 }), ...(p99Ratio && { "p99 ×": p99Ratio }) };
  const all = { ...tails, ...parts };
  if (Object.keys(all).length === 0) return shown;
  return [...shown, partsOf(all, workload.isSum ?? false)];
}

function noted(text: string): HTMLElement {
  const line = element("tr", "parts");
  const cell = line.insertCell();
  cell.colSpan = COLUMNS.length;
  cell.textContent = text;
  return line;
}

/** The parts by name; where they add up, as one bar too. */
function partsOf(parts: Record<string, number>, isSum: boolean): HTMLElement {
  const line = element("tr", "parts");
  const cell = line.insertCell();
  cell.colSpan = COLUMNS.length;
  const stack = element("div", "stack");
  if (isSum) cell.append(stack);
  Object.entries(parts).forEach(([name, value], index) => {
    const part = element("span", isSum ? "of-sum" : "");
    part.textContent = `${words(name)} ${rounded(value)}`;
    const piece = element("span");
    for (const mark of [part, piece]) {
      mark.style.setProperty("--part", String(index));
    }
    piece.style.flexGrow = String(Math.max(0, value));
    stack.append(piece);
    cell.append(part);
  });
  return line;
}

/** From a tenth for the shortest to the whole for the longest. */
function share(value: number, shortest: number, longest: number): string {
  const range = Math.log(longest / shortest) || 1;
  return `${10 + (90 * Math.log(value / shortest)) / range}%`;
}

const words = (name: string) =>
  name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** Three digits or so. */
export function rounded(value: number): string {
  const size = Math.abs(value);
  const digits = size < 0.1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0;
  return value.toLocaleString("en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  className = "",
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  made.className = className;
  return made;
}
