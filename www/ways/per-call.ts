// WebGPU by hand, one call at a time: each uploads, dispatches and reads back.
//
// Written as well as that can be: one pipeline, and buffers and bind groups kept
// for the next call. It does not batch, which is the point of the comparison.

interface Kept {
  input: GPUBuffer;
  output: GPUBuffer;
  staging: GPUBuffer;
  group: GPUBindGroup;
}

/** A kernel of one workgroup: it reads binding 0 and writes binding 1. */
export interface Kernel {
  readonly code: string;
  /** Floats that a call uploads, and that come back. */
  readonly input: number;
  readonly output: number;
}

export class PerCall {
  /** What no call is using. */
  private readonly free: Kept[] = [];

  private constructor(
    private readonly device: GPUDevice,
    private readonly pipeline: GPUComputePipeline,
    private readonly kernel: Kernel,
  ) {}

  static async open(kernel: Kernel): Promise<PerCall> {
    const adapter = await navigator.gpu.requestAdapter();
    if (adapter === null) throw new Error("this page has no WebGPU adapter");
    const device = await adapter.requestDevice();
    const module = device.createShaderModule({ code: kernel.code });
    const pipeline = await device.createComputePipelineAsync({
      layout: "auto",
      compute: { module },
    });
    return new PerCall(device, pipeline, kernel);
  }

  /** Computes `into` from `floats`, and gives it back. */
  async ask<Into extends Float32Array>(
    floats: Float32Array<ArrayBuffer>,
    into: Into,
  ): Promise<Into> {
    const { device } = this;
    const kept = this.free.pop() ?? this.make();
    device.queue.writeBuffer(kept.input, 0, floats);

    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(this.pipeline);
    pass.setBindGroup(0, kept.group);
    pass.dispatchWorkgroups(1);
    pass.end();
    const { size } = kept.output;
    encoder.copyBufferToBuffer(kept.output, 0, kept.staging, 0, size);
    device.queue.submit([encoder.finish()]);

    await kept.staging.mapAsync(GPUMapMode.READ);
    into.set(new Float32Array(kept.staging.getMappedRange()));
    kept.staging.unmap();
    this.free.push(kept);
    return into;
  }

  private make(): Kept {
    const { device, kernel } = this;
    const { STORAGE, COPY_DST, COPY_SRC, MAP_READ } = GPUBufferUsage;
    const make = (floats: number, usage: number) =>
      device.createBuffer({ size: floats * 4, usage });
    const input = make(kernel.input, STORAGE | COPY_DST);
    const output = make(kernel.output, STORAGE | COPY_SRC);
    const staging = make(kernel.output, MAP_READ | COPY_DST);
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
