// How the axes of plots look: the site's colors, and marks at powers of ten.

import type uPlot from "uplot";

/** uPlot's name for a scale whose steps are powers. */
export const LOGARITHMIC = 3;

/** A color of the page, by the name of its variable. */
export const color = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** An axis in the colors of the page. */
export function axisStyle(): uPlot.Axis {
  return {
    stroke: color("--quiet"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { stroke: color("--line"), width: 1 },
  };
}

/** A number as axes and legends have it. */
export const plain = (value: number | null) =>
  value === null ? "" : value.toLocaleString("en");

/** The marks of a logarithmic axis: powers of ten. */
export const powersOfTen = (_: uPlot, splits: number[]) =>
  splits.map((value) => {
    const power = Math.abs(Math.log10(value) % 1);
    return power < 1e-9 || power > 1 - 1e-9 ? plain(value) : null;
  });

/** Milliseconds in the legend. */
export const milliseconds = (_: uPlot, value: number | null) =>
  value === null ? "–" : `${value.toPrecision(3)} ms`;
