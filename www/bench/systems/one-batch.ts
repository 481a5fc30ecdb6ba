// WebGPU by hand for one workload and nothing else: buffers made once, one
// submission, one read-back. What batching can reach without its generality.

import type { Call, Op } from "../ops/op.ts";
import { openDevice, type Opened, type Shape, type System } from "./system.ts";
import { bindGroup, EACH, shader } from "./wgsl.ts";

export const oneBatch: System = {
  name: "one-batch",
  about: "WebGPU by hand, one batch for exactly this workload",
  bound: "builtin",
  async open(op, shape) {
    const device = await openDevice();
    const batch = new Batch(
      device,
      op,
      shape,
      await pipeline(device, op, shape),
    );
    return { run: (calls) => batch.run(calls), close: () => device.destroy() };
  },
} satisfies System;

/** Bytes of a call's result. */
function resultBytes(op: Op, { items }: Shape): number {
  const [call] = op.calls(1, items);
  return (call.operands[0].byteLength / op.kernel.bytes) * 16;
}

function pipeline(device: GPUDevice, op: Op, shape: Shape) {
  const { kernel } = op;
  const vectors = resultBytes(op, shape) / 16;
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
  /** Bytes of a call's operands, and of its result. */
  private readonly operandBytes: number[];
  private readonly bytes: number;

  constructor(
    private readonly device: GPUDevice,
    private readonly op: Op,
    private readonly shape: Shape,
    private readonly pipeline: GPUComputePipeline,
  ) {
    const { STORAGE, COPY_DST, COPY_SRC, MAP_READ } = GPUBufferUsage;
    const { calls, items } = shape;
    const [one] = op.calls(1, items);
    const make = (size: number, usage: number) =>
      device.createBuffer({ size, usage });
    this.bytes = resultBytes(op, shape);
    this.operandBytes = one.operands.map(({ byteLength }) => byteLength);
    this.own = one.operands.length - (op.held?.operands ?? 0);
    this.packed = this.operandBytes
      .slice(0, this.own)
      .map((size) => new Uint8Array(size * calls));
    this.fractions = new Float32Array(calls);
    this.inputs = this.operandBytes.map((size, k) =>
      make(k < this.own ? size * calls : size, STORAGE | COPY_DST),
    );
    if (op.held?.since === "open") {
      this.kept = new Float32Array((this.bytes / 4) * calls);
    }
    if (op.kernel.timed) this.inputs.push(make(calls * 4, STORAGE | COPY_DST));
    this.output = make(this.bytes * calls, STORAGE | COPY_SRC);
    this.staging = make(this.bytes * calls, MAP_READ | COPY_DST);
    this.group = bindGroup(device, pipeline.getBindGroupLayout(0), [
      ...this.inputs,
      this.output,
    ]);
  }

  async run(calls: Call[]): Promise<Float32Array[]> {
    const { device, staging, output } = this;
    this.upload(calls);
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(this.pipeline);
    pass.setBindGroup(0, this.group);
    pass.dispatchWorkgroups(Math.ceil(output.size / 16 / 64));
    pass.end();
    encoder.copyBufferToBuffer(output, 0, staging, 0, output.size);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const all = new Float32Array(staging.getMappedRange());
    const floats = this.bytes / 4;
    this.kept?.set(all);
    const answers = calls.map((_, call) => {
      const range = [call * floats, (call + 1) * floats] as const;
      return this.kept?.subarray(...range) ?? all.slice(...range);
    });
    staging.unmap();
    return answers;
  }

  private upload(calls: Call[]): void {
    const { queue } = this.device;
    this.operandBytes.forEach((size, k) => {
      if (k >= this.own && this.isHeld) return;
      // One call lies in one piece already, and so does what all of them share.
      if (this.shape.calls === 1 || k >= this.own) {
        queue.writeBuffer(this.inputs[k], 0, calls[0].operands[k]);
        return;
      }
      this.pack(calls, k, size);
      queue.writeBuffer(this.inputs[k], 0, this.packed[k]);
    });
    this.isHeld = this.op.held?.since === "open";
    if (!this.op.kernel.timed) return;
    for (let i = 0; i < calls.length; i++) this.fractions[i] = calls[i].t;
    queue.writeBuffer(this.inputs.at(-1)!, 0, this.fractions);
  }

  private pack(calls: Call[], k: number, size: number): void {
    const first = calls[0].operands[k];
    // Copied in the operands' own type, which is what `set` is fast at.
    const target =
      first instanceof Float32Array
        ? new Float32Array(this.packed[k].buffer)
        : this.packed[k];
    const step = size / first.BYTES_PER_ELEMENT;
    for (let i = 0; i < calls.length; i++) {
      target.set(calls[i].operands[k], i * step);
    }
  }
}
