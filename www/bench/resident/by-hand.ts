// WebGPU by hand for these steps and nothing else: all states in one buffer, one dispatch a
// step, one submission and one read-back a run.

import { openDevice } from "../systems/system.ts";
import { DECAY, INFLOW, type Stepping } from "./stepping.ts";

const GROUP = 64;

const SHADER = /* wgsl */ `
@group(0) @binding(0) var<storage, read_write> states: array<vec4f>;

@compute @workgroup_size(${GROUP})
fn step(@builtin(global_invocation_id) id: vec3u,
        @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * ${GROUP}u;
  if (i < arrayLength(&states)) {
    states[i] = max(states[i] * ${DECAY} + ${INFLOW}, vec4f(0.0));
  }
}
`;

export const oneBatch: Stepping = {
  name: "one-batch",
  about:
    "WebGPU by hand, one buffer and one submission for exactly these steps",
  async open(states) {
    const device = await openDevice();
    const [{ length: items, byteLength }] = states;
    const size = states.length * byteLength;
    const { STORAGE, COPY_DST, COPY_SRC, MAP_READ } = GPUBufferUsage;
    const buffer = device.createBuffer({
      size,
      usage: STORAGE | COPY_DST | COPY_SRC,
    });
    const staging = device.createBuffer({
      size: byteLength,
      usage: MAP_READ | COPY_DST,
    });
    for (const [at, state] of states.entries()) {
      device.queue.writeBuffer(buffer, at * byteLength, state);
    }
    const pipeline = await device.createComputePipelineAsync({
      layout: "auto",
      compute: { module: device.createShaderModule({ code: SHADER }) },
    });
    const group = device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: [{ binding: 0, resource: { buffer } }],
    });
    const groups = Math.ceil((items * states.length) / 4 / GROUP);
    let asked = 0;
    return {
      steps(count) {
        asked += count;
      },
      async first() {
        const encoder = device.createCommandEncoder();
        const pass = encoder.beginComputePass();
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, group);
        for (; asked > 0; asked--) pass.dispatchWorkgroups(groups);
        pass.end();
        encoder.copyBufferToBuffer(buffer, 0, staging, 0, byteLength);
        device.queue.submit([encoder.finish()]);
        await staging.mapAsync(GPUMapMode.READ);
        const floats = new Float32Array(staging.getMappedRange()).slice();
        staging.unmap();
        return floats;
      },
      close: () => device.destroy(),
    };
  },
};
