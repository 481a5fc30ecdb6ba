// Searches of an index: the vectors stay on the device, queries come, and the ten best
// of each go back. The plain loop keeps its vectors at length 1 too.

import { open } from "framebatch";
import "framebatch/search";
import { clocked, repeat, type Terms } from "../measure.ts";
import { floats as drawn, sequence } from "../ops/inputs.ts";
import { timed } from "../record.ts";
import type { Finding } from "../run.ts";
import { engineOf } from "../systems/framebatch.ts";
import type { System } from "../systems/system.ts";

const VECTORS = 100_000;
const DIM = 384;
const BEST = 10;
/** Scores are at most 1, and sums of this many products. */
const BOUND = DIM * 2 ** -24;

/** The ids of the best, and their scores. */
interface Found {
  readonly ids: Uint32Array;
  readonly scores: Float32Array;
}

interface Searcher {
  run(queries: readonly Float32Array[]): Promise<Found[]>;
  close(): void | Promise<void>;
}

export async function measureSearch(
  count: number,
  system: System,
  terms: Terms,
): Promise<Finding> {
  const vectors = floats(VECTORS, 1);
  const queries = Array.from({ length: count }, (_, i) => floats(1, 2 + i));
  const isLoop = system.name === "cpu-loop";
  const searcher = isLoop ? loop(vectors) : await index(vectors, system);
  try {
    const found = await searcher.run(queries);
    // The others are computed as the first is.
    const error = worst(vectors, queries[0], found[0]);
    const times = await repeat(
      () => clocked(() => searcher.run(queries)),
      terms,
    );
    return { ...timed(times), error };
  } finally {
    await searcher.close();
  }
}

const floats = (rows: number, seed: number): Float32Array =>
  drawn(rows * DIM, sequence(seed));

async function index(vectors: Float32Array, system: System): Promise<Searcher> {
  const gpu = await open({ engine: engineOf(system), flush: "manual" });
  const index = gpu.index(vectors, { dim: DIM });
  return {
    run(queries) {
      const found = queries.map((query) => index.search(query, BEST));
      gpu.flush();
      return Promise.all(found);
    },
    close: () => gpu.dispose(),
  };
}

function loop(vectors: Float32Array): Searcher {
  const scaled = vectors.slice();
  for (let at = 0; at < scaled.length; at += DIM) {
    scale(scaled.subarray(at, at + DIM));
  }
  return {
    run: async (queries) => queries.map((query) => best(scaled, query)),
    close() {},
  };
}

function scale(vector: Float32Array): Float32Array {
  let squares = 0;
  for (const x of vector) squares += x * x;
  const length = Math.sqrt(squares);
  for (let i = 0; i < vector.length; i++) vector[i] /= length;
  return vector;
}

/** Keeps the best so far in order, which few vectors change. */
function best(vectors: Float32Array, query: Float32Array): Found {
  const q = scale(query.slice());
  const ids = new Uint32Array(BEST);
  const scores = new Float32Array(BEST).fill(-Infinity);
  for (let id = 0, at = 0; at < vectors.length; id++, at += DIM) {
    let score = 0;
    for (let i = 0; i < DIM; i++) score += vectors[at + i] * q[i];
    if (score <= scores[BEST - 1]) continue;
    let place = BEST - 1;
    for (; place > 0 && scores[place - 1] < score; place--) {
      scores[place] = scores[place - 1];
      ids[place] = ids[place - 1];
    }
    scores[place] = score;
    ids[place] = id;
  }
  return { ids, scores };
}

/** How far scores are from those of a sort in float64; throws where it is too far. */
function worst(
  vectors: Float32Array,
  query: Float32Array,
  { ids, scores }: Found,
): number {
  const dot = (a: Float32Array, b: Float32Array): number =>
    a.reduce((sum, x, i) => sum + x * b[i], 0);
  const ofQuery = Math.sqrt(dot(query, query));
  const exact = new Float64Array(VECTORS);
  for (let id = 0; id < VECTORS; id++) {
    const vector = vectors.subarray(id * DIM, (id + 1) * DIM);
    const by = Math.sqrt(dot(vector, vector)) * ofQuery;
    exact[id] = dot(vector, query) / by;
  }
  const sorted = exact.slice().sort().reverse();
  let worst = 0;
  scores.forEach((score, i) => {
    const off = Math.max(
      Math.abs(score - exact[ids[i]]),
      Math.abs(score - sorted[i]),
    );
    if (!(off <= BOUND)) throw new Error(`result ${i} is wrong by ${off}`);
    worst = Math.max(worst, off);
  });
  return worst;
}
