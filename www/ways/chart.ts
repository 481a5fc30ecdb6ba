// A small line chart on a canvas: the last values, newest on the right.
//
// A logarithmic scale, since the ways differ a thousandfold. Each value keeps the
// color of the way that made it.

const KEPT = 240;
const PADDING = { left: 44, right: 8, top: 8, bottom: 8 };

export class Chart {
  private readonly values: { value: number; color: string }[] = [];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    /** The scale's marks, smallest first; the first and the last are its ends. */
    private readonly marks: number[],
  ) {}

  push(value: number, color: string): void {
    this.values.push({ value, color });
    if (this.values.length > KEPT) this.values.shift();
  }

  draw(): void {
    const { canvas } = this;
    const scale = devicePixelRatio;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = canvas.getContext("2d")!;
    context.scale(scale, scale);

    const low = Math.log(this.marks[0]);
    const high = Math.log(this.marks.at(-1)!);
    const inner = height - PADDING.top - PADDING.bottom;
    const y = (value: number) => {
      const at = (Math.log(Math.max(value, 1e-9)) - low) / (high - low);
      return height - PADDING.bottom - Math.min(1, Math.max(0, at)) * inner;
    };
    const step = (width - PADDING.left - PADDING.right) / (KEPT - 1);
    const x = (index: number) =>
      width - PADDING.right - (this.values.length - 1 - index) * step;

    this.drawMarks(context, width, y);
    context.lineWidth = 2;
    context.lineJoin = "round";
    for (const [start, end] of this.stretches()) {
      context.strokeStyle = this.values[start].color;
      context.beginPath();
      for (let i = start; i < end; i++) {
        context.lineTo(x(i), y(this.values[i].value));
      }
      // A single value is a dot.
      context.lineTo(x(end - 1) + 1, y(this.values[end - 1].value));
      context.stroke();
    }
  }

  private drawMarks(
    context: CanvasRenderingContext2D,
    width: number,
    y: (value: number) => number,
  ): void {
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const mark of this.marks) {
      context.fillStyle = "#93a0b8";
      context.fillText(mark.toLocaleString("en"), PADDING.left - 8, y(mark));
      context.fillStyle = "#232b3b";
      context.fillRect(PADDING.left, y(mark), width - PADDING.left, 1);
    }
  }

  /** Runs of one color, as [start, end). */
  private stretches(): [number, number][] {
    const out: [number, number][] = [];
    this.values.forEach(({ color }, index) => {
      const last = out.at(-1);
      if (last && this.values[last[0]].color === color) last[1] = index + 1;
      else out.push([index, index + 1]);
    });
    return out;
  }
}
