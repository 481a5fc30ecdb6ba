// The stencil by framebatch: a kernel of a place, whose results are stored in two tensors by turns.

import "framebatch/kernels";
import { open } from "framebatch";
import { type OpenCells, RATE } from "./stencil.ts";

export const openByFramebatch: OpenCells = async (start, side) => {
  const gpu = await open({ engine: "gpu", flush: "manual", stallMs: 120_000 });
  const spread = gpu.kernel({
    name: "spread",
    inputs: { cells: "f32" },
    params: { rate: "f32" },
    output: "f32",
    code: `fn at(i: i32) -> f32 {
      let row = i / cells_cols();
      let col = i % cells_cols();
      let around = cells_at(row - 1, col) + cells_at(row + 1, col)
        + cells_at(row, col - 1) + cells_at(row, col + 1);
      return cells(i) + params.rate * (around - 4.0 * cells(i));
    }`,
  });
  const [cells, next] = [start, new Float32Array(start.length)].map((data) =>
    gpu.tensor(data, [side, side]),
  );
  const first = cells.slice([0, 1], [0, 4]);
  let problem: unknown;
  const sent = async (answer: Promise<Float32Array>) => {
    gpu.flush();
    const floats = await answer;
    if (problem !== undefined) throw problem;
    return floats;
  };
  return {
    step(steps) {
      let [from, to] = [cells, next];
      for (let step = 0; step < steps; step++) {
        spread({ cells: from }, { rate: RATE })
          .computeInto(to)
          .catch((error) => (problem = error));
        [from, to] = [to, from];
      }
      return sent(first.read());
    },
    read: () => sent(cells.read()),
    close: () => gpu.dispose(),
  };
};
