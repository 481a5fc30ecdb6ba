// A page that measures: starts, stops and shows a run, and offers its record.
//
//   ?run         starts at once
//   ?report      the same, and posts the record to /report, each row to /log
//   ?quick       a few runs of each: for a look, not for a record
//   ?workloads=, ?systems=, ?rounds=   what is ticked, and how often; see choice.ts
//
// The record, once there is one, is also `window.__result`.

import type { Result, Row } from "../record.ts";
import { machine, type Named, run } from "../run.ts";
import { chosen, type Menu, showChoice } from "./choice.ts";
import { rounded, showResults } from "./results.ts";

/** What else is shown of the rows. */
type Show = (rows: readonly Row[]) => void;
/** What is done with a record once there is one. */
type End = (result: Result) => void;

const query = new URLSearchParams(location.search);
const form = element<HTMLFormElement>("choice");
const progress = element<HTMLProgressElement>("progress");
const buttons = {
  run: element<HTMLButtonElement>("run"),
  cancel: element<HTMLButtonElement>("cancel"),
  download: element<HTMLButtonElement>("download"),
};
let stop: AbortController | undefined;
let result: Result | undefined;

/** Makes this page the one of `menu`. */
export async function showBench<System extends Named>(
  menu: Menu<System>,
  showMore: Show = () => {},
  end: End = () => {},
): Promise<void> {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void start(menu, showMore, end);
  });
  buttons.cancel.addEventListener("click", () => {
    stop?.abort();
    buttons.cancel.disabled = true;
    tell("Stopping after the run that is on its way…");
  });
  buttons.download.addEventListener("click", () => download(result!));
  try {
    showChoice(form, menu, query, (await machine()).software);
    if (query.has("run") || query.has("report")) {
      void start(menu, showMore, end);
    }
  } catch (error) {
    refuse(error);
  }
}

/** Says why nothing can be measured. */
export function refuse(error: unknown): void {
  tell(String(error));
  Object.assign(window, { __result: { problem: String(error) } });
}

async function start<System extends Named>(
  menu: Menu<System>,
  showMore: Show,
  end: End,
): Promise<void> {
  stop = new AbortController();
  const choice = chosen(form, menu);
  const show = (rows: readonly Row[], last: Row) => {
    showResults(element("results"), menu.workloads, rows);
    showMore(rows);
    if (query.has("report")) log(last);
  };
  setRunning(true);
  try {
    result = await run(choice, stop.signal, { next, rows: show });
    Object.assign(window, { __result: result });
    end(result);
    const { rows, seconds, cancelled } = result;
    tell(
      `${cancelled ? "Stopped" : "Done"} after ${rounded(seconds)} s, ${rows.length} rows.`,
    );
    element("machine").textContent =
      `${result.adapter}${result.software ? " (software: only ratios to one batch by hand count)" : ""} · ${result.cores} cores · ${result.browser}`;
    if (query.has("report")) await post("/report", JSON.stringify(result));
  } finally {
    setRunning(false);
  }
}

function next(workload: string, system: string, done: number): void {
  progress.value = done;
  if (!stop!.signal.aborted) tell(`${workload}: ${system}`);
}

function log({ workload, system, median, runs, problem }: Row): void {
  const outcome = problem ?? `${rounded(median)}, ${runs} runs`;
  void post("/log", `${workload} ${system}: ${outcome}`);
}

function setRunning(running: boolean): void {
  buttons.run.disabled = running;
  buttons.cancel.disabled = !running;
  buttons.download.disabled = running || result === undefined;
  progress.hidden = !running;
  for (const box of form.querySelectorAll("input")) box.disabled = running;
}

function download(of: Result): void {
  const text = JSON.stringify(of, null, 1);
  const file = new Blob([text], { type: "application/json" });
  save(file, `framebatch-${of.date.slice(0, 10)}.json`);
}

/** Offers a file to whoever looks at the page. */
export function save(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

function tell(text: string): void {
  element("state").textContent = text;
}

const post = (to: string, body: string) => fetch(to, { method: "POST", body });

function element<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}
