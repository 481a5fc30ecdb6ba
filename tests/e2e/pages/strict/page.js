// What a strict page loads: the package, and nothing inline.

import { open } from "/pkg/dist/index.js";

const violations = [];
addEventListener("securitypolicyviolation", ({ violatedDirective }) =>
  violations.push(violatedDirective),
);

window.gpu = await open({ engine: "gpu" });
window.halfway = async () => {
  const results = await Promise.all([
    gpu.lerp(new Float32Array([0, 10]), new Float32Array([1, 20]), 0.5),
    gpu.states.lerp(new Uint8Array(16).fill(0x80), new Uint8Array(16), 0),
  ]);
  return results.map((result) => Array.from(result));
};
window.found = {
  values: await halfway(),
  isolated: crossOriginIsolated,
  engine: gpu.info.engine,
  violations,
};
