// What a visitor may share: the adapter, the browser and the figures of the five rows, as a
// file and as a picture. Nothing else of the machine or of the visit is in either.
//
// `tools/contributed.mjs` checks such files.

import type { KeptRecord } from "kept-records";
import type { Result, Row } from "../record.ts";
import { color } from "../ui/axes.ts";
import { barsOf, lengthOf, SCALE, timeText } from "./bars.ts";
import { STORIES } from "./stories.ts";

/** The file. */
export interface SharedRecord {
  readonly adapter: string;
  /** Its name and its version's first number. */
  readonly browser: string;
  readonly rows: readonly {
    readonly workload: string;
    readonly system: string;
    /** Milliseconds. */
    readonly median: number;
    readonly p95: number;
    readonly runs: number;
  }[];
}

export function sharedRecord({ adapter, browser, rows }: Result): SharedRecord {
  const isTold = ({ workload, system, problem }: Row) =>
    problem === undefined &&
    STORIES.some(
      (story) => story.workload === workload && story.systems.includes(system),
    );
  return {
    adapter,
    browser: browserName(browser),
    rows: rows
      .filter(isTold)
      .map(({ workload, system, median, p95, runs }) => ({
        ...{ workload, system, runs },
        ...{ median: digits(median), p95: digits(p95) },
      })),
  };
}

/** "Chrome 156" of all that a browser says of itself. */
export function browserName(userAgent: string): string {
  const known = /(Firefox|Edg|Chrome|Version)\/(\d+)/g;
  const found = [...userAgent.matchAll(known)].map(([, name, version]) => ({
    name: BROWSERS[name] ?? name,
    version,
  }));
  // Edge says that it is Chrome, too, and Safari has a version alone.
  const own = found.find(({ name }) => name === "Edge") ?? found[0];
  return own ? `${own.name} ${own.version}` : "another browser";
}

const BROWSERS: Readonly<Record<string, string>> = {
  Edg: "Edge",
  Version: "Safari",
};

/** Three digits, as many as mean something. */
const digits = (value: number) => Number(value.toPrecision(3));

const WIDTH = 1000;
const LEFT = 40;
const BAR = 18;

/** The picture: the five rows, with the times of this machine and of the record beside. */
export function picture(result: Result, kept: KeptRecord | undefined) {
  const parts = STORIES.map((story) => ({
    story,
    bars: barsOf(story, result.rows, kept),
  })).filter(({ bars }) => bars.length > 0);
  const lines = parts.flatMap(({ bars }) => bars);
  const amounts = lines.flatMap(({ here, there }) => [here, there]);
  const count = amounts.filter((time) => time !== undefined).length;
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH;
  canvas.height =
    150 + parts.length * 52 + lines.length * 22 + count * (BAR + 4);
  const context = canvas.getContext("2d")!;
  context.fillStyle = color("--ground");
  context.fillRect(0, 0, canvas.width, canvas.height);
  let y = 50;
  const write = (text: string, size: number, fill: string, x = LEFT) => {
    context.font = `${size}px system-ui, sans-serif`;
    context.fillStyle = fill;
    context.fillText(text, x, y);
  };
  write("framebatch, measured", 28, color("--text"));
  y += 28;
  const { adapter, browser } = sharedRecord(result);
  const beside = kept && `; pale: ${kept.adapter}, ${kept.browser}`;
  write(`${adapter}, ${browser}${beside ?? ""}`, 16, color("--quiet"));
  y += 24;
  write(SCALE, 14, color("--quiet"));
  for (const { story, bars } of parts) {
    y += 48;
    write(story.title, 20, color("--text"));
    for (const bar of bars) {
      y += 22;
      write(bar.name, 14, color("--quiet"));
      for (const [time, alpha] of [
        [bar.here, 1],
        [bar.there, 0.45],
      ] as const) {
        if (time === undefined) continue;
        y += 4;
        context.globalAlpha = alpha;
        context.fillStyle = color(`--${bar.system}`);
        const length = (WIDTH - 2 * LEFT - 110) * lengthOf(time, bars);
        context.fillRect(LEFT, y, length, BAR);
        context.globalAlpha = 1;
        y += BAR;
        context.font = "14px system-ui, sans-serif";
        context.fillStyle = color("--text");
        context.fillText(timeText(time), LEFT + length + 8, y - 4);
      }
    }
  }
  return canvas;
}
