// What is measured of embedders, and that what they answer is right.

import type { BatchFacts, StorageType } from "framebatch";
import { clocked, pause, repeat, type Terms } from "../measure.ts";
import { medians, quantile, timed } from "../record.ts";
import type { Finding, Measured } from "../run.ts";
import { firstOf } from "./first-page.ts";
import { measureLayer } from "./layer.ts";
import { type Embeds, type Opened, SYSTEMS } from "./systems.ts";
import { equallyLong, short, textOf } from "./texts.ts";

/** Systems stay open, because a model takes longer to load than to measure. */
const opened = new Map<Embeds, Promise<{ of: Opened; error: number }>>();

/** The systems on the GPU that tell of their batches. */
const OURS = SYSTEMS.filter(({ name }) => name.startsWith("framebatch-gpu"));

function workload(
  name: string,
  about: string,
  texts: string[],
  way: "each" | "all" = "all",
): Measured<Embeds> {
  return {
    name,
    about,
    calls: texts.length,
    systems: SYSTEMS,
    async measure(system, terms) {
      const { of, error } = await openedOf(system);
      const times = await repeat(() => clocked(() => of[way](texts)), terms);
      const row = timed(times);
      return { ...row, error, parts: pace(texts, row.median, of) };
    },
  };
}

function pace(texts: string[], ms: number, { bytes }: Opened) {
  const tokens = texts.reduce(
    (sum, text) => sum + text.split(" ").length + 2,
    0,
  );
  return {
    textsPerSecond: (texts.length / ms) * 1000,
    tokensPerSecond: (tokens / ms) * 1000,
    ...(bytes === undefined ? {} : { weightBytes: bytes }),
  };
}

function openedOf(system: Embeds) {
  let open = opened.get(system);
  if (open === undefined) {
    open = system.open().then(async (of) => ({
      of,
      error: await check(system, of),
    }));
    opened.set(system, open);
  }
  return open;
}

/** The largest distance, 1 less the cosine, from the reference; throws beyond the bound. */
export async function check(system: Embeds, of: Opened): Promise<number> {
  const response = await fetch("./models/reference/minilm-reference.jsonl");
  if (!response.ok) throw new Error("the reference is not there");
  const lines = (await response.text()).trim().split("\n");
  const known: { text: string; embedding: number[] }[] = lines.map((line) =>
    JSON.parse(line),
  );
  const answers = await of.each(known.map(({ text }) => text));
  const distances = known.map(({ embedding }, i) =>
    distance(answers[i], embedding),
  );
  const worst = Math.max(...distances);
  if (!(worst <= system.bound)) {
    const at = distances.indexOf(worst);
    throw new Error(`text ${at} is ${worst} away from the reference`);
  }
  return worst;
}

function distance(a: Float32Array, b: readonly number[]): number {
  if (a.length !== b.length) return NaN;
  let [dot, ofA, ofB] = [0, 0, 0];
  for (let i = 0; i < b.length; i++) {
    dot += a[i] * b[i];
    ofA += a[i] * a[i];
    ofB += b[i] * b[i];
  }
  return 1 - dot / Math.sqrt(ofA * ofB);
}

/** Fresh pages, each of which loads the model and embeds once. */
async function measureFirst(system: Embeds, terms: Terms): Promise<Finding> {
  const runs = [];
  for (let n = 0; n < terms.effort.embedded; n++) {
    terms.signal.throwIfAborted();
    runs.push(await firstOf(system.name));
  }
  return {
    ...timed(runs.map(({ first }) => first)),
    parts: {
      load: quantile(
        runs.map(({ load }) => load),
        0.5,
      ),
    },
  };
}

/** Where the time of one text goes, by what the session tells of its batch. */
function trace(tokens: number): Measured<Embeds> {
  const texts = [textOf(tokens, 1)];
  return {
    name: `trace-single-${tokens}`,
    about: `where the time of one text of ${tokens} tokens goes: making the call and sending it, and of the sending what encodes and uploads; the GPU, by its timestamps; the rest of the way back`,
    systems: OURS,
    async measure(system, terms) {
      const { of } = await openedOf(system);
      const facts: BatchFacts[] = [];
      // From here on, not for each run: timestamps come with the batch after it.
      const stop = of.session!.on("batch", (batch) => facts.push(batch));
      try {
        const runs = await repeat(() => traced(of, texts, facts), terms);
        const { total, ...parts } = medians(runs);
        return { ...timed(runs.map((run) => run.total)), parts };
      } finally {
        stop();
      }
    },
  };
}

async function traced({ each }: Opened, texts: string[], facts: BatchFacts[]) {
  facts.length = 0;
  const start = performance.now();
  const answers = each(texts);
  const sent = performance.now() - start;
  await answers;
  const total = performance.now() - start;
  while (facts.length === 0) await pause(1);
  const [{ encodeMs, transferMs, gpuMs, readMs }] = facts;
  if (gpuMs === null) throw new Error("the GPU has no timestamps");
  return { total, sent, encodeMs, transferMs, gpuMs, readMs };
}

/** What the kernels of a layer take, by the GPU's timestamps. */
function layer(texts: number, tokens: number): Measured<Embeds> {
  return {
    name: `layer-${texts}x${tokens}`,
    about: `one layer for ${texts} ${texts === 1 ? "text" : "texts"} of ${tokens} tokens and what is before it, on the GPU alone; parts: milliseconds of each kernel, and 10^12 operations a second`,
    isLong: true,
    systems: OURS,
    measure: ({ name }, terms) =>
      measureLayer([texts, tokens], name.split("-")[2] as StorageType, terms),
  };
}

export const WORKLOADS: readonly Measured<Embeds>[] = [
  workload(
    "concurrent-64",
    "64 texts of 8 to 32 tokens, a call for each, all at once",
    short(64),
    "each",
  ),
  workload("array-64", "the same texts as one array", short(64)),
  workload("single-8", "one text of 8 tokens", [textOf(8, 1)], "each"),
  workload("single-128", "one text of 128 tokens", [textOf(128, 1)], "each"),
  workload(
    "32x128",
    "32 texts of 128 tokens, as one array",
    equallyLong(32, 128),
  ),
  workload(
    "128x32",
    "128 texts of 32 tokens, as one array",
    equallyLong(128, 32),
  ),
  workload(
    "128x128",
    "128 texts of 128 tokens, as one array",
    equallyLong(128, 128),
  ),
  {
    name: "first-embedding",
    about:
      "the first embedding in a fresh page, the model loaded; parts.load is the loading, from this machine",
    calls: 1,
    systems: SYSTEMS,
    measure: measureFirst,
  },
  trace(8),
  trace(128),
  layer(1, 16),
  layer(128, 128),
];
