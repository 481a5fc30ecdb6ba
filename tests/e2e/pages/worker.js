// A session in a dedicated worker. An import map does not reach here.

import { during } from "/counting.js";
import { lerpFrame, lerps } from "/workload.js";
import { open } from "/pkg/dist/index.js";

const gpu = await open({ engine: "gpu" });
const inputs = lerps(1000, 200);
const { value, counts } = await during(() => lerpFrame(gpu, inputs));
const { engine } = gpu.info;
await gpu.dispose();
postMessage({
  error: value,
  submits: counts.submits,
  readMaps: counts.readMaps,
  engine,
});
