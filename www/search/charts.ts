// What indexing looks like: tokens a second, and how many texts were in each batch.
//
// A chart draws what it is told, over the seconds since indexing began.

import uPlot from "uplot";

const HEIGHT = 180;
const LOGARITHMIC = 3;
/** Points of a chart at most; the oldest go first. */
const KEPT = 2000;

/** A column of points: seconds, then a value or null for each series. */
type Column = readonly [seconds: number, ...values: (number | null)[]];

export interface Series {
  readonly label: string;
  /** The custom property with its color. */
  readonly color: string;
}

export class Chart {
  private readonly columns: Column[] = [];
  private readonly plot: uPlot;
  private isDue = false;

  /** `points` draws what stands alone, on a logarithmic axis; `line` what follows one another. */
  constructor(
    into: HTMLElement,
    private readonly series: readonly Series[],
    private readonly kind: "line" | "points",
  ) {
    this.plot = new uPlot(this.options(into.clientWidth), this.data(), into);
    new ResizeObserver(() =>
      this.plot.setSize({ width: into.clientWidth, height: HEIGHT }),
    ).observe(into);
  }

  /** Draws it with the next frame. */
  push(...column: Column): void {
    this.columns.push(column);
    if (this.columns.length > KEPT) this.columns.shift();
    this.draw();
  }

  clear(): void {
    this.columns.length = 0;
    this.draw();
  }

  private draw(): void {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.plot.setData(this.data());
    });
  }

  private data(): uPlot.AlignedData {
    const row = (at: number) => this.columns.map((column) => column[at]);
    return [row(0) as number[], ...this.series.map((_, i) => row(i + 1))];
  }

  private options(width: number): uPlot.Options {
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: color("--quiet"),
      grid: { stroke: color("--line"), width: 1 },
      ticks: { stroke: color("--line"), width: 1 },
    };
    const isLine = this.kind === "line";
    const text = (_: uPlot, values: (number | null)[]) =>
      values.map((value) => value?.toLocaleString("en") ?? "");
    return {
      width,
      height: HEIGHT,
      cursor: { show: false },
      legend: { show: this.series.length > 1, live: false },
      scales: {
        x: {
          time: false,
          range: (_, first, last) => [first ?? 0, Math.max(last ?? 0, 1)],
        },
        y: isLine
          ? { range: (_, __, most) => [0, Math.max(1.1 * (most ?? 0), 10)] }
          : {
              distr: LOGARITHMIC,
              range: (_, __, most) => [0.8, Math.max(1.25 * (most ?? 0), 10)],
            },
      },
      axes: [
        { ...axis, values: text },
        { ...axis, values: text, size: 60 },
      ],
      series: [
        { label: "s" },
        ...this.series.map((one) => ({
          label: one.label,
          stroke: color(one.color),
          fill: isLine ? undefined : color(one.color),
          width: 2,
          paths: isLine ? undefined : () => null,
          points: { show: !isLine, size: 6, fill: color(one.color) },
        })),
      ],
    };
  }
}
