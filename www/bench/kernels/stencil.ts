// Cells that spread to their neighbors, step after step, where they lie: what is right, and
// how it is measured. The ways to compute it are in files of their own.

import { clocked, repeat, type Terms } from "../measure.ts";
import { floats, sequence } from "../ops/inputs.ts";
import { timed } from "../record.ts";
import type { Finding } from "../run.ts";

/** How much of the difference to its neighbors a cell takes in one step. */
export const RATE = 0.2;

/** A step makes an error of about one rounding, which later steps average. */
const BOUND = 2e-6;

/** Cells that are open on a system. */
export interface Cells {
  /** Steps the cells so often, an even number, and gives the first four of them. */
  step(steps: number): Promise<Float32Array>;
  /** All cells. */
  read(): Promise<Float32Array>;
  close(): void | Promise<void>;
}

/** Opens a square of cells. */
export type OpenCells = (
  start: Float32Array<ArrayBuffer>,
  side: number,
) => Promise<Cells>;

export async function measureStencil(
  open: OpenCells,
  { side, steps }: { readonly side: number; readonly steps: number },
  terms: Terms,
): Promise<Finding> {
  const start = floats(side * side, sequence());
  const cells = await open(start, side);
  try {
    const first = await cells.step(steps);
    const error = worst(await cells.read(), expected(start, side, steps));
    const isFirst = (await cells.read()).subarray(0, 4).join() === first.join();
    if (!(error <= BOUND && isFirst)) {
      throw new Error(`a cell is wrong by ${error}`);
    }
    const times = await repeat(() => clocked(() => cells.step(steps)), terms);
    return { ...timed(times), error };
  } finally {
    await cells.close();
  }
}

/** The cells in double precision; edges are neighbors of themselves. */
function expected(
  start: Float32Array,
  side: number,
  steps: number,
): Float64Array {
  let [from, to] = [Float64Array.from(start), new Float64Array(start.length)];
  for (let step = 0; step < steps; step++) {
    for (let row = 0; row < side; row++) {
      const here = row * side;
      const above = Math.max(row - 1, 0) * side;
      const below = Math.min(row + 1, side - 1) * side;
      for (let col = 0; col < side; col++) {
        const around =
          from[above + col] +
          from[below + col] +
          from[here + Math.max(col - 1, 0)] +
          from[here + Math.min(col + 1, side - 1)];
        const cell = from[here + col];
        to[here + col] = cell + RATE * (around - 4 * cell);
      }
    }
    [from, to] = [to, from];
  }
  return from;
}

/** The largest difference; NaN where there is one. */
function worst(cells: Float32Array, right: Float64Array): number {
  if (cells.length !== right.length) return NaN;
  let most = 0;
  for (let i = 0; i < right.length; i++) {
    const apart = Math.abs(cells[i] - right[i]);
    // Written so that NaN counts as wrong.
    if (!(apart <= most)) most = apart;
  }
  return most;
}
