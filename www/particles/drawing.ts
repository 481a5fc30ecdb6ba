// Draws a swarm from the buffers that it lies in: a point for each particle, brighter where
// there are many, and warmer where they are fast.

import type { Screen } from "./screen.ts";
import type { Places } from "./ways.ts";

const SHADER = /* wgsl */ `
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read> vx: array<f32>;
@group(0) @binding(3) var<storage, read> vy: array<f32>;
@group(0) @binding(4) var<uniform> view: vec4f; // scale of x and y, brightness

struct Point {
  @builtin(position) place: vec4f,
  @location(0) color: vec3f,
}

@vertex fn point(@builtin(vertex_index) i: u32) -> Point {
  let speed = length(vec2f(vx[i], vy[i]));
  let warm = clamp(speed * 0.6, 0.0, 1.0);
  let color = mix(vec3f(0.10, 0.55, 0.75), vec3f(1.0, 0.45, 0.15), warm);
  return Point(vec4f(vec2f(x[i], y[i]) * view.xy, 0.0, 1.0), color * view.z);
}

@fragment fn light(@location(0) color: vec3f) -> @location(0) vec4f {
  return vec4f(color, 1.0);
}
`;

export class Drawing {
  private readonly pipeline: GPURenderPipeline;
  private readonly view: GPUBuffer;

  constructor(
    private readonly screen: Screen,
    private readonly device: GPUDevice,
    private readonly count: number,
  ) {
    const { format } = screen;
    const module = device.createShaderModule({ code: SHADER });
    const light = { srcFactor: "one", dstFactor: "one" } as const;
    this.pipeline = device.createRenderPipeline({
      layout: "auto",
      vertex: { module, entryPoint: "point" },
      fragment: {
        module,
        entryPoint: "light",
        targets: [{ format, blend: { color: light, alpha: light } }],
      },
      primitive: { topology: "point-list" },
    });
    const usage = GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST;
    this.view = device.createBuffer({ size: 16, usage });
  }

  /** Draws a picture; what comes back resolves when it is seen. */
  draw(places: Places): Promise<void> {
    const { device, screen } = this;
    const target = screen.target();
    const aspect = target.width / target.height;
    const [x, y] = aspect > 1 ? [0.8 / aspect, 0.8] : [0.8, 0.8 * aspect];
    // As bright with few particles as with many.
    const brightness = Math.min(1, 120_000 / this.count);
    const view = new Float32Array([x, y, brightness, 0]);
    device.queue.writeBuffer(this.view, 0, view);
    const { x: px, y: py, vx, vy } = places;
    const buffers = [px, py, vx, vy].map((place, binding) => ({
      binding,
      resource: place,
    }));
    const group = device.createBindGroup({
      layout: this.pipeline.getBindGroupLayout(0),
      entries: [...buffers, { binding: 4, resource: { buffer: this.view } }],
    });
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginRenderPass({
      colorAttachments: [
        {
          view: target.createView(),
          clearValue: [0.02, 0.03, 0.05, 1],
          loadOp: "clear",
          storeOp: "store",
        },
      ],
    });
    pass.setPipeline(this.pipeline);
    pass.setBindGroup(0, group);
    pass.draw(this.count);
    pass.end();
    device.queue.submit([encoder.finish()]);
    return screen.present();
  }
}
