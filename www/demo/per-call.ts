// WebGPU by hand, one call at a time: each uploads, dispatches and reads back.
//
// Written as well as that can be: one pipeline, and buffers and bind groups kept
// for the next call. It does not batch, which is the point of the comparison.

const CODE = /* wgsl */ `
@group(0) @binding(0) var<storage, read> input: array<vec4f, 3>;
@group(0) @binding(1) var<storage, read_write> output: vec4f;

@compute @workgroup_size(1)
fn main() {
  let a = input[0];
  let b = input[1];
  let t = input[2].x;
  let c = dot(a, b);
  let angle = acos(min(abs(c), 1.0));
  let sine = sin(angle);
  var weights = vec2f(1.0 - t, t);
  if (sine > 1e-4) {
    weights = sin(weights * angle) / sine;
  }
  output = a * weights.x + b * weights.y * select(1.0, -1.0, c < 0.0);
}
`;

interface Kept {
  input: GPUBuffer;
  output: GPUBuffer;
  staging: GPUBuffer;
  group: GPUBindGroup;
}

export class PerCall {
  /** What no call is using. */
  private readonly free: Kept[] = [];

  private constructor(
    private readonly device: GPUDevice,
    private readonly pipeline: GPUComputePipeline,
  ) {}

  static async open(): Promise<PerCall> {
    const adapter = await navigator.gpu.requestAdapter();
    if (adapter === null) throw new Error("this page has no WebGPU adapter");
    const device = await adapter.requestDevice();
    const pipeline = await device.createComputePipelineAsync({
      layout: "auto",
      compute: { module: device.createShaderModule({ code: CODE }) },
    });
    return new PerCall(device, pipeline);
  }

  async slerp(
    from: Float32Array,
    to: Float32Array,
    t: number,
  ): Promise<Float32Array> {
    const { device } = this;
    const kept = this.free.pop() ?? this.make();
    const input = new Float32Array(12);
    input.set(from, 0);
    input.set(to, 4);
    input[8] = t;
    device.queue.writeBuffer(kept.input, 0, input);

    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(this.pipeline);
    pass.setBindGroup(0, kept.group);
    pass.dispatchWorkgroups(1);
    pass.end();
    encoder.copyBufferToBuffer(kept.output, 0, kept.staging, 0, 16);
    device.queue.submit([encoder.finish()]);

    await kept.staging.mapAsync(GPUMapMode.READ);
    const result = new Float32Array(kept.staging.getMappedRange().slice(0));
    kept.staging.unmap();
    this.free.push(kept);
    return result;
  }

  private make(): Kept {
    const { device } = this;
    const { STORAGE, COPY_DST, COPY_SRC, MAP_READ } = GPUBufferUsage;
    const input = device.createBuffer({ size: 48, usage: STORAGE | COPY_DST });
    const output = device.createBuffer({ size: 16, usage: STORAGE | COPY_SRC });
    const staging = device.createBuffer({
      size: 16,
      usage: MAP_READ | COPY_DST,
    });
    const group = device.createBindGroup({
      layout: this.pipeline.getBindGroupLayout(0),
      entries: [input, output].map((buffer, binding) => ({
        binding,
        resource: { buffer },
      })),
    });
    return { input, output, staging, group };
  }
}
