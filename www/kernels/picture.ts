// A result of two axes as a picture: colors as they are where a value is three numbers, and
// otherwise the first number of each value, from dark to bright.

import { color } from "../bench/ui/axes.ts";
import type { Drawn } from "./experiment.ts";

/** Draws into a canvas of one pixel a place. */
export function drawPicture(
  canvas: HTMLCanvasElement,
  { data, lanes, shape: [rows, cols] }: Drawn,
  [least, most]: readonly [number, number],
): void {
  [canvas.width, canvas.height] = [cols, rows];
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(cols, rows);
  const ramp = ["--low", "--middle", "--high"].map((name) => rgb(color(name)));
  for (let i = 0; i < rows * cols; i++) {
    const values = data.subarray(i * lanes, (i + 1) * lanes);
    const share = (values[0] - least) / (most - least || 1);
    const pixel =
      lanes === 3
        ? Array.from(values, (part) => 255 * part)
        : mixed(ramp, share);
    image.data.set([...pixel, 255], i * 4);
  }
  context.putImageData(image, 0, 0);
}

/** A color between three, at a share from 0 to 1. */
function mixed(ramp: readonly number[][], share: number): number[] {
  const at = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const from = Math.min(Math.floor(at), ramp.length - 2);
  return ramp[from].map(
    (part, k) => part + (ramp[from + 1][k] - part) * (at - from),
  );
}

/** The parts of `#rrggbb`. */
const rgb = (hex: string): number[] =>
  [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
