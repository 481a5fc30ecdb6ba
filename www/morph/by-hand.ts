// The clip as one writes it by hand in WebGPU.

import type { Kernel } from "../ways/per-call.ts";
import { FORMS, TILE, WIDTH } from "./field.ts";

const key = (at: number) =>
  `vec4f(${FORMS.values.slice(at * WIDTH, (at + 1) * WIDTH).join()})`;

/** Gives a component's rows for its times. */
export const SAMPLE: Kernel = {
  code: /* wgsl */ `
@group(0) @binding(0) var<storage, read> times: array<f32>;
@group(0) @binding(1) var<storage, read_write> rows: array<vec4f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&rows)) { return; }
  let t = times[id.x] * 2.0;
  rows[id.x] = select(mix(${key(1)}, ${key(2)}, t - 1.0), mix(${key(0)}, ${key(1)}, t), t < 1.0);
}
`,
  input: TILE,
  output: TILE * WIDTH,
};
