// Passages as vectors: indexed one slice after another, and searched meanwhile.
//
// The library makes the calls and shows nothing. Nothing here waits for a pause in typing: what
// is asked in one frame, or while the device is busy, is one batch anyway.

import type { BatchFacts, Session } from "framebatch";
import type { Embedder, Reranker } from "framebatch/embeddings";
import type { VectorIndex } from "framebatch/search";
import type { Passage } from "./passages.ts";

/** Passages that were embedded together. */
export interface Slice {
  readonly texts: number;
  readonly tokens: number;
}

/** A passage that was found, with its cosine or a reranker's score. */
export interface Hit {
  readonly passage: Passage;
  readonly score: number;
  /** Its place before a reranker gave it another, from 1 on; undefined where none did. */
  readonly before: number | undefined;
}

/** A question with its vector. */
interface Question {
  readonly text: string;
  readonly vector: Float32Array;
  readonly number: number;
}

const RESULTS = 10;
/** Passages that a reranker reads. */
const CANDIDATES = 30;

export class Library {
  private readonly index: VectorIndex;
  /** Questions are numbered; what an older one finds is not wanted any more. */
  private asked = 0;
  private answered = 0;
  /** The newest question that has its vector. */
  private question: Question | undefined;
  /** Reads what was found together with the question, and orders it anew. */
  reranker: Reranker | undefined;

  constructor(
    gpu: Session,
    private readonly embedder: Embedder,
    private readonly passages: readonly Passage[],
  ) {
    this.index = gpu.index({ dim: embedder.info.dimensions });
  }

  /** Passages that can be found. */
  get size(): number {
    return this.index.size;
  }

  /** Embeds every passage behind all questions; `tell` hears of slices that can be found. */
  async fill(signal: AbortSignal, tell: (slice: Slice) => void): Promise<void> {
    const { index, embedder } = this;
    let [done, tokens, told] = [0, 0, 0];
    let slice: Float32Array[] = [];
    const vectors = embedder.embedMany(
      this.passages.map(({ text }) => text),
      {
        ...prompt(embedder, ["passage", "document"]),
        priority: "low",
        signal,
        onProgress: (progress) => ({ done, tokens } = progress),
      },
    );
    for await (const vector of vectors) {
      slice.push(vector);
      // Progress comes before the vectors of its slice.
      if (index.size + slice.length < done) continue;
      index.add(endToEnd(slice));
      tell({ texts: slice.length, tokens: tokens - told });
      told = tokens;
      slice = [];
    }
  }

  /**
   * The passages that are nearest to a question in meaning; undefined where a newer
   * question was answered before. `metrics` hears of the batch that the question was in.
   */
  async ask(
    question: string,
    metrics: (facts: BatchFacts) => void,
  ): Promise<Hit[] | undefined> {
    const number = ++this.asked;
    const vector = await this.embedder.embed(question, {
      ...prompt(this.embedder, ["query"]),
      priority: "high",
      onMetrics: metrics,
    });
    if (number < (this.question?.number ?? this.answered)) return undefined;
    this.question = { text: question, vector, number };
    return this.find(this.question);
  }

  /** What is found for the last question among the passages that there are now. */
  async askAgain(): Promise<Hit[] | undefined> {
    return this.question && this.find(this.question);
  }

  /** There is no question any more: whatever is on its way is not wanted. */
  forget(): void {
    this.question = undefined;
    this.answered = ++this.asked;
  }

  dispose(): void {
    this.index.dispose();
  }

  private async find({
    text,
    vector,
    number,
  }: Question): Promise<Hit[] | undefined> {
    if (this.size === 0) return [];
    const { reranker } = this;
    const wanted = reranker === undefined ? RESULTS : CANDIDATES;
    const { ids, scores } = await this.index.search(
      vector,
      Math.min(wanted, this.size),
    );
    // Ids are given in the order of the passages.
    let hits: Hit[] = Array.from(ids, (id, i) => ({
      passage: this.passages[id],
      score: scores[i],
      before: undefined,
    }));
    if (reranker !== undefined) hits = await reranked(reranker, text, hits);
    if (number < this.answered) return undefined;
    this.answered = number;
    return hits;
  }
}

/** The best of what was found, by what a model says that reads question and passage together. */
async function reranked(
  reranker: Reranker,
  question: string,
  hits: readonly Hit[],
): Promise<Hit[]> {
  const texts = hits.map(({ passage }) => passage.text);
  const ranking = await reranker.rank(question, texts, {
    topN: RESULTS,
    priority: "high",
  });
  return ranking.map(({ index, score }) => ({
    passage: hits[index].passage,
    score,
    before: index + 1,
  }));
}

/** The model's own prompt of one of these names, where it has one. */
function prompt({ info }: Embedder, names: readonly string[]) {
  const name = names.find((name) => info.prompts.includes(name));
  return name === undefined ? {} : { prompt: name };
}

function endToEnd(vectors: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(vectors.length * vectors[0].length);
  vectors.forEach((vector, i) => out.set(vector, i * vector.length));
  return out;
}
