// The page of the swarm: a million particles that are stepped and drawn where they lie.
//
//   ?count=N     so many particles; a million without it
//   ?report      measures every way, and posts the result to /report; it is in
//                `window.__result` too
//   ?picture     shows pictures through a 2D canvas, as on software adapters
//   ?check       steps each way the same few steps, and leaves their distance from the loop in
//                double precision in `window.__check`

import { quantile } from "../bench/record.ts";
import { machine } from "../bench/run.ts";
import { Chart } from "../ways/chart.ts";
import { counted, startCounting } from "../ways/counting.ts";
import { element, Panel } from "../ways/panel.ts";
import { check } from "./check.ts";
import { Drawing } from "./drawing.ts";
import { newSwarm, wellsAt } from "./swarm.ts";
import { openScreen } from "./screen.ts";
import { type Places, type Way, type WayName, WAYS } from "./ways.ts";

startCounting();

const query = new URLSearchParams(location.search);
const count = Number(query.get("count") ?? 1_000_000);
const panel = new Panel<WayName>();
const canvas = panel.canvas("scene");
const chart = new Chart(
  panel.canvas("milliseconds"),
  [0.01, 0.1, 1, 16.7, 100],
);
const start = newSwarm(count);

/** A way that was opened, what it draws with, and how many steps it has done. */
interface Opened {
  readonly way: Way;
  readonly drawing: Drawing;
  steps: number;
}

/** Frames that are not counted, and frames that are. */
const [WARM, MEASURED] = [30, 120];

/** What one frame took: of the page's thread, and from frame to frame. */
interface Frame {
  readonly way: WayName;
  readonly busy: number;
  readonly milliseconds: number;
  readonly submissions: number;
  readonly readbacks: number;
}

/** Hears of every frame. */
let listener: ((frame: Frame) => void) | undefined;

const { software } = await machine();
const kind = software || query.has("picture") ? "2d" : "webgpu";
const opened = new Map<WayName, Promise<Opened>>();
let shown: WayName | undefined;
let pointer: readonly [number, number] | undefined;
canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => {
  const { clientWidth: width, clientHeight: height } = canvas;
  const side = 0.4 * Math.min(width, height);
  pointer = [(offsetX - width / 2) / side, (height / 2 - offsetY) / side];
});
canvas.addEventListener("pointerleave", () => (pointer = undefined));

if (query.has("check")) {
  Object.assign(window, { __check: await check(WAYS) });
}

let last: number | undefined;
let isBusy = false;
if (!("gpu" in navigator)) {
  panel.tellProblem("there is no navigator.gpu", {}, "Nothing is drawn.");
} else {
  requestAnimationFrame(tick);
}
if (query.has("report")) await report();

/** Shows every way for some frames each, and tells what a frame took. */
async function report(): Promise<void> {
  const rows = [];
  for (const way of Object.keys(WAYS) as WayName[]) {
    element<HTMLInputElement>(`[value="${way}"]`).checked = true;
    const frames: Frame[] = [];
    listener = (frame) => {
      if (frame.way === way) frames.push(frame);
    };
    while (frames.length < WARM + MEASURED) {
      await new Promise(requestAnimationFrame);
    }
    const measured = frames.slice(WARM);
    const median = (of: "busy" | "milliseconds") =>
      quantile(
        measured.map((frame) => frame[of]),
        0.5,
      );
    const [{ submissions, readbacks }] = measured;
    rows.push({
      way,
      particles: count,
      busy: median("busy"),
      frame: median("milliseconds"),
      submissions,
      readbacks,
    });
  }
  const result = { ...(await machine()), rows };
  Object.assign(window, { __result: result });
  await fetch("/report", { method: "POST", body: JSON.stringify(result) });
}

/** Steps and draws; the next frame waits until this one is submitted. */
function tick(now: number): void {
  requestAnimationFrame(tick);
  if (isBusy) return;
  isBusy = true;
  frame(panel.way, now)
    .catch((problem: unknown) => {
      panel.tellProblem(problem, {}, "Nothing more is drawn.");
      throw problem;
    })
    .finally(() => (isBusy = false));
}

async function frame(name: WayName, now: number): Promise<void> {
  const own = await openOnce(name);
  if (shown !== name) {
    shown = name;
    last = undefined;
  }
  let busy = 0;
  let places: Places | undefined;
  const { submissions, readbacks } = await counted(async () => {
    busy = timed(() => own.way.step(wellsAt(own.steps++, pointer)));
    places = await own.way.places();
  });
  let seen: Promise<void> | undefined;
  busy += timed(() => (seen = own.drawing.draw(places!)));
  await seen;
  own.way.drawn?.();
  const before = last;
  last = now;
  if (before === undefined) return;
  const milliseconds = now - before;
  listener?.({ way: name, busy, milliseconds, submissions, readbacks });
  chart.push(busy, panel.color(name));
  chart.draw();
  const counts = { particles: count, submissions, readbacks };
  const times = { busy, milliseconds };
  if (panel.tellFigures(counts, times)) {
    // For the test: what was drawn, and by whom.
    document.body.dataset.way = name;
  }
}

/** The milliseconds that some work keeps the page's thread. */
function timed(work: () => void): number {
  const began = performance.now();
  work();
  return performance.now() - began;
}

function openOnce(name: WayName): Promise<Opened> {
  const known = opened.get(name);
  if (known !== undefined) return known;
  const opening = WAYS[name](start).then((way) => {
    sizeCanvas();
    const screen = openScreen(canvas, way.device, kind);
    return { way, drawing: new Drawing(screen, way.device, count), steps: 0 };
  });
  opened.set(name, opening);
  return opening;
}

function sizeCanvas(): void {
  if (opened.size > 1) return; // A canvas that is drawn on keeps its size.
  const scale = Math.min(2, devicePixelRatio);
  const { clientWidth, clientHeight } = element<HTMLCanvasElement>("#scene");
  canvas.width = Math.round(clientWidth * scale);
  canvas.height = Math.round(clientHeight * scale);
}
