// Time against size, one line a system, both axes logarithmic: a plot for each family
// of workloads that differ in nothing else.

import uPlot from "uplot";
import type { Row } from "../record.ts";
import { cpuLoop } from "../systems/cpu-loop.ts";
import {
  framebatchAuto,
  framebatchCpu,
  framebatchGpu,
} from "../systems/framebatch.ts";
import { SYSTEMS } from "../systems/index.ts";
import type { System } from "../systems/system.ts";
import { WORKLOADS, type Workload } from "../workloads.ts";
import {
  axisStyle,
  color,
  LOGARITHMIC,
  milliseconds,
  plain,
  powersOfTen,
} from "./axes.ts";

const HEIGHT = 380;

/** What is drawn in one plot. */
interface Family {
  readonly title: string;
  /** What grows, as the axis says it. */
  readonly label: "calls" | "floats" | "numbers a side";
  readonly size: "calls" | "items";
  readonly of: (workload: Workload) => boolean;
  readonly systems: readonly System[];
}

/** Where a call may run, and the loop that it should not be slower than. */
const CHOICES = [cpuLoop, framebatchCpu, framebatchGpu, framebatchAuto];

const FAMILIES: readonly Family[] = [
  {
    title: "One lerp of 16 floats a call: time against calls",
    label: "calls",
    size: "calls",
    of: ({ name, items }) => name.startsWith("small-lerp-") && items === 16,
    systems: SYSTEMS,
  },
  {
    title: "Five operations on three vectors: time against floats",
    label: "floats",
    size: "items",
    of: ({ name }) => /^deep5-\d/.test(name),
    systems: CHOICES,
  },
  {
    title: "A product of matrices: time against numbers a side",
    label: "numbers a side",
    size: "items",
    of: ({ name }) => /^matmul-\d/.test(name),
    systems: CHOICES,
  },
];

export class Plots {
  private readonly plots: readonly Plot[];

  constructor(into: HTMLElement) {
    this.plots = FAMILIES.map((family) => new Plot(family, into));
  }

  /** Shows those that have two points or more. */
  show(rows: readonly Row[]): void {
    for (const plot of this.plots) plot.show(rows);
  }
}

class Plot {
  private readonly panel = document.createElement("section");
  private readonly into = document.createElement("div");
  private readonly workloads: readonly Workload[];
  private plot: uPlot | undefined;
  private names: string[] = [];

  constructor(
    private readonly family: Family,
    into: HTMLElement,
  ) {
    this.workloads = WORKLOADS.filter(family.of);
    const title = document.createElement("h2");
    title.textContent = family.title;
    const about = document.createElement("p");
    about.className = "quiet";
    about.textContent =
      "Milliseconds from the first call to the last result, medians. Lower is better. Both axes are logarithmic.";
    this.panel.className = "panel";
    this.panel.hidden = true;
    this.panel.append(title, about, this.into);
    into.append(this.panel);
    new ResizeObserver(() =>
      this.plot?.setSize({ width: this.into.clientWidth, height: HEIGHT }),
    ).observe(this.into);
  }

  show(rows: readonly Row[]): void {
    const points = this.workloads.filter(({ name }) =>
      rows.some((row) => row.workload === name),
    );
    this.panel.hidden = points.length < 2;
    if (this.panel.hidden) return;
    const { systems, size } = this.family;
    const time = (workload: string, system: string) =>
      rows.find((row) => row.workload === workload && row.system === system)
        ?.median || null;
    const names = systems
      .map(({ name }) => name)
      .filter((system) => points.some(({ name }) => time(name, system)));
    const values: uPlot.AlignedData = [
      points.map((workload) => workload[size]!),
      ...names.map((system) => points.map(({ name }) => time(name, system))),
    ];
    if (this.plot !== undefined && names.join() === this.names.join()) {
      this.plot.setData(values);
    } else {
      this.plot?.destroy();
      this.names = names;
      this.plot = new uPlot(this.options(), values, this.into);
    }
  }

  private options(): uPlot.Options {
    const { label } = this.family;
    const axis = axisStyle();
    return {
      width: this.into.clientWidth,
      height: HEIGHT,
      scales: {
        x: { time: false, distr: LOGARITHMIC },
        y: { distr: LOGARITHMIC },
      },
      axes: [
        { ...axis, label, values: powersOfTen },
        { ...axis, label: "ms", size: 56, values: powersOfTen },
      ],
      series: [
        { label, value: (_, value) => plain(value) },
        ...this.names.map((name) => ({
          label: name,
          stroke: color(`--${name}`),
          width: 2,
          points: { show: true, size: 6 },
          spanGaps: true,
          value: milliseconds,
        })),
      ],
    };
  }
}
