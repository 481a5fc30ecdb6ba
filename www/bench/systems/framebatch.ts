// framebatch: calls as an app makes them, then `gpu.flush()`.

import { open, type OpenOptions } from "framebatch";
import type { System } from "./system.ts";

function framebatch(engine: "gpu" | "cpu" | "auto", about: string): System {
  return {
    name: `framebatch-${engine}`,
    about,
    bound: "own",
    async open(op) {
      const gpu = await open({ engine, flush: "manual" });
      return {
        run(calls) {
          const answers = calls.map((call) => op.framebatch(gpu, call));
          gpu.flush();
          return Promise.all(answers);
        },
        close: () => gpu.dispose(),
      };
    },
  };
}

export const framebatchGpu = framebatch("gpu", "this package, on the GPU");
export const framebatchCpu = framebatch("cpu", "this package, in WebAssembly");
export const framebatchAuto = framebatch(
  "auto",
  "this package, left to choose",
);

/** The engine that a system of this file asks for. */
export const engineOf = (system: System) =>
  system.name.replace("framebatch-", "") as OpenOptions["engine"];
