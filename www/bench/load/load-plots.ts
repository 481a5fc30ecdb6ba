// How loads went: latency by the share of calls, and over the time of the load. A plot of
// each for every workload, one line a system.

import uPlot from "uplot";
import {
  axisStyle,
  color,
  LOGARITHMIC,
  milliseconds,
  powersOfTen,
} from "../ui/axes.ts";
import { SHARES, type Trace } from "./trace.ts";
import { SYSTEMS } from "./workloads.ts";

const HEIGHT = 300;

export class LoadPlots {
  private readonly panels = new Map<string, LoadPanel>();

  constructor(private readonly into: HTMLElement) {}

  /** Shows one load; of an earlier one on the same system no longer. */
  show(workload: string, system: string, trace: Trace): void {
    let panel = this.panels.get(workload);
    if (panel === undefined) {
      panel = new LoadPanel(workload, this.into);
      this.panels.set(workload, panel);
    }
    panel.show(system, trace);
  }
}

class LoadPanel {
  private readonly traces = new Map<string, Trace>();
  private readonly tails: Lines;
  private readonly timeline: Lines;

  constructor(workload: string, into: HTMLElement) {
    const panel = document.createElement("section");
    panel.className = "panel";
    const title = document.createElement("h2");
    title.textContent = workload;
    panel.append(title);
    into.append(panel);
    this.tails = new Lines(panel, {
      about:
        "Milliseconds from due to answered, by the share of calls that took less",
      label: "calls that took less",
      marks: (_, splits) =>
        splits.map((nines) => `${+(100 - 10 ** (2 - nines)).toPrecision(5)} %`),
    });
    this.timeline = new Lines(panel, {
      about:
        "Milliseconds from due to answered, by when calls were due: the median of each twentieth of a second",
      label: "seconds",
    });
  }

  show(system: string, trace: Trace): void {
    this.traces.set(system, trace);
    const names = SYSTEMS.map(({ name }) => name).filter((name) =>
      this.traces.has(name),
    );
    const traces = names.map((name) => this.traces.get(name)!);
    // A share as a number of nines, so that the tail has as much room as the rest.
    const nines = SHARES.map((share) => -Math.log10(1 - share));
    this.tails.draw(names, [nines, ...traces.map(({ curve }) => [...curve])]);
    const times = new Set(
      traces.flatMap(({ moments }) => moments.map(({ at }) => at)),
    );
    const seconds = [...times].sort((a, b) => a - b);
    this.timeline.draw(names, [
      seconds,
      ...traces.map(({ moments }) => {
        const medians = new Map(moments.map(({ at, median }) => [at, median]));
        return seconds.map((at) => medians.get(at) ?? null);
      }),
    ]);
  }
}

/** What the horizontal axis of a plot is. */
interface Axis {
  readonly about: string;
  readonly label: string;
  readonly marks?: (plot: uPlot, splits: number[]) => string[];
}

/** One plot, milliseconds on a logarithmic axis. */
class Lines {
  private readonly into = document.createElement("div");
  private plot: uPlot | undefined;

  constructor(
    panel: HTMLElement,
    private readonly axis: Axis,
  ) {
    const about = document.createElement("p");
    about.className = "quiet";
    about.textContent = axis.about;
    panel.append(about, this.into);
    new ResizeObserver(() =>
      this.plot?.setSize({ width: this.into.clientWidth, height: HEIGHT }),
    ).observe(this.into);
  }

  draw(names: readonly string[], values: uPlot.AlignedData): void {
    this.plot?.destroy();
    const { label, marks } = this.axis;
    const axis = axisStyle();
    const options: uPlot.Options = {
      width: this.into.clientWidth,
      height: HEIGHT,
      scales: { x: { time: false }, y: { distr: LOGARITHMIC } },
      axes: [
        { ...axis, label, ...(marks && { values: marks }) },
        { ...axis, label: "ms", size: 56, values: powersOfTen },
      ],
      series: [
        { label },
        ...names.map((name) => ({
          label: name,
          stroke: color(`--${name}`),
          width: 2,
          points: { show: false },
          spanGaps: true,
          value: milliseconds,
        })),
      ],
    };
    // A logarithmic axis has no zero, which a clock without isolation may tell.
    const [x, ...lines] = values;
    const shown = lines.map((line) =>
      Array.from(line, (value) => value && Math.max(value, 1e-3)),
    );
    this.plot = new uPlot(options, [x, ...shown], this.into);
  }
}
