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

/** Shares of calls that have a mark. */
const MARKS = [0, 0.5, 0.9, 0.99, 0.999];

/** A share as a number of nines, so that the tail has as much room as the rest. */
const nines = (share: number) => -Math.log10(1 - share);

const percent = (share: number) => `${+(100 * share).toFixed(1)} %`;

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
        "Milliseconds from due to answered, by the share of calls that took less; lower is better",
      label: "calls that took less",
      marks: { at: MARKS.map(nines), names: MARKS.map(percent) },
      tell: (value) => (value === null ? "" : percent(1 - 10 ** -value)),
    });
    this.timeline = new Lines(panel, {
      about:
        "Milliseconds from due to answered, by when calls were due: the median of each twentieth of a second; lower is better",
      label: "seconds",
    });
  }

  show(system: string, trace: Trace): void {
    this.traces.set(system, trace);
    const names = SYSTEMS.map(({ name }) => name).filter((name) =>
      this.traces.has(name),
    );
    const traces = names.map((name) => this.traces.get(name)!);
    this.tails.draw(names, [
      SHARES.map(nines),
      ...traces.map(({ curve }) => [...curve]),
    ]);
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
  readonly marks?: {
    readonly at: readonly number[];
    readonly names: readonly string[];
  };
  /** How the legend says a value. */
  readonly tell?: (value: number | null) => string;
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
    const { label, marks, tell } = this.axis;
    const axis = axisStyle();
    const options: uPlot.Options = {
      width: this.into.clientWidth,
      height: HEIGHT,
      scales: { x: { time: false }, y: { distr: LOGARITHMIC } },
      axes: [
        {
          ...{ ...axis, label },
          ...(marks && {
            splits: () => [...marks.at],
            values: () => [...marks.names],
          }),
        },
        { ...axis, label: "ms", size: 56, values: powersOfTen },
      ],
      series: [
        { label, ...(tell && { value: (_, value) => tell(value) }) },
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
