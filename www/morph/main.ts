// The page: shapes under the pointer, a switch between the ways, live figures.

import { Chart } from "../ways/chart.ts";
import { counted, startCounting } from "../ways/counting.ts";
import { Panel } from "../ways/panel.ts";
import { Field } from "./field.ts";
import { openWays, type WayName } from "./ways.ts";

startCounting();

const panel = new Panel<WayName>();
const canvas = panel.canvas("scene");
const portrait = matchMedia("(max-width: 640px)").matches;
const field = portrait ? new Field(125, 160) : new Field(200, 100);
const charts = {
  submissions: new Chart(panel.canvas("submissions"), [0.1, 1, 10, 100, 1000]),
  milliseconds: new Chart(panel.canvas("milliseconds"), [1, 16.7, 100, 1000]),
};

/** Where the pointer is; until there is one, it goes round by itself. */
let pointer: readonly [number, number] | undefined;
canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => {
  pointer = [offsetX / canvas.clientWidth, offsetY / canvas.clientHeight];
});
canvas.addEventListener("pointerleave", () => (pointer = undefined));

const { ways, problem } = await openWays();
if (problem !== undefined) {
  panel.tellProblem(problem, ways, "The main thread does it all.");
}

let last: number | undefined;
let isAnswering = false;

/** Draws the last answers; makes the next calls once all of them have come. */
function tick(now: number): void {
  requestAnimationFrame(tick);
  if (isAnswering) return;
  isAnswering = true;
  void frame(now).finally(() => (isAnswering = false));
}

async function frame(now: number): Promise<void> {
  const name = panel.way;
  const seconds = now / 1000;
  const around = [
    0.5 + 0.32 * Math.cos(seconds * 0.7),
    0.5 + 0.3 * Math.sin(seconds * 1.1),
  ] as const;
  field.follow(pointer ?? around, seconds);
  const { submissions } = await counted(() => ways[name]!(field));
  field.draw(canvas);
  const before = last;
  last = now;
  if (before === undefined) return;
  const milliseconds = now - before;
  const color = panel.color(name);
  charts.submissions.push(submissions, color);
  charts.milliseconds.push(milliseconds, color);
  const isShown = panel.tellFigures(
    { shapes: field.times.length, calls: field.tiles, submissions },
    { milliseconds },
  );
  if (!isShown) return;
  charts.submissions.draw();
  charts.milliseconds.draw();
  // For the test: what was drawn, and by whom.
  document.body.dataset.way = name;
}

requestAnimationFrame(tick);
