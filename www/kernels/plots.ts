// The plots of the page: a result along its axis, and items a second by the number of callers.

import uPlot from "uplot";
import {
  axisStyle,
  color,
  LOGARITHMIC,
  plain,
  powersOfTen,
} from "../bench/ui/axes.ts";
import type { Drawn } from "./experiment.ts";

const HEIGHT = 260;
const LANES = ["x", "y", "z", "w"];
const COLORS = ["--framebatch", "--per-call", "--loop", "--tfjs"];

/** Draws a result of one axis: a line for each number of a value. */
export function plotLine(
  into: HTMLElement,
  { data, lanes, field, shape: [count] }: Drawn,
): void {
  const lane = (k: number) =>
    Array.from({ length: count }, (_, i) => data[i * lanes + k]);
  const series = Array.from({ length: lanes }, (_, k) => ({
    label: lanes > 1 ? LANES[k] : field || "result",
    stroke: color(COLORS[k]),
    width: 2,
    points: { show: count < 40 },
    value: (_: uPlot, value: number | null) => value?.toPrecision(6) ?? "–",
  }));
  plot(
    into,
    {
      scales: { x: { time: false } },
      axes: [
        { ...axisStyle(), label: "place" },
        { ...axisStyle(), size: 60 },
      ],
      series: [{ label: "place", value: (_, i) => plain(i) }, ...series],
    },
    [
      Array.from({ length: count }, (_, i) => i),
      ...series.map((_, k) => lane(k)),
    ],
  );
}

/** Draws how many items a second batches of so many callers reach. */
export function plotRates(
  into: HTMLElement,
  callers: readonly number[],
  rates: readonly (number | null)[],
): void {
  const axis = axisStyle();
  const isWide = into.clientWidth > 420;
  plot(
    into,
    {
      scales: {
        x: { time: false, distr: LOGARITHMIC },
        y: { distr: LOGARITHMIC },
      },
      axes: [
        { ...axis, label: "callers", values: powersOfTen },
        {
          ...axis,
          label: isWide ? "values a second" : undefined,
          values: (_, splits) => splits.map(short),
          size: 64,
        },
      ],
      series: [
        { label: "callers", value: (_, value) => plain(value) },
        {
          label: "values a second",
          stroke: color("--framebatch"),
          width: 2,
          points: { show: true, size: 7 },
          value: (_, value) => plain(value && Math.round(value)),
        },
      ],
    },
    [callers as number[], rates as (number | null)[]],
  );
}

/** Powers of ten in a few letters, and nothing for what lies between. */
function short(value: number | null): string | null {
  // Marks that the plot has no room for are null already.
  if (value === null) return null;
  const power = Math.log10(value);
  if (Math.abs(power - Math.round(power)) > 1e-9) return null;
  return value.toLocaleString("en", { notation: "compact" });
}

function plot(
  into: HTMLElement,
  options: Omit<uPlot.Options, "width" | "height">,
  data: uPlot.AlignedData,
): void {
  const made = new uPlot(
    { ...options, width: into.clientWidth, height: HEIGHT },
    data,
    into,
  );
  const observer = new ResizeObserver(() => {
    // What is no longer shown is not to be resized, nor kept.
    if (!into.isConnected) return observer.disconnect();
    made.setSize({ width: into.clientWidth, height: HEIGHT });
  });
  observer.observe(into);
}
