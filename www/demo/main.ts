// The demo page: a thousand components, a switch between the ways, live figures.
//
// With `?measure` it measures before anything moves and leaves the result in
// `window.__result` for the command line.

import { Chart } from "./chart.ts";
import { field } from "./component.ts";
import { counted, startCounting } from "./counting.ts";
import { measure } from "./measure.ts";
import { Panel } from "./panel.ts";
import { Scene } from "./scene.ts";
import { openWays, type WayName } from "./ways.ts";

startCounting();

const portrait = matchMedia("(max-width: 640px)").matches;
const [columns, rows] = portrait ? [25, 40] : [40, 25];
const components = field(columns, rows);
const panel = new Panel();
const scene = new Scene(panel.canvas("scene"), columns, rows);
const charts = {
  submissions: new Chart(panel.canvas("submissions"), [0.1, 1, 10, 100, 1000]),
  milliseconds: new Chart(
    panel.canvas("milliseconds"),
    [0.1, 1, 16.7, 100, 1000, 10_000],
  ),
};

const opened = await openWays();
panel.tellAdapter(opened);
let measuring = false;
panel.onMeasure(runMeasure);
if (new URLSearchParams(location.search).has("measure")) await runMeasure();
requestAnimationFrame(tick);

/** Draws the last answers; makes the next calls once all of them have come. */
let answering = false;
function tick(now: number): void {
  requestAnimationFrame(tick);
  scene.draw(components);
  if (answering || measuring) return;
  answering = true;
  void oneFrame(now / 1000).finally(() => (answering = false));
}

async function oneFrame(seconds: number): Promise<void> {
  const name: WayName = panel.way;
  const way = opened.ways[name]!;
  const counts = await counted(() => way(components, seconds));
  if (measuring) return;
  const color = panel.color(name);
  // The loop submits nothing; a logarithmic scale shows that at its lower end.
  charts.submissions.push(counts.submissions, color);
  charts.milliseconds.push(counts.milliseconds, color);
  charts.submissions.draw();
  charts.milliseconds.draw();
  panel.tellFigures({ calls: components.length, ...counts });
}

async function runMeasure(): Promise<void> {
  measuring = true;
  while (answering) await new Promise(requestAnimationFrame);
  const result = await measure(opened, components);
  panel.tellResult(result);
  Object.assign(window, {
    __result: { adapter: panel.adapter, rows: result },
  });
  measuring = false;
}
