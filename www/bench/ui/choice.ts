// The check boxes: what is to be measured. Everything, unless the address says less, or
// the adapter is software, which takes too long for some of it.
//
// `?workloads=` and `?systems=` are lists of names; what is no name stands for all
// names that begin with it and a dash. `?rounds=` is how often systems take turns.

import { FULL, QUICK } from "../measure.ts";
import type { Choice, Measured, Named } from "../run.ts";

/** What a page can measure. */
export interface Menu<System extends Named> {
  readonly workloads: readonly Measured<System>[];
  readonly systems: readonly System[];
  /** What the address asks for in other words than `?workloads=` and `?systems=`: lists as these have. */
  readonly asked?: { readonly workloads?: string; readonly systems?: string };
}

/** Shows the boxes, ticked as `query` says. Throws for a name that is not there. */
export function showChoice<System extends Named>(
  form: HTMLFormElement,
  { workloads, systems, asked }: Menu<System>,
  query: URLSearchParams,
  isSoftware: boolean,
) {
  const short = workloads.filter(({ isLong }) => !(isLong && isSoftware));
  const named = (of: "workloads" | "systems") => asked?.[of] ?? query.get(of);
  fill(form, "workloads", workloads, named("workloads") ?? short);
  fill(form, "systems", systems, named("systems") ?? systems);
  form.querySelector<HTMLInputElement>("[name=quick]")!.checked =
    query.has("quick");
  const rounds = form.querySelector<HTMLInputElement>("[name=rounds]")!;
  rounds.value = query.get("rounds") ?? rounds.value;
  if (!rounds.checkValidity()) {
    throw new Error(`rounds are 1 to ${rounds.max}, not ${rounds.value}`);
  }
}

/** What is ticked now, with many runs or few. */
export function chosen<System extends Named>(
  form: HTMLFormElement,
  { workloads, systems }: Menu<System>,
): Choice<System> {
  const names = new FormData(form);
  return {
    workloads: workloads.filter(({ name }) => isIn(names, "workloads", name)),
    systems: systems.filter(({ name }) => isIn(names, "systems", name)),
    effort: names.has("quick") ? QUICK : FULL,
    rounds: Number(names.get("rounds")),
  };
}

function isIn(names: FormData, of: string, name: string): boolean {
  return names.getAll(of).includes(name);
}

function fill(
  form: HTMLFormElement,
  of: "workloads" | "systems",
  all: readonly Named[],
  wanted: string | readonly Named[],
): void {
  const ticked =
    typeof wanted === "string"
      ? wanted.split(",").flatMap((pattern) => matching(of, all, pattern))
      : wanted;
  const boxes = all.map((named) => {
    const { name, about } = named;
    const label = document.createElement("label");
    const box = document.createElement("input");
    const text = document.createElement("span");
    box.type = "checkbox";
    box.name = of;
    box.value = name;
    box.checked = ticked.includes(named);
    text.textContent = name;
    label.title = about;
    if (of === "systems") label.style.setProperty("--way", `var(--${name})`);
    label.append(box, text);
    if (form.dataset.sentences === of) label.append(sentence(about));
    return label;
  });
  form.querySelector(`[data-of="${of}"]`)!.append(...boxes);
}

function sentence(about: string): HTMLElement {
  const element = document.createElement("small");
  element.textContent = about;
  return element;
}

function matching(
  of: string,
  all: readonly Named[],
  pattern: string,
): readonly Named[] {
  const exact = all.filter(({ name }) => name === pattern);
  if (exact.length > 0) return exact;
  const found = all.filter(({ name }) => name.startsWith(`${pattern}-`));
  if (found.length > 0) return found;
  throw new Error(`none of the ${of} is called ${pattern}`);
}
