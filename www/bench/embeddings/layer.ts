// What the kernels of an encoder's layer take, each by itself: passes that end behind
// each of them, and by how much the GPU's own timestamps differ from one to the next.
// Passes go by turns, and of each the fastest counts: a GPU's clock may be anything
// after a pause, and differences mean something at one clock alone. The sizes are those
// of all-MiniLM-L6-v2, the weights are drawn.

import { open, type Session, type StorageType, type Tensor } from "framebatch";
import { pause, repeat, type Terms } from "../measure.ts";
import { floats, sequence } from "../ops/inputs.ts";
import { timed } from "../record.ts";
import type { Finding } from "../run.ts";

const [HIDDEN, INNER, HEADS, WORDS] = [384, 1536, 12, 30_522];
const EPSILON = 1e-12;

/** A kernel: what it makes of `x`, where `skip` is what the layer's half began with. */
interface Step {
  readonly name: string;
  /** Multiplications and additions for `tokens` rows of texts that are `long`. */
  readonly operations?: (tokens: number, long: number) => number;
  readonly of: (x: Tensor, skip: Tensor) => Tensor;
}

/** A layer for `texts` of `long` tokens; parts: milliseconds of each kernel, and 10^12 operations a second. */
export async function measureLayer(
  [texts, long]: readonly [texts: number, long: number],
  dtype: StorageType,
  terms: Terms,
): Promise<Finding> {
  const gpu = await open({ engine: "gpu", flush: "manual", stallMs: 60_000 });
  try {
    const { embed, steps } = layer(gpu, dtype);
    const ids = Array.from({ length: texts }, (_, text) =>
      Uint32Array.from(
        { length: long },
        (_, i) => (text * 7919 + i * 104_729) % WORDS,
      ),
    );
    const round = async () => {
      const times = [];
      for (let count = 0; count <= steps.length; count += 1) {
        times.push(await gpuMs(gpu, ids, embed, steps.slice(0, count)));
      }
      return times;
    };
    const rounds = await repeat(round, terms);
    const least = rounds[0].map((_, i) =>
      Math.min(...rounds.map((times) => times[i])),
    );
    const parts: Record<string, number> = { embed: least[0] };
    steps.forEach(({ name, operations }, i) => {
      const ms = least[i + 1] - least[i];
      parts[name] = ms;
      const count = operations?.(texts * long, long);
      if (count !== undefined) parts[`${name} Top/s`] = count / (ms * 1e9);
    });
    return { ...timed(rounds.map((times) => times.at(-1)!)), parts };
  } finally {
    await gpu.dispose();
  }
}

/** What the GPU took for a pass over all texts that ends behind `steps`. */
async function gpuMs(
  gpu: Session,
  ids: readonly Uint32Array<ArrayBuffer>[],
  embed: (ids: Uint32Array<ArrayBuffer>) => Tensor,
  steps: readonly Step[],
): Promise<number> {
  let ms: number | undefined;
  const stop = gpu.on("batch", (facts) => {
    ms = (ms ?? 0) + (facts.gpuMs ?? NaN);
  });
  const answers = ids.map((of) => {
    let x = embed(of);
    let skip = x;
    for (const step of steps) {
      x = step.of(x, skip);
      if (step.name.endsWith("norm")) skip = x;
    }
    // A row is enough to see that it was computed.
    return x.slice([0, 1]).read();
  });
  gpu.flush();
  await Promise.all(answers);
  while (ms === undefined) await pause(1);
  stop();
  if (Number.isNaN(ms)) throw new Error("the GPU has no timestamps");
  return ms;
}

function layer(gpu: Session, dtype: StorageType) {
  const next = sequence();
  const matrix = (rows: number, columns: number) => {
    // The factor keeps the length of rows.
    const drawn = floats(rows * columns, next).map(
      (x) => x * Math.sqrt(3 / columns),
    );
    return gpu.tensor(drawn, [rows, columns], { dtype });
  };
  const vector = (length: number) => gpu.tensor(floats(length, next), [length]);
  /** x · weightᵀ + bias, as files have them. */
  const linear = (from: number, to: number) => {
    const [weight, bias] = [matrix(to, from), vector(to)];
    return (x: Tensor) => x.matmul(weight.transpose()).add(bias);
  };
  const norm = () => {
    const [weight, bias] = [vector(HIDDEN), vector(HIDDEN)];
    return (x: Tensor) =>
      x.layerNorm({ epsilon: EPSILON }).mul(weight).add(bias);
  };
  const product = (from: number, to: number) => (tokens: number) =>
    2 * tokens * from * to;
  const words = matrix(WORDS, HIDDEN);
  const first = norm();
  const [qkv, out, up, down] = [
    linear(HIDDEN, 3 * HIDDEN),
    linear(HIDDEN, HIDDEN),
    linear(HIDDEN, INNER),
    linear(INNER, HIDDEN),
  ];
  const [seen, last] = [norm(), norm()];
  const steps: Step[] = [
    {
      name: "queries, keys, values",
      operations: product(HIDDEN, 3 * HIDDEN),
      of: qkv,
    },
    {
      name: "attention",
      operations: (tokens, long) => 4 * tokens * long * HIDDEN,
      of: (x) => {
        const [q, k, v] = [0, 1, 2].map((part) =>
          x.slice([], [part * HIDDEN, (part + 1) * HIDDEN]),
        );
        return q.attention(k, v, { heads: HEADS });
      },
    },
    {
      name: "out",
      operations: product(HIDDEN, HIDDEN),
      of: (x, skip) => out(x).add(skip),
    },
    { name: "first norm", of: seen },
    {
      name: "up, gelu",
      operations: product(HIDDEN, INNER),
      of: (x) => up(x).gelu(),
    },
    {
      name: "down",
      operations: product(INNER, HIDDEN),
      of: (x, skip) => down(x).add(skip),
    },
    { name: "second norm", of: last },
  ];
  return {
    embed: (ids: Uint32Array<ArrayBuffer>) =>
      first(words.gather(gpu.tensor(ids, [ids.length], { keep: false }))),
    steps,
  };
}
