// The calls of the slerps, as one writes them by hand in WebGPU.

import { PerCall } from "../../ways/per-call.ts";
import type { Slerp } from "./component.ts";

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

export async function openSlerp(): Promise<Slerp> {
  const calls = await PerCall.open({ code: CODE, input: 12, output: 4 });
  return (from, to, t) => {
    const floats = new Float32Array(12);
    floats.set(from, 0);
    floats.set(to, 4);
    floats[8] = t;
    return calls.ask(floats, new Float32Array(4));
  };
}
