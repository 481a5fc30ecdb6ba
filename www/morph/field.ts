// The shapes: where each stands, how far it is morphed, and how it is drawn.
//
// How far a shape is follows the pointer; what it looks like then is a row of the clip,
// which somebody else samples.

/** What shapes look like, from untouched to just under the pointer. */
export const FORMS = {
  times: [0, 0.5, 1],
  /** The long and the short radius of a form in places, its turn in radians, its hue from 0 to 1. */
  values: [
    ...[0.34, 0.1, 0.5, 0.05],
    ...[0.62, 0.3, 2.2, 0.5],
    ...[1.9, 0.16, 5.4, 0.95],
  ],
};
/** Floats of a row. */
export const WIDTH = 4;
/** Shapes of a component. */
export const TILE = 50;

const HUES = 24;
/** How fast a shape goes where the pointer wants it, a second. */
const EAGER = 9;

export class Field {
  /** How far each is, from 0 to 1; a component's are neighbors. */
  readonly times: Float32Array<ArrayBuffer>;
  /** The last rows. */
  readonly rows: Float32Array<ArrayBuffer>;

  private seconds = 0;

  constructor(
    readonly columns: number,
    readonly lines: number,
  ) {
    this.times = new Float32Array(columns * lines);
    this.rows = new Float32Array(columns * lines * WIDTH);
  }

  get tiles(): number {
    return this.times.length / TILE;
  }

  /** The times of a component's shapes. */
  timesOf(tile: number): Float32Array<ArrayBuffer> {
    return this.times.subarray(tile * TILE, (tile + 1) * TILE);
  }

  /** Where its rows go. */
  rowsOf(tile: number): Float32Array<ArrayBuffer> {
    const width = TILE * WIDTH;
    return this.rows.subarray(tile * width, (tile + 1) * width);
  }

  /** Moves everybody on, with the pointer at a place from 0 to 1 across and down. */
  follow([x, y]: readonly [number, number], seconds: number): void {
    const { columns, lines, times } = this;
    const share = 1 - Math.exp((this.seconds - seconds) * EAGER);
    this.seconds = seconds;
    const [px, py] = [x * columns, y * lines];
    const reach = 0.17 * Math.min(columns, lines);
    for (let i = 0; i < times.length; i++) {
      const dx = (i % columns) + 0.5 - px;
      const dy = Math.floor(i / columns) + 0.5 - py;
      const distance = Math.hypot(dx, dy) / reach;
      const ripple = 0.5 + 0.5 * Math.cos(distance * 3 - seconds * 4);
      const wanted =
        Math.exp(-distance * distance * 0.5) + (0.3 * ripple) / (1 + distance);
      times[i] += (Math.min(1, wanted) - times[i]) * share;
    }
  }

  draw(canvas: HTMLCanvasElement): void {
    const scale = Math.min(devicePixelRatio, 2);
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const context = canvas.getContext("2d")!;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const { columns, lines, rows } = this;
    const [across, down] = [width / columns, height / lines];
    const size = Math.min(across, down);
    // One path a hue: so many fills would be what is slow.
    const paths = COLORS.map(() => new Path2D());
    for (let i = 0, at = 0; at < rows.length; i++, at += WIDTH) {
      const hue = Math.floor(rows[at + 3] * HUES);
      const path = paths[Math.min(HUES - 1, Math.max(0, hue))];
      const x = ((i % columns) + 0.5) * across;
      const y = (Math.floor(i / columns) + 0.5) * down;
      const cos = Math.cos(rows[at + 2]) * size;
      const sin = Math.sin(rows[at + 2]) * size;
      const [long, short] = [rows[at], rows[at + 1]];
      path.moveTo(x + cos * long, y + sin * long);
      path.lineTo(x - sin * short, y + cos * short);
      path.lineTo(x - cos * long, y - sin * long);
      path.lineTo(x + sin * short, y - cos * short);
      path.closePath();
    }
    paths.forEach((path, hue) => {
      context.fillStyle = COLORS[hue];
      context.fill(path);
    });
  }
}

/** From the depth of the page to what glows. */
const COLORS = Array.from({ length: HUES }, (_, hue) => {
  const t = hue / (HUES - 1);
  return `hsl(${225 - 190 * t} ${45 + 45 * t}% ${30 + 38 * t}%)`;
});
