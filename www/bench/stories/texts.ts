// Texts, by an encoder with the sizes of all-MiniLM-L6-v2 and drawn weights: all asked for
// together, and each awaited before the next one. Nothing is fetched, so there is no rival:
// the page of embeddings measures one, with a real model.

import { open } from "framebatch";
import { short } from "../embeddings/texts.ts";
import { drawnEncoder } from "../load/drawn-encoder.ts";
import { clocked, repeat, type Terms } from "../measure.ts";
import { timed } from "../record.ts";
import type { Finding } from "../run.ts";
import { framebatchAuto, known } from "../systems/framebatch.ts";
import type { System } from "../systems/system.ts";

/** Texts that somebody asks for at once: the passages of a page, say. */
export const TEXTS = 16;

/** The same package, used as an API of single calls. */
export const framebatchAwaited: System = {
  ...framebatchAuto,
  name: "framebatch-awaited",
  about: "this package, each call awaited before the next one is made",
};

export async function measureTexts(
  system: System,
  terms: Terms,
): Promise<Finding> {
  await import("framebatch/embeddings");
  const gpu = await open({ engine: "auto", stallMs: 120_000 });
  try {
    const embedder = await gpu.embedder(drawnEncoder());
    const texts = short(TEXTS);
    const embed = (text: string) => embedder.embed(text);
    const together = () => Promise.all(texts.map(embed));
    const awaited = async () => {
      const vectors: Float32Array[] = [];
      for (const text of texts) vectors.push(await embed(text));
      return vectors;
    };
    await known(gpu);
    const error = worst(await together(), await awaited());
    const work = system === framebatchAwaited ? awaited : together;
    return { ...timed(await repeat(() => clocked(work), terms)), error };
  } finally {
    await gpu.dispose();
  }
}

/** Texts are computed alone or together, on the CPU or the GPU: within this of each other. */
const BOUND = 5e-3;

function worst(some: readonly Float32Array[], others: readonly Float32Array[]) {
  let most = 0;
  some.forEach((vector, at) =>
    vector.forEach((x, i) => {
      const difference = Math.abs(x - others[at][i]);
      // Written so that NaN counts as wrong.
      if (!(difference <= BOUND))
        throw new Error(`text ${at} is off by ${difference}`);
      most = Math.max(most, difference);
    }),
  );
  return most;
}
