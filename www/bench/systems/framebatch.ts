// framebatch: calls as an app makes them, then `gpu.flush()`.

import { open, type OpenOptions, type Session, type Tensor } from "framebatch";
import { pause } from "../measure.ts";
import { type Call, heldOf, type Op } from "../ops/op.ts";
import type { System } from "./system.ts";

function framebatch(engine: "gpu" | "cpu" | "auto", about: string): System {
  return {
    name: `framebatch-${engine}`,
    about,
    bound: "own",
    async open(op) {
      // A row of a software adapter may take longer than a GPU may owe an answer by default.
      const stallMs = 120_000;
      const gpu = await open({ engine, flush: "manual", stallMs });
      await known(gpu);
      const run =
        op.held?.since === "open" ? resident(gpu, op) : usual(gpu, op);
      return { run, close: () => gpu.dispose() };
    },
  };
}

/** Waits until the devices are measured, as they are from a page's second visit on. */
export async function known(gpu: Session): Promise<void> {
  const until = performance.now() + KNOWN_MS;
  const isMissing = () => gpu.info?.routing?.calibrated === false;
  if (!isMissing()) return;
  await gpu.lerp(Float32Array.of(0), Float32Array.of(1), 0, { flush: "now" });
  while (isMissing() && performance.now() < until) await pause(10);
}

const KNOWN_MS = 5000;

function usual(gpu: Session, op: Op) {
  return (calls: Call[]) => {
    const held = hold(gpu, op, calls);
    const answers = calls.map((call) => op.framebatch(gpu, call, held));
    gpu.flush();
    for (const tensor of held) tensor.dispose();
    return Promise.all(answers);
  };
}

/** Tensors, and where wanted arrays for the results, made by the first run. */
function resident(gpu: Session, op: Op) {
  let held: Tensor[] | undefined;
  let kept: Float32Array[] = [];
  return async (calls: Call[]) => {
    held ??= hold(gpu, op, calls);
    const made = calls.map((call, i) =>
      op.framebatch(gpu, call, held!, kept[i]),
    );
    gpu.flush();
    const answers = await Promise.all(made);
    if (op.held?.into) kept = answers;
    return answers;
  };
}

/** What the calls of a run share, as tensors. */
export const hold = (gpu: Session, op: Op, calls: readonly Call[]): Tensor[] =>
  heldOf(op, calls[0]).map(({ data, shape }) => gpu.tensor(data, shape));

export const framebatchGpu = framebatch("gpu", "this package, on the GPU");
export const framebatchCpu = framebatch("cpu", "this package, in WebAssembly");
export const framebatchAuto = framebatch(
  "auto",
  "this package, left to choose",
);

/** The engine that a system of this file asks for. */
export const engineOf = (system: System) =>
  system.name.replace("framebatch-", "") as OpenOptions["engine"];
