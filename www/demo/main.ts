// The demo page: a thousand components, a switch between the ways, live figures.
//
// With `?measure` it measures before anything moves and leaves the result in
// `window.__result` for the command line.

import { Chart } from "../ways/chart.ts";
import { counted, startCounting } from "../ways/counting.ts";
import { element, Panel } from "../ways/panel.ts";
import { field } from "./component.ts";
import { measure } from "./measure.ts";
import { onMeasure, tellResult } from "./report.ts";
import { Scene } from "./scene.ts";
import { openWays, type WayName } from "./ways.ts";

startCounting();

const portrait = matchMedia("(max-width: 640px)").matches;
const [columns, rows] = portrait ? [25, 40] : [40, 25];
const components = field(columns, rows);
const panel = new Panel<WayName>();
const scene = new Scene(panel.canvas("scene"), columns, rows);
const charts = {
  submissions: new Chart(panel.canvas("submissions"), [0.1, 1, 10, 100, 1000]),
  milliseconds: new Chart(
    panel.canvas("milliseconds"),
    [0.1, 1, 16.7, 100, 1000, 10_000],
  ),
};

const opened = await openWays();
const adapter = tellAdapter();
let measuring = false;
onMeasure(runMeasure);
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
  const name = panel.way;
  const way = opened.ways[name]!;
  const counts = await counted(() => way(components, seconds));
  if (measuring) return;
  const color = panel.color(name);
  // The loop submits nothing; a logarithmic scale shows that at its lower end.
  charts.submissions.push(counts.submissions, color);
  charts.milliseconds.push(counts.milliseconds, color);
  charts.submissions.draw();
  charts.milliseconds.draw();
  const { submissions, readbacks, milliseconds } = counts;
  panel.tellFigures(
    { calls: components.length, submissions, readbacks },
    { milliseconds },
  );
}

async function runMeasure(): Promise<void> {
  measuring = true;
  while (answering) await new Promise(requestAnimationFrame);
  const result = await measure(opened, components);
  tellResult(result);
  Object.assign(window, { __result: { adapter, rows: result } });
  measuring = false;
}

/** Names the adapter, or says plainly that there is none. */
function tellAdapter(): string {
  const { gpu, problem, ways } = opened;
  if (gpu?.info === undefined) {
    panel.tellProblem(problem, ways, "The plain loop turns the shards.");
    return "";
  }
  const name = `${gpu.info.adapter}${gpu.info.software ? " (software)" : ""}`;
  element("#adapter").textContent = `WebGPU adapter: ${name}`;
  return name;
}
