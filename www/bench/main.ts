// The bench of operations: five rows in plain words, and behind a fold all that it can measure,
// with its table and its plots.

import type { Result } from "./record.ts";
import { StoryPanels } from "./stories/panels.ts";
import { picture, sharedRecord } from "./stories/share.ts";
import { ASKED } from "./stories/stories.ts";
import { save, showBench } from "./ui/page.ts";
import { Plots } from "./ui/plot.ts";
import { MENU, WORKLOADS } from "./workloads.ts";

const element = (id: string) => document.getElementById(id)!;
const plots = new Plots(element("plots"));
const panels = new StoryPanels(element("stories"));
const buttons = ["share-file", "share-picture"].map(
  (id) => element(id) as HTMLButtonElement,
);
let result: Result | undefined;

// An address that asks for something is no first visit.
const isAsked = location.search !== "";
for (const id of ["all", "tables"]) {
  (element(id) as HTMLDetailsElement).open = isAsked;
}

buttons[0].addEventListener("click", () => {
  const text = `${JSON.stringify(sharedRecord(result!), null, 1)}\n`;
  save(new Blob([text], { type: "application/json" }), "framebatch-mine.json");
});
buttons[1].addEventListener("click", () => {
  picture(result!, panels.kept).toBlob((blob) => {
    if (blob) save(blob, "framebatch-mine.png");
  });
});

void showBench(
  {
    workloads: WORKLOADS,
    systems: MENU,
    ...(!isAsked && { asked: ASKED }),
  },
  (rows) => {
    plots.show(rows);
    panels.show(rows);
  },
  (ended) => {
    result = ended;
    const hasRows = sharedRecord(ended).rows.length > 0;
    for (const button of buttons) button.disabled = !hasRows;
  },
);
