// TensorFlow.js on its WebGPU backend: a call's tensors, their operations, `data()`.
//
// Unless told otherwise, the backend computes some operations on small tensors (fewer than
// 1,000 elements) in JavaScript. `tfjs` leaves that on; `tfjs-gpu` turns it off, so
// that every call reaches the GPU.

import type { Tensor } from "@tensorflow/tfjs-core";
import { type Call, heldOf, type Op, type TensorFlow } from "../ops/op.ts";
import type { System } from "./system.ts";

/** The limits that the backend asks for. */
const LIMITS = [
  "maxComputeWorkgroupStorageSize",
  "maxComputeWorkgroupsPerDimension",
  "maxStorageBufferBindingSize",
  "maxBufferSize",
  "maxComputeWorkgroupSizeX",
  "maxComputeInvocationsPerWorkgroup",
] as const;

function tfjs(name: string, about: string, forward: boolean): System {
  return {
    name,
    about,
    bound: "builtin",
    async open(op) {
      const { tfjs: make } = op;
      if (make === undefined) throw new Error(`it has no ${op.name}`);
      const { tf, device } = await startTfjs(forward);
      const answer = (call: Call, held: Tensor[]) =>
        answerByTfjs(tf, make, call, held);
      let kept: Tensor[] | undefined;
      return {
        run(calls) {
          const held = kept ?? holdInTfjs(tf, op, calls);
          if (op.held?.since === "open") kept = held;
          const answers = calls.map((call) => answer(call, held));
          if (kept === undefined) tf.dispose(held);
          return Promise.all(answers);
        },
        close() {
          tf.removeBackend("webgpu");
          device.destroy();
        },
      };
    },
  };
}

/** What the calls share, as tensors. */
export const holdInTfjs = (
  tf: TensorFlow,
  op: Op,
  calls: readonly Call[],
): Tensor[] =>
  heldOf(op, calls[0]).map(({ data, shape }) => tf.tensor(data, shape));

/** One call: its tensors live until its answer is there. */
export async function answerByTfjs(
  tf: TensorFlow,
  make: NonNullable<Op["tfjs"]>,
  call: Call,
  held: Tensor[],
): Promise<Float32Array> {
  const tensor = tf.tidy(() => make(tf, call, held));
  const answer = await tensor.data<"float32">();
  tensor.dispose();
  return answer;
}

/** The library on a device that can be destroyed; `forward` leaves small tensors to JavaScript. */
export async function startTfjs(forward: boolean) {
  const tf = await import("@tensorflow/tfjs-core");
  const [{ WebGPUBackend }] = await Promise.all([
    import("@tensorflow/tfjs-backend-webgpu"),
    import("@tensorflow/tfjs-core/dist/public/chained_ops/register_all_chained_ops"),
  ]);
  tf.env().set("WEBGPU_CPU_FORWARD", forward);
  // What the import registered would make a device that nobody can destroy.
  if (tf.findBackendFactory("webgpu")) tf.removeBackend("webgpu");
  const adapter = await navigator.gpu?.requestAdapter({
    powerPreference: "high-performance",
  });
  if (!adapter) throw new Error("no WebGPU adapter");
  const { limits, info } = adapter;
  const requiredLimits = Object.fromEntries(
    LIMITS.map((name) => [name, limits[name]]),
  );
  const device = await adapter.requestDevice({ requiredLimits });
  tf.registerBackend("webgpu", () => new WebGPUBackend(device, info));
  await tf.setBackend("webgpu");
  return { tf, device };
}

export const tfjsDefault = tfjs(
  "tfjs",
  "TensorFlow.js 4.22 WebGPU, as it comes: small tensors stay in JavaScript",
  true,
);
export const tfjsGpu = tfjs(
  "tfjs-gpu",
  "TensorFlow.js 4.22 WebGPU, every operation on the GPU",
  false,
);
