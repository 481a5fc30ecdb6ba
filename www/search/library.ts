// Passages as vectors: indexed one slice after another, and searched meanwhile.
//
// The library makes the calls and shows nothing. Nothing here waits for a pause in typing: what
// is asked in one frame, or while the device is busy, is one batch anyway.

import type { BatchFacts, Session } from "framebatch";
import type { Embedder } from "framebatch/embeddings";
import type { VectorIndex } from "framebatch/search";
import type { Passage } from "./passages.ts";

/** Passages that were embedded together. */
export interface Slice {
  readonly texts: number;
  readonly tokens: number;
}

/** A passage that was found, with its cosine. */
export interface Hit {
  readonly passage: Passage;
  readonly score: number;
}

const RESULTS = 10;

export class Library {
  private readonly index: VectorIndex;
  /** Questions are numbered; what an older one finds is not wanted any more. */
  private asked = 0;
  private answered = 0;
  /** The newest question that has its vector. */
  private question: { vector: Float32Array; number: number } | undefined;

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
    this.question = { vector, number };
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
    vector,
    number,
  }: {
    vector: Float32Array;
    number: number;
  }): Promise<Hit[] | undefined> {
    if (this.size === 0) return [];
    const { ids, scores } = await this.index.search(
      vector,
      Math.min(RESULTS, this.size),
    );
    if (number < this.answered) return undefined;
    this.answered = number;
    // Ids are given in the order of the passages.
    return Array.from(ids, (id, i) => ({
      passage: this.passages[id],
      score: scores[i],
    }));
  }
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
