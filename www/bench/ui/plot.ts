// Time against the number of calls, one line a system, both axes logarithmic.

import uPlot from "uplot";
import type { Row } from "../record.ts";
import { SYSTEMS } from "../systems/index.ts";
import { WORKLOADS } from "../workloads.ts";

/** Floats of each call in the plot: the workloads that differ in nothing but calls. */
const FLOATS = 16;
const LOGARITHMIC = 3;
const HEIGHT = 380;

const POINTS = WORKLOADS.filter(
  ({ name, items }) => name.startsWith("small-lerp-") && items === FLOATS,
);

export class Plot {
  private plot: uPlot | undefined;
  private names: string[] = [];

  constructor(private readonly into: HTMLElement) {
    new ResizeObserver(() =>
      this.plot?.setSize({ width: into.clientWidth, height: HEIGHT }),
    ).observe(into);
  }

  /** Whether there is something to show. */
  show(rows: readonly Row[]): boolean {
    const points = POINTS.filter(({ name }) =>
      rows.some((row) => row.workload === name),
    );
    if (points.length < 2) return false;
    const time = (workload: string, system: string) =>
      rows.find((row) => row.workload === workload && row.system === system)
        ?.median || null;
    const systems = SYSTEMS.filter(({ name: system }) =>
      points.some(({ name }) => time(name, system) !== null),
    );
    const names = systems.map(({ name }) => name);
    const values: uPlot.AlignedData = [
      points.map(({ calls }) => calls!),
      ...names.map((system) => points.map(({ name }) => time(name, system))),
    ];
    if (this.plot !== undefined && names.join() === this.names.join()) {
      this.plot.setData(values);
    } else {
      this.plot?.destroy();
      this.names = names;
      this.plot = new uPlot(this.options(), values, this.into);
    }
    return true;
  }

  private options(): uPlot.Options {
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: color("--quiet"),
      grid: { stroke: color("--line"), width: 1 },
      ticks: { stroke: color("--line"), width: 1 },
    };
    const text = (value: number | null) =>
      value === null ? "" : value.toLocaleString("en");
    const marks = (_: uPlot, splits: number[]) =>
      splits.map((value) =>
        Number.isInteger(Math.log10(value)) ||
        Math.abs(Math.log10(value) % 1) < 1e-9
          ? text(value)
          : null,
      );
    return {
      width: this.into.clientWidth,
      height: HEIGHT,
      scales: {
        x: { time: false, distr: LOGARITHMIC },
        y: { distr: LOGARITHMIC },
      },
      axes: [
        { ...axis, label: "calls", values: marks },
        { ...axis, label: "ms", size: 56, values: marks },
      ],
      series: [
        { label: "calls", value: (_, value) => text(value) },
        ...this.names.map((name) => ({
          label: name,
          stroke: color(`--${name}`),
          width: 2,
          points: { show: true, size: 6 },
          spanGaps: true,
          value: (_: uPlot, value: number | null) =>
            value === null ? "–" : `${value.toPrecision(3)} ms`,
        })),
      ],
    };
  }
}
