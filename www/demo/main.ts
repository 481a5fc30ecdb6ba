// The demo page: six hundred creatures, a switch between the ways, live figures.
//
//   ?measure    measures everything; without it the page has a short look at every way
//   ?report     the same as ?measure, and posts the result to /report
//
// The creatures live on meanwhile. The result is left in `window.__result` for the command line.

import { sequence } from "../bench/ops/inputs.ts";
import { Chart } from "../ways/chart.ts";
import { startCounting } from "../ways/counting.ts";
import { element, Panel } from "../ways/panel.ts";
import { Bars } from "./bars.ts";
import { HEADINGS } from "./creatures/senses.ts";
import { World } from "./creatures/world.ts";
import { apart, type Extent, LOOK, measure, WHOLE } from "./measure.ts";
import { tellCreatures, tellSlerps } from "./report.ts";
import { Scene } from "./scene.ts";
import { measureSlerps } from "./slerps/measure.ts";
import { openSlerpWays } from "./slerps/ways.ts";
import { type Frame, think } from "./thinking.ts";
import { openWays, type WayName } from "./ways.ts";

startCounting();

const portrait = matchMedia("(max-width: 640px)").matches;
const world = new World(portrait ? 4 / 5 : 16 / 9, sequence(42));
const panel = new Panel<WayName>();
const bars = new Bars();
const scene = new Scene(panel.canvas("scene"));
const chart = new Chart(
  panel.canvas("milliseconds"),
  [0.1, 1, 16.7, 100, 1000, 10_000],
);

/** What the page does: it lives, or has the ways take turns. */
let phase: "living" | "measuring" = "living";
let isThinking = false;
let isPaused = matchMedia("(prefers-reduced-motion: reduce)").matches;
tellPaused();
element("#pause").addEventListener("click", () => {
  isPaused = !isPaused;
  tellPaused();
});

const slerps = await openSlerpWays();
const isHardware = slerps.gpu?.info?.software === false;
const ways = await openWays(isHardware ? "webgpu" : "cpu");
const adapter = tellAdapter();
const button = element<HTMLButtonElement>("#measure");
button.addEventListener("click", () => void runMeasure(WHOLE));

let last = performance.now();
scene.draw(world);
requestAnimationFrame(tick);
const query = new URLSearchParams(location.search);
const isWhole = query.has("measure") || query.has("report");
await runMeasure(isWhole ? WHOLE : LOOK);
if (query.has("report")) {
  const body = JSON.stringify(Reflect.get(window, "__result"));
  await fetch("/report", { method: "POST", body });
}

/** Moves and draws; asks for the next answers once all of the last have come. */
function tick(now: number): void {
  requestAnimationFrame(tick);
  const seconds = (now - last) / 1000;
  last = now;
  if (isPaused) return;
  world.step(Math.max(0, seconds));
  scene.draw(world);
  if (isThinking || phase === "measuring") return;
  isThinking = true;
  void oneFrame().finally(() => (isThinking = false));
}

async function oneFrame(): Promise<void> {
  const way = panel.way;
  tellFrame(way, await think(world, ways[way]));
}

function tellFrame(way: WayName, frame: Frame): void {
  const { submissions, milliseconds, ranOn } = frame;
  bars.push(way, milliseconds);
  chart.push(milliseconds, panel.color(way));
  chart.draw();
  const calls = world.creatures.length;
  if (panel.tellFigures({ calls, submissions }, { milliseconds })) {
    element('[data-figure="ran-on"]').textContent = ranOn;
    // For the test: who answered what is seen.
    document.body.dataset.way = way;
  }
}

/** Has the ways take turns; the slerps too, where all is measured. */
async function runMeasure(extent: Extent): Promise<void> {
  if (phase === "measuring") return;
  phase = "measuring";
  button.disabled = true;
  button.textContent = "Measuring…";
  try {
    while (isThinking) await new Promise(requestAnimationFrame);
    const difference = await apart(ways, world);
    const rows = await measure(ways, world, extent, (way, headings, frame) => {
      if (headings === HEADINGS) tellFrame(way, frame);
    });
    tellCreatures(rows);
    const slerpRows = extent === WHOLE ? await measureSlerps(slerps) : [];
    if (slerpRows.length > 0) tellSlerps(slerpRows);
    const result = { adapter, rows, apart: difference, slerps: slerpRows };
    Object.assign(window, { __result: result });
  } finally {
    phase = "living";
    button.disabled = false;
    button.textContent = "Measure again";
  }
}

/** Names the adapter, or says plainly that there is none. */
function tellAdapter(): string {
  const { gpu, problem } = slerps;
  if (gpu?.info === undefined) {
    const { code } = problem as { code?: string };
    const notice = element("#notice");
    notice.hidden = false;
    notice.textContent = `No WebGPU here (${code ?? problem}). The CPU answers.`;
    return "";
  }
  const name = `${gpu.info.adapter}${gpu.info.software ? " (software)" : ""}`;
  element("#adapter").textContent = `WebGPU adapter: ${name}`;
  return name;
}

function tellPaused(): void {
  const pause = element("#pause");
  pause.textContent = isPaused ? "Play" : "Pause";
}
