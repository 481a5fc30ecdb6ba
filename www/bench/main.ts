// The bench of operations: its table, and its plots.

import { showBench } from "./ui/page.ts";
import { Plots } from "./ui/plot.ts";
import { MENU, WORKLOADS } from "./workloads.ts";

const plots = new Plots(document.getElementById("plots")!);
void showBench({ workloads: WORKLOADS, systems: MENU }, (rows) =>
  plots.show(rows),
);
