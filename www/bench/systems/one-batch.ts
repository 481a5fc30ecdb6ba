// WebGPU by hand for one workload and nothing else: buffers made once, one
// submission, one read-back. What batching can reach without its generality.

import type { Call, Op } from "../ops/op.ts";
import { openDevice, type Opened, type System } from "./system.ts";
import { bindGroup, EACH, groups, resultFloats, shader } from "./wgsl.ts";

export const oneBatch: System = {
  name: "one-batch",
  about: "WebGPU by hand, one batch for exactly this workload",
  bound: "builtin",
  async open(op, calls) {
    const device = await openDevice();
    const made = await pipeline(device, op, calls);
    const batch = new Batch(device, op, calls, made);
    return { run: (calls) => batch.run(calls), close: () => device.destroy() };
  },
} satisfies System;

function pipeline(device: GPUDevice, { kernel }: Op, [call]: readonly Call[]) {
  const vectors = resultFloats(kernel, call.operands) / 4;
  return device.createComputePipelineAsync({
    layout: "auto",
    compute: {
      module: device.createShaderModule({ code: shader(kernel, EACH) }),
      constants: kernel.timed ? { vectors } : {},
    },
  });
}

class Batch implements Pick<Opened, "run"> {
  private readonly inputs: GPUBuffer[];
  /** Operands that differ from call to call: the first ones. */
  private readonly own: number;
  /** Whether what is held was uploaded, for good. */
  private isHeld = false;
  /** Where results go that the caller keeps an array for. */
  private readonly kept: Float32Array | undefined;
  private readonly fractions: Float32Array<ArrayBuffer>;
  private readonly output: GPUBuffer;
  private readonly staging: GPUBuffer;
  private readonly group: GPUBindGroup;
  /** The operands of all calls, each end to end. */
  private readonly packed: Uint8Array<ArrayBuffer>[];
  /** The float at which each call's result begins, and the one behind the last. */
  private readonly starts: number[] = [0];

  constructor(
    private readonly device: GPUDevice,
    private readonly op: Op,
    calls: readonly Call[],
    private readonly pipeline: GPUComputePipeline,
  ) {
    const { STORAGE, COPY_DST, COPY_SRC, MAP_READ } = GPUBufferUsage;
    const { kernel, held } = op;
    const make = (size: number, usage: number) =>
      device.createBuffer({ size, usage });
    let floats = 0;
    for (const { operands } of calls) {
      floats += resultFloats(kernel, operands);
      this.starts.push(floats);
    }
    const [{ operands }] = calls;
    this.own = operands.length - (held?.operands ?? 0);
    const sizes = operands.map(({ byteLength }, k) =>
      k < this.own
        ? calls.reduce((sum, call) => sum + call.operands[k].byteLength, 0)
        : byteLength,
    );
    this.packed = sizes
      .slice(0, this.own)
      .map((size) => new Uint8Array(calls.length > 1 ? size : 0));
    this.fractions = new Float32Array(calls.length);
    this.inputs = sizes.map((size) => make(size, STORAGE | COPY_DST));
    if (held?.into) this.kept = new Float32Array(floats);
    if (kernel.timed) {
      this.inputs.push(make(calls.length * 4, STORAGE | COPY_DST));
    }
    this.output = make(floats * 4, STORAGE | COPY_SRC);
    this.staging = make(floats * 4, MAP_READ | COPY_DST);
    this.group = bindGroup(device, pipeline.getBindGroupLayout(0), [
      ...this.inputs,
      this.output,
    ]);
  }

  async run(calls: Call[]): Promise<Float32Array[]> {
    const { device, staging, output, starts } = this;
    this.upload(calls);
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(this.pipeline);
    pass.setBindGroup(0, this.group);
    pass.dispatchWorkgroups(...groups(this.op.kernel, output.size / 4));
    pass.end();
    encoder.copyBufferToBuffer(output, 0, staging, 0, output.size);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const all = new Float32Array(staging.getMappedRange());
    this.kept?.set(all);
    const answers = calls.map((_, call) => {
      const range = [starts[call], starts[call + 1]] as const;
      return this.kept?.subarray(...range) ?? all.slice(...range);
    });
    staging.unmap();
    return answers;
  }

  private upload(calls: Call[]): void {
    const { queue } = this.device;
    calls[0].operands.forEach((operand, k) => {
      if (k >= this.own && this.isHeld) return;
      // One call lies in one piece already, and so does what all of them share.
      if (calls.length === 1 || k >= this.own) {
        queue.writeBuffer(this.inputs[k], 0, operand);
        return;
      }
      this.pack(calls, k);
      queue.writeBuffer(this.inputs[k], 0, this.packed[k]);
    });
    this.isHeld = this.op.held?.since === "open";
    if (!this.op.kernel.timed) return;
    for (let i = 0; i < calls.length; i++) this.fractions[i] = calls[i].t;
    queue.writeBuffer(this.inputs.at(-1)!, 0, this.fractions);
  }

  private pack(calls: Call[], k: number): void {
    const first = calls[0].operands[k];
    // Copied in the operands' own type, which is what `set` is fast at.
    const target =
      first instanceof Float32Array
        ? new Float32Array(this.packed[k].buffer)
        : this.packed[k];
    let at = 0;
    for (let i = 0; i < calls.length; i++) {
      const operand = calls[i].operands[k];
      target.set(operand, at);
      at += operand.length;
    }
  }
}
