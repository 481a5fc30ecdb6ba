// gpu.js on its WebGPU backend: a call at a time.
//
// The library keeps the pipeline and the buffers of a kernel, and sends a call before it
// returns, so that all calls of a run are on their way before the first is awaited. What the
// calls share lies on the GPU, as the result of a kernel whose results stay there.

import type { IKernelRunShortcut } from "gpu.js";
import { type Call, heldOf } from "../ops/op.ts";
import type { System } from "../systems/system.ts";

/** A kernel whose calls are answered by promises, as all are on WebGPU. */
type Kernel = (...args: unknown[]) => Promise<unknown>;

/** Any result that stays on the GPU. */
interface Resident {
  delete(): void;
}

const COPY = "function (x) { return x[this.thread.x]; }";

export const gpuJs: System = {
  name: "gpu-js",
  about: "gpu.js 2.24.1 WebGPU, one call at a time",
  bound: "builtin",
  async open(op, [first]) {
    const source = op.gpuJs;
    if (source === undefined) throw new Error(`it has no ${op.name}`);
    const { GPU } = await import("gpu.js");
    if (!(await GPU.isWebGPUAvailable())) throw new Error("no WebGPU adapter");
    const gpu = new GPU({ mode: "webgpu" as "gpu" });
    const output = [first.operands[0].length];
    const kernel = promised(gpu.createKernel(source, { output }));
    const copy = promised(
      gpu.createKernel(COPY, { output, pipeline: true, immutable: true }),
    );
    const own = first.operands.length - (op.held?.operands ?? 0);
    const answer = ({ operands, t }: Call, held: readonly Resident[]) =>
      kernel(
        ...operands.slice(0, own),
        ...held,
        ...(op.kernel.timed ? [t] : []),
      ) as Promise<Float32Array>;
    return {
      async run(calls) {
        const held: Resident[] = [];
        for (const { data } of heldOf(op, calls[0])) {
          held.push((await copy(data)) as Resident);
        }
        const answers = await Promise.all(
          calls.map((call) => answer(call, held)),
        );
        for (const resident of held) resident.delete();
        return answers;
      },
      close: () => gpu.destroy(),
    };
  },
};

const promised = (kernel: IKernelRunShortcut): Kernel =>
  kernel as unknown as Kernel;
