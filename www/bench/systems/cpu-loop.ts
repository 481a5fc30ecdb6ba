// A loop over typed arrays, as one writes it where nothing else is needed.

import type { System } from "./system.ts";

export const cpuLoop: System = {
  name: "cpu-loop",
  about: "a plain loop over typed arrays",
  bound: "own",
  async open(op) {
    return {
      run: async (calls) => calls.map((call) => op.loop(call)),
      close() {},
    };
  },
};
