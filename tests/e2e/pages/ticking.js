// A worker that makes a call after the other and tells of each answer.

import { open } from "/pkg/dist/index.js";

const gpu = await open({ engine: "gpu" });
for (let value = 1; ; value++) {
  const [answer] = await gpu.lerp(
    new Float32Array([0]),
    new Float32Array([value * 2]),
    0.5,
  );
  postMessage(answer === value);
}
