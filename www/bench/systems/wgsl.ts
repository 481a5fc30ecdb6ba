// The shader around an operation's kernel, for the systems written by hand.

import type { Kernel, Operand } from "../ops/op.ts";

/** Where a thread finds its call's `t`. */
interface Fraction {
  /** WGSL that declares it at the binding after the operands. */
  declare(binding: number): string;
  /** WGSL of its value for the i-th four floats. */
  readonly value: string;
}

/** One `t` for the whole dispatch. */
export const ONE: Fraction = {
  declare: (binding) =>
    `@group(0) @binding(${binding}) var<uniform> fraction: vec4f;`,
  value: "fraction.x",
};

/** One `t` a call, of `vectors` threads each. */
export const EACH: Fraction = {
  declare: (binding) =>
    `override vectors: u32;
     @group(0) @binding(${binding}) var<storage, read> fractions: array<f32>;`,
  value: "fractions[i / vectors]",
};

/** The whole shader; its bindings are the operands, `t` where it is read, the result. */
export function shader(kernel: Kernel, fraction: Fraction): string {
  const { operands, timed, code, whole } = kernel;
  const last = operands.length + (timed ? 1 : 0);
  const inputs = operands.map(
    (type, i) =>
      `@group(0) @binding(${i}) var<storage, read> in${i}: array<${type}>;`,
  );
  return /* wgsl */ `
    ${inputs.join("\n")}
    ${timed ? fraction.declare(operands.length) : ""}
    @group(0) @binding(${last}) var<storage, read_write> output: array<${whole?.output ?? "vec4f"}>;
    ${code}
    ${whole ? "" : main(timed ? fraction.value : "0.0")}`;
}

function main(fraction: string): string {
  return /* wgsl */ `
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) {
      let i = id.x;
      if (i >= arrayLength(&output)) { return; }
      output[i] = compute(i, ${fraction});
    }`;
}

/** Floats of a call's result. */
export function resultFloats(
  { bytes }: Kernel,
  [first]: readonly Operand[],
): number {
  return (first.byteLength / bytes) * 4;
}

/** Workgroups for a result of so many floats. */
export function groups({ whole }: Kernel, floats: number) {
  return whole?.groups(floats) ?? ([Math.ceil(floats / 4 / 64), 1] as const);
}

export function bindGroup(
  device: GPUDevice,
  layout: GPUBindGroupLayout,
  buffers: GPUBuffer[],
): GPUBindGroup {
  const entries = buffers.map((buffer, binding) => ({
    binding,
    resource: { buffer },
  }));
  return device.createBindGroup({ layout, entries });
}
