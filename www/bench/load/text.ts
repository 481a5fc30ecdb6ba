// One text at a time, each awaited before the next one is asked for.

import { open, type OpenOptions, type Session } from "framebatch";
import { clocked, type Terms } from "../measure.ts";
import { textOf } from "../embeddings/texts.ts";
import type { Finding } from "../run.ts";
import { known } from "../systems/framebatch.ts";
import { awaited } from "./awaited.ts";
import { drawnEncoder } from "./drawn-encoder.ts";
import type { Answering } from "./system.ts";
import { summary } from "./trace.ts";

/** How far from the CPU's answer another device's may be, for floats up to 1. */
const BOUND = 1e-4;

/** What the CPU answers to a text, by the text. */
const expected = new Map<string, Float32Array>();

export async function measureText(
  tokens: number,
  { options }: Answering,
  { signal, effort }: Terms,
): Promise<Finding> {
  const right = await onCpu(textOf(tokens, 0));
  return embedding(options!, async (embed, gpu) => {
    await known(gpu);
    const error = difference(await embed(textOf(tokens, 0)), right);
    const times = await awaited(effort.awaited, signal, (at) =>
      clocked(() => embed(textOf(tokens, at))),
    );
    return { ...summary(times).timed, error };
  });
}

type Embed = (text: string) => Promise<Float32Array>;

/** Runs `use` with an encoder in a session of its own. */
async function embedding<Result>(
  options: OpenOptions,
  use: (embed: Embed, gpu: Session) => Promise<Result>,
): Promise<Result> {
  await import("framebatch/embeddings");
  const gpu = await open(options);
  try {
    const embedder = await gpu.embedder(drawnEncoder());
    return await use((text) => embedder.embed(text), gpu);
  } finally {
    await gpu.dispose();
  }
}

async function onCpu(text: string): Promise<Float32Array> {
  let answer = expected.get(text);
  if (answer === undefined) {
    answer = await embedding({ engine: "cpu" }, (embed) => embed(text));
    expected.set(text, answer);
  }
  return answer;
}

function difference(answer: Float32Array, right: Float32Array): number {
  const worst = right.reduce(
    (most, x, i) => Math.max(most, Math.abs(x - answer[i])),
    0,
  );
  // Written so that NaN counts as wrong.
  if (!(worst <= BOUND)) throw new Error(`a text is wrong by ${worst}`);
  return worst;
}
