// relu, scale, add on a call's own data and an addend of all calls, as `small-1000x64` has it:
// here recorded once by `gpu.fn`, and not by each call.

import "framebatch/kernels";
import { chain } from "../ops/chains.ts";
import type { Op } from "../ops/op.ts";
import { perSession } from "./per-session.ts";

const tracedOf = perSession((gpu) =>
  gpu.fn((x, addend) => x.relu().scale(2).add(addend)),
);

export const tracedChain: Op = {
  ...chain,
  name: "traced relu-scale-add",
  framebatch: (gpu, call, [addend]) =>
    tracedOf(gpu)(call.operands[0] as Float32Array, addend).read(),
  // One kernel, as a caller writes it who may write kernels.
  steps: undefined,
  gpuJs: `function (in0, in1) {
    return Math.max(in0[this.thread.x], 0.0) * 2.0 + in1[this.thread.x];
  }`,
};
