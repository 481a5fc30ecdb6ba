// The systems that are compared: each answers all lerp calls of a workload.
//
// An answer is one new array a call. Nothing here is timed or checked.

import { open } from "framebatch";

/** One call: both arrays of the same length, one `t`. */
export interface Call {
  a: Float32Array;
  b: Float32Array;
  t: number;
}

export type System = (calls: Call[]) => Promise<Float32Array[]>;

/** framebatch, its batch sent by `flush()`. */
export async function framebatch(engine: "gpu" | "cpu"): Promise<System> {
  const gpu = await open({ engine, flush: "manual" });
  return (calls) => {
    const answers = calls.map(({ a, b, t }) => gpu.lerp(a, b, t));
    gpu.flush();
    return Promise.all(answers);
  };
}

/** The typed-array loop. */
export async function loop(): Promise<System> {
  return async (calls) =>
    calls.map(({ a, b, t }) => {
      const out = new Float32Array(a.length);
      for (let i = 0; i < a.length; i++) out[i] = (1 - t) * a[i] + t * b[i];
      return out;
    });
}

const CODE = /* wgsl */ `
@group(0) @binding(0) var<storage, read> a: array<vec4f>;
@group(0) @binding(1) var<storage, read> b: array<vec4f>;
@group(0) @binding(2) var<storage, read> t: array<f32>;
@group(0) @binding(3) var<storage, read_write> output: array<vec4f>;

override vectors: u32; // of a call

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  if (i >= arrayLength(&output)) { return; }
  let part = t[i / vectors];
  output[i] = (1.0 - part) * a[i] + part * b[i];
}
`;

/**
 * By hand, for `count` calls of `length` floats and nothing else: buffers made
 * once, one submission, one read-back. What batching can reach without its generality.
 */
export async function oneBatch(count: number, length: number): Promise<System> {
  const adapter = await navigator.gpu.requestAdapter();
  if (adapter === null) throw new Error("this page has no WebGPU adapter");
  const device = await adapter.requestDevice();
  const pipeline = await device.createComputePipelineAsync({
    layout: "auto",
    compute: {
      module: device.createShaderModule({ code: CODE }),
      constants: { vectors: length / 4 },
    },
  });
  const floats = count * length;
  const { STORAGE, COPY_DST, COPY_SRC, MAP_READ } = GPUBufferUsage;
  const buffer = (size: number, usage: number) =>
    device.createBuffer({ size: size * 4, usage });
  const inputs = [floats, floats, count].map((size) =>
    buffer(size, STORAGE | COPY_DST),
  );
  const output = buffer(floats, STORAGE | COPY_SRC);
  const staging = buffer(floats, MAP_READ | COPY_DST);
  const group = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [...inputs, output].map((buffer, binding) => ({
      binding,
      resource: { buffer },
    })),
  });
  const packed = inputs.map((input) => new Float32Array(input.size / 4));

  return async (calls) => {
    calls.forEach(({ a, b, t }, index) => {
      packed[0].set(a, index * length);
      packed[1].set(b, index * length);
      packed[2][index] = t;
    });
    inputs.forEach((input, i) => device.queue.writeBuffer(input, 0, packed[i]));
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(Math.ceil(floats / 256));
    pass.end();
    encoder.copyBufferToBuffer(output, 0, staging, 0, floats * 4);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const all = new Float32Array(staging.getMappedRange());
    const answers = calls.map((_, index) =>
      all.slice(index * length, (index + 1) * length),
    );
    staging.unmap();
    return answers;
  };
}

const ONE_CODE = /* wgsl */ `
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<uniform> t: vec4f;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  if (i >= arrayLength(&output)) { return; }
  output[i] = (1.0 - t.x) * a[i] + t.x * b[i];
}
`;

/**
 * By hand, as an API of single calls does it: each call makes its buffers, uploads,
 * dispatches, submits and reads back. The pipeline is made once.
 */
export async function perCall(): Promise<System> {
  const adapter = await navigator.gpu.requestAdapter();
  if (adapter === null) throw new Error("this page has no WebGPU adapter");
  const device = await adapter.requestDevice();
  const { STORAGE, COPY_DST, COPY_SRC, MAP_READ, UNIFORM } = GPUBufferUsage;
  const pipeline = await device.createComputePipelineAsync({
    layout: "auto",
    compute: { module: device.createShaderModule({ code: ONE_CODE }) },
  });
  const layout = pipeline.getBindGroupLayout(0);
  const one = async ({ a, b, t }: Call): Promise<Float32Array> => {
    const { byteLength } = a;
    const buffer = (size: number, usage: number) =>
      device.createBuffer({ size, usage });
    const buffers = [
      buffer(byteLength, STORAGE | COPY_DST),
      buffer(byteLength, STORAGE | COPY_DST),
      buffer(16, UNIFORM | COPY_DST),
      buffer(byteLength, STORAGE | COPY_SRC),
    ];
    const staging = buffer(byteLength, MAP_READ | COPY_DST);
    device.queue.writeBuffer(buffers[0], 0, a);
    device.queue.writeBuffer(buffers[1], 0, b);
    device.queue.writeBuffer(buffers[2], 0, new Float32Array([t, 0, 0, 0]));
    const group = device.createBindGroup({
      layout,
      entries: buffers.map((buffer, binding) => ({
        binding,
        resource: { buffer },
      })),
    });
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(Math.ceil(a.length / 64));
    pass.end();
    encoder.copyBufferToBuffer(buffers[3], 0, staging, 0, byteLength);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const answer = new Float32Array(staging.getMappedRange().slice(0));
    for (const made of [...buffers, staging]) made.destroy();
    return answer;
  };
  return (calls) => Promise.all(calls.map(one));
}
