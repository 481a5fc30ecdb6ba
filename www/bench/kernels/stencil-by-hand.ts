// The stencil by WebGPU for exactly these cells: two buffers and two bind groups by turns, all
// steps in one pass and one submission.

import { openDevice } from "../systems/system.ts";
import { bindGroup } from "../systems/wgsl.ts";
import { type OpenCells, RATE } from "./stencil.ts";

const TILE = 16;
/** Bytes of the four floats that a run reads. */
const FIRST = 16;

const SHADER = /* wgsl */ `
override side: i32;
@group(0) @binding(0) var<storage, read> cells: array<f32>;
@group(0) @binding(1) var<storage, read_write> next: array<f32>;

fn cell(row: i32, col: i32) -> f32 {
  return cells[clamp(row, 0, side - 1) * side + clamp(col, 0, side - 1)];
}

@compute @workgroup_size(${TILE}, ${TILE})
fn step(@builtin(global_invocation_id) id: vec3u) {
  let row = i32(id.y);
  let col = i32(id.x);
  if (row >= side || col >= side) { return; }
  let here = cells[row * side + col];
  let around = cell(row - 1, col) + cell(row + 1, col) + cell(row, col - 1) + cell(row, col + 1);
  next[row * side + col] = here + ${RATE} * (around - 4.0 * here);
}
`;

export const openByHand: OpenCells = async (start, side) => {
  const device = await openDevice();
  const { STORAGE, COPY_DST, COPY_SRC, MAP_READ } = GPUBufferUsage;
  const size = start.byteLength;
  const make = (size: number, usage: number) =>
    device.createBuffer({ size, usage });
  const cells = make(size, STORAGE | COPY_DST | COPY_SRC);
  const next = make(size, STORAGE);
  const few = make(FIRST, COPY_DST | MAP_READ);
  device.queue.writeBuffer(cells, 0, start);
  const pipeline = await device.createComputePipelineAsync({
    layout: "auto",
    compute: {
      module: device.createShaderModule({ code: SHADER }),
      constants: { side },
    },
  });
  const layout = pipeline.getBindGroupLayout(0);
  const both = [
    bindGroup(device, layout, [cells, next]),
    bindGroup(device, layout, [next, cells]),
  ];
  const tiles = Math.ceil(side / TILE);

  const read = async (encoder: GPUCommandEncoder, staging: GPUBuffer) => {
    encoder.copyBufferToBuffer(cells, 0, staging, 0, staging.size);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const floats = new Float32Array(staging.getMappedRange().slice(0));
    staging.unmap();
    return floats;
  };
  return {
    step(steps) {
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      for (let step = 0; step < steps; step++) {
        pass.setBindGroup(0, both[step % 2]);
        pass.dispatchWorkgroups(tiles, tiles);
      }
      pass.end();
      return read(encoder, few);
    },
    read: () =>
      read(device.createCommandEncoder(), make(size, COPY_DST | MAP_READ)),
    close: () => device.destroy(),
  };
};
