// A loop over typed arrays, as one writes it where nothing else is needed.

import type { System } from "./system.ts";

export const cpuLoop: System = {
  name: "cpu-loop",
  about: "a plain loop over typed arrays",
  bound: "own",
  async open(op) {
    let kept: Float32Array | undefined;
    return {
      async run(calls) {
        const answers = calls.map((call) => op.loop(call, kept));
        if (op.held?.into) [kept] = answers;
        return answers;
      },
      close() {},
    };
  },
};
