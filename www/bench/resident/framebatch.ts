// framebatch: resident tensors, `computeInto`, one flush.

import { open, type OpenOptions } from "framebatch";
import { DECAY, INFLOW, type Stepping } from "./stepping.ts";

function framebatch(
  name: string,
  about: string,
  options: OpenOptions,
): Stepping {
  return {
    name,
    about,
    async open(states) {
      const gpu = await open({ flush: "manual", ...options });
      const tensors = states.map((state) => gpu.tensor(state));
      let problem: unknown;
      return {
        steps(count) {
          for (let step = 0; step < count; step++) {
            for (const state of tensors) {
              const next = state.scale(DECAY).add(INFLOW).relu();
              next.computeInto(state).catch((error) => (problem = error));
            }
          }
        },
        async first() {
          const answer = tensors[0].read();
          gpu.flush();
          const floats = await answer;
          if (problem !== undefined) throw problem;
          return floats;
        },
        close: () => gpu.dispose(),
      };
    },
  };
}

export const framebatchGpu = framebatch(
  "framebatch-gpu",
  "framebatch, engine gpu, one flush a run",
  { engine: "gpu" },
);

export const framebatchAuto = framebatch(
  "framebatch",
  "framebatch, engine auto, one flush a run",
  {},
);
