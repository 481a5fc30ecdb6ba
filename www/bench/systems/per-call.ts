// WebGPU by hand as an API of single calls does it: each call makes its buffers,
// uploads, dispatches, submits and reads back. The pipeline is made once.

import type { Call, Kernel, Op } from "../ops/op.ts";
import { openDevice, type System } from "./system.ts";
import { bindGroup, ONE, shader } from "./wgsl.ts";

export const perCall: System = {
  name: "per-call",
  about: "WebGPU by hand, one call at a time",
  bound: "builtin",
  async open(op: Op) {
    const device = await openDevice();
    const pipeline = await device.createComputePipelineAsync({
      layout: "auto",
      compute: {
        module: device.createShaderModule({ code: shader(op.kernel, ONE) }),
      },
    });
    const answer = single(device, pipeline, op.kernel);
    return {
      run: (calls) => Promise.all(calls.map(answer)),
      close: () => device.destroy(),
    };
  },
};

function single(
  device: GPUDevice,
  pipeline: GPUComputePipeline,
  { timed, bytes }: Kernel,
) {
  const { STORAGE, COPY_DST, COPY_SRC, MAP_READ, UNIFORM } = GPUBufferUsage;
  const layout = pipeline.getBindGroupLayout(0);
  const make = (size: number, usage: number) =>
    device.createBuffer({ size, usage });

  return async ({ operands, t }: Call): Promise<Float32Array> => {
    const { queue } = device;
    const size = (operands[0].byteLength / bytes) * 16;
    const buffers = operands.map((operand) => {
      const buffer = make(operand.byteLength, STORAGE | COPY_DST);
      queue.writeBuffer(buffer, 0, operand);
      return buffer;
    });
    if (timed) {
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
    pass.dispatchWorkgroups(Math.ceil(size / 16 / 64));
    pass.end();
    encoder.copyBufferToBuffer(output, 0, staging, 0, size);
    queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const answer = new Float32Array(staging.getMappedRange().slice(0));
    for (const buffer of [...buffers, staging]) buffer.destroy();
    return answer;
  };
}
