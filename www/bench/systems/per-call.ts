// WebGPU by hand as an API of single calls does it: each operation makes its buffers,
// uploads, dispatches, submits and reads back. Pipelines are made once.

import type { Call, Kernel, Op, Operand, Step } from "../ops/op.ts";
import { openDevice, type System } from "./system.ts";
import { bindGroup, groups, ONE, resultFloats, shader } from "./wgsl.ts";

export const perCall: System = {
  name: "per-call",
  about: "WebGPU by hand, one operation at a time",
  bound: "builtin",
  async open(op: Op) {
    const device = await openDevice();
    const answer = await answererByHand(device, op);
    return {
      run: (calls) => Promise.all(calls.map(answer)),
      close: () => device.destroy(),
    };
  },
};

/** What answers a call, its pipelines made. */
export async function answererByHand(device: GPUDevice, op: Op) {
  const { kernel } = op;
  const steps = op.steps ?? [{ kernel, takes: [...kernel.operands.keys()] }];
  const made = await Promise.all(steps.map((step) => single(device, step)));
  return async ({ operands, t }: Call): Promise<Float32Array> => {
    // Where there are steps, the first one is of the first operand alone.
    let before: Operand[] = op.steps ? [operands[0]] : [];
    for (const { takes, ask } of made) {
      const given = takes.map((k) => operands[k]);
      before = [await ask([...before, ...given], t)];
    }
    return before[0] as Float32Array;
  };
}

async function single(device: GPUDevice, { kernel, takes }: Step) {
  const pipeline = await device.createComputePipelineAsync({
    layout: "auto",
    compute: {
      module: device.createShaderModule({ code: shader(kernel, ONE) }),
    },
  });
  return { takes, ask: asking(device, pipeline, kernel) };
}

function asking(
  device: GPUDevice,
  pipeline: GPUComputePipeline,
  kernel: Kernel,
) {
  const { STORAGE, COPY_DST, COPY_SRC, MAP_READ, UNIFORM } = GPUBufferUsage;
  const layout = pipeline.getBindGroupLayout(0);
  const make = (size: number, usage: number) =>
    device.createBuffer({ size, usage });

  return async (operands: readonly Operand[], t: number) => {
    const { queue } = device;
    const floats = resultFloats(kernel, operands);
    const size = floats * 4;
    const buffers = operands.map((operand) => {
      const buffer = make(operand.byteLength, STORAGE | COPY_DST);
      queue.writeBuffer(buffer, 0, operand);
      return buffer;
    });
    if (kernel.timed) {
      const fraction = make(16, UNIFORM | COPY_DST);
      queue.writeBuffer(fraction, 0, Float32Array.of(t, 0, 0, 0));
      buffers.push(fraction);
    }
    const output = make(size, STORAGE | COPY_SRC);
    const staging = make(size, MAP_READ | COPY_DST);
    buffers.push(output);
    const group = bindGroup(device, layout, buffers);
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(...groups(kernel, floats));
    pass.end();
    encoder.copyBufferToBuffer(output, 0, staging, 0, size);
    queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const answer = new Float32Array(staging.getMappedRange().slice(0));
    for (const buffer of [...buffers, staging]) buffer.destroy();
    return answer;
  };
}
