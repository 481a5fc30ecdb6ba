// What was found of a kernel, as panels: its results, how its calls merged, whether the CPU
// agrees, and where the time goes. Each is empty until it is told something.

import type { Elements } from "framebatch";
import type { SizesProfile, Verification } from "framebatch/kernels";
import { rounded } from "../bench/ui/results.ts";
import type { Drawn, Listener, Merged } from "./experiment.ts";
import { drawPicture } from "./picture.ts";
import { plotLine, plotRates } from "./plots.ts";

/** Panels by what they tell. */
type Panels = Readonly<
  Record<"drawn" | "merged" | "verified" | "profiled", HTMLElement>
>;

/** Empties the panels. */
export function clear(panels: Panels): void {
  for (const panel of Object.values(panels)) panel.replaceChildren();
}

/** What shows findings in these panels. */
export function reportTo(panels: Panels): Listener {
  return {
    drawn: (results) => panels.drawn.append(...results.map(figureOf)),
    merged: (merged) => panels.merged.append(...merging(merged)),
    verified: (found) => panels.verified.append(verdict(found)),
    profiled: (profile, places) =>
      showProfile(panels.profiled, profile, places),
  };
}

function figureOf(drawn: Drawn): HTMLElement {
  const { field, data, shape } = drawn;
  const figure = element("figure");
  const range = rangeOf(data);
  const size = shape.join(" × ");
  const strange = data.filter((value) => !Number.isFinite(value)).length;
  const text = [
    `${field || "the result"}: ${size}, from ${digits(range[0])} to ${digits(range[1])}`,
    ...(strange > 0 ? [`${count(strange)} not finite`] : []),
  ].join(", ");
  const caption = element("figcaption", text);
  if (shape.length === 1) {
    const into = element("div");
    into.className = "line";
    figure.append(caption, into);
    // A plot is as wide as its place, which has a width once it is on the page.
    requestAnimationFrame(() => plotLine(into, drawn));
    return figure;
  }
  const canvas = element("canvas");
  canvas.className = "picture";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", text);
  drawPicture(canvas, drawn, range);
  figure.append(caption, canvas);
  return figure;
}

function merging({
  callers,
  places,
  batches,
  submits,
  dispatches,
  plan,
}: Merged): HTMLElement[] {
  const sentence = element(
    "p",
    `${amount(callers, "call")} of ${amount(places, "place")} each, made at once: ` +
      `${amount(batches, "batch", "batches")}, ${amount(dispatches, "dispatch", "dispatches")}.`,
  );
  const figures = element("dl");
  for (const [name, value] of Object.entries({
    calls: callers,
    batches,
    submissions: submits,
    dispatches,
  })) {
    const pair = element("div");
    const shown = element("dd", count(value));
    shown.dataset.figure = name;
    pair.append(element("dt", name), shown);
    figures.append(pair);
  }
  const details = element("details");
  const text = element("pre", plan);
  text.tabIndex = 0;
  details.append(element("summary", "The plan, by gpu.explain"), text);
  return [sentence, figures, details];
}

function verdict(found: Verification | undefined): HTMLElement {
  if (found === undefined) {
    return element(
      "p",
      "Nothing is compared: that takes a GPU, which runs the code, and a function for the CPU.",
    );
  }
  const { ok, worst } = found;
  const off =
    worst === undefined || worst.off === 0
      ? "Both give the same numbers."
      : `The worst is at place ${count(worst.place)}: ${digits(worst.got)}, and ${digits(worst.expected)} by the function for the CPU, ${digits(worst.off)} off.`;
  const text = element("p", `${ok ? "They agree." : "They differ."} ${off}`);
  text.className = ok ? "agrees" : "differs";
  return text;
}

function showProfile(
  into: HTMLElement,
  { sizes, best }: SizesProfile,
  places: number,
): void {
  const table = element("table");
  const head = table.createTHead().insertRow();
  for (const name of ["callers", "ms", "kernels ms", "batches", "values/s"]) {
    const cell = element("th", name);
    cell.scope = "col";
    head.append(cell);
  }
  const rates = sizes.map(({ perSecond }) => perSecond && perSecond * places);
  const body = table.createTBody();
  for (const [at, { size, profile }] of sizes.entries()) {
    const row = body.insertRow();
    const name = element("th", count(size));
    name.scope = "row";
    row.append(name);
    row.classList.toggle("best", size === best);
    for (const text of [
      rounded(profile.runMs.p50),
      profile.gpuMs === null ? "–" : rounded(profile.gpuMs.p50),
      digits(profile.batches),
      rates[at] === null ? "–" : compact(rates[at]),
    ]) {
      row.insertCell().textContent = text;
    }
  }
  const { encodeMs, transferMs, gpuMs, readMs } =
    sizes[sizes.length - 1].profile;
  const parts = { encodeMs, transferMs, gpuMs, readMs };
  const names = {
    encodeMs: "planning and encoding",
    transferMs: "upload",
    gpuMs: "kernels",
    readMs: "reading",
  };
  const told = Object.entries(parts).flatMap(([part, spread]) =>
    spread
      ? [`${names[part as keyof typeof names]} ${rounded(spread.p50)} ms`]
      : [],
  );
  const most = sizes[sizes.length - 1].size;
  const plot = element("div");
  plot.className = "rates";
  into.append(
    plot,
    table,
    element(
      "p",
      `Of ${amount(most, "caller")}: ${told.join(", ")}. ` +
        (best === null
          ? ""
          : `${amount(best, "caller")} ${best === 1 ? "does" : "do"} as much as any for ${best === 1 ? "its" : "their"} time.`),
    ),
  );
  requestAnimationFrame(() =>
    plotRates(
      plot,
      sizes.map(({ size }) => size),
      rates,
    ),
  );
}

/** The least and the most of the finite numbers. */
function rangeOf(data: Elements): readonly [number, number] {
  let [least, most] = [Infinity, -Infinity];
  for (const value of data) {
    if (!Number.isFinite(value)) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return least <= most ? [least, most] : [0, 0];
}

const count = (value: number): string => value.toLocaleString("en");

const amount = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

const digits = (value: number): string => String(+value.toPrecision(4));

const compact = (value: number): string =>
  value.toLocaleString("en", {
    notation: "compact",
    maximumSignificantDigits: 3,
  });

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  text = "",
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
