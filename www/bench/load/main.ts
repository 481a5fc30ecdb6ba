// The bench of loads: its table, its plots, and the form for a load of one's own.

import { refuse, showBench } from "../ui/page.ts";
import { asked } from "./address.ts";
import { LoadPlots } from "./load-plots.ts";
import type { Load } from "./measure-load.ts";
import { load, loadName, type Show, SYSTEMS, workloads } from "./workloads.ts";

const query = new URLSearchParams(location.search);
const plots = new LoadPlots(document.getElementById("plots")!);
const show: Show = (...of) => plots.show(...of);

// The fields of the form say what the page was opened with.
for (const field of document.querySelectorAll<
  HTMLInputElement | HTMLSelectElement
>("#own [name]")) {
  const value = query.get(field.name);
  if (value === null) continue;
  if (field instanceof HTMLSelectElement) {
    const option = [...field.options].find((option) => option.value === value);
    if (option) option.selected = true;
  } else if (field.type === "checkbox") {
    field.checked = value === field.value;
  } else {
    field.value = value;
  }
}

try {
  void showBench(menu());
} catch (error) {
  refuse(error);
}

function menu() {
  const { loads, seconds, systems } = asked(query);
  const table = workloads(show, seconds);
  const isNew = (load: Load) =>
    !table.some(({ name }) => name === loadName(load));
  const own = loads.filter(isNew).map((of) => load(of, show));
  return {
    workloads: [...own, ...table],
    systems: SYSTEMS,
    asked: {
      workloads: loads.length > 0 ? loads.map(loadName).join() : undefined,
      systems,
    },
  };
}
