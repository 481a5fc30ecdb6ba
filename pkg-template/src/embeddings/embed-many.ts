// Embeds many texts, taken from a source in slices, a few of which are in flight.
//
// Slices go through a stream like that of `gpu.stream`. How a text is split into tokens
// and embedded is known in `embedder.ts`.

import { checkFunction, checkOptions } from "../checks/options.js";
import { checkPriority, type Priority } from "../checks/priority.js";
import { nextTask, hostEnvironment } from "../platform/environment.js";
import { chunksOf, type StreamSource } from "../stream/source.js";
import { Stream, type Streaming } from "../stream/stream.js";

/** Tokens of a slice: what a GPU is busy with, and its memory holds. */
export const MOST_TOKENS = 16_384;

/** The same at low priority, where the session cuts further: vectors come as they are there. */
const LOW_TOKENS = 1024;

/** Tokens that texts are split into before a page gets its turn: less than a millisecond. */
const AT_ONCE = 1024;

/** How far `embedMany` has come. */
export interface EmbedProgress {
  /** Texts whose vectors were handed over. */
  done: number;
  /** Texts in all, where the source is an array. */
  total: number | undefined;
  /** Tokens of those that are done. */
  tokens: number;
}

/** What `embedMany` takes last. All of it is optional. */
export interface EmbedManyOptions {
  /**
   * As of every call: `low` fills what others leave, and `high` goes before all that waits.
   * Texts go in slices of 16,384 tokens; at `low` of 1,024, which the session cuts further,
   * or joins, by what they take. Default: `normal`.
   */
  priority?: Priority;
  /** Ends it: it rejects with `signal.reason`. Default: none. */
  signal?: AbortSignal;
  /** Hears of each slice before its vectors are handed over. Default: none. */
  onProgress?: (progress: EmbedProgress) => void;
  /** The name of a prompt of the model, which stands before each text. Default: the model's. */
  prompt?: string;
  /** Whether a text beyond the model's limit is cut; otherwise it rejects. Default: true. */
  truncate?: boolean;
}

const NAMES: Record<keyof EmbedManyOptions, true> = {
  priority: true,
  signal: true,
  onProgress: true,
  prompt: true,
  truncate: true,
};

/** What `embedMany` asks of its embedder. */
export interface Embeds {
  readonly streams: Streaming;
  /** A text's tokens. Throws for what is none, or too long. */
  split(text: unknown, place: number): Uint32Array;
  embed(text: string, ids: Uint32Array): Promise<Float32Array>;
  /** Sends what was called so far. */
  flush(): void;
}

/** Texts that are embedded together. */
interface Slice {
  readonly texts: string[];
  readonly ids: Uint32Array[];
  tokens: number;
}

interface Done {
  readonly slice: Slice;
  readonly vectors: Float32Array[];
}

/**
 * The vectors of `embedMany`, in the order of their texts: awaited, all of them; gone
 * through by `for await`, one by one, and texts are taken as vectors are. Nothing is
 * taken before either.
 */
export class Embeddings
  implements AsyncIterable<Float32Array>, PromiseLike<Float32Array[]>
{
  private readonly slices: AsyncIterable<Float32Array[]>;
  private all: Promise<Float32Array[]> | undefined;

  constructor(
    source: StreamSource<string>,
    embeds: Embeds,
    options: EmbedManyOptions = {},
  ) {
    check(options);
    this.slices = slicesOf(source, embeds, options);
  }

  /** All vectors. */
  then<Value = Float32Array[], Other = never>(
    resolved?: ((vectors: Float32Array[]) => Value | PromiseLike<Value>) | null,
    rejected?: ((reason: unknown) => Other | PromiseLike<Other>) | null,
  ): Promise<Value | Other> {
    this.all ??= collect(this.slices);
    return this.all.then(resolved, rejected);
  }

  /** One vector after the other. It can be gone through once. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Float32Array, void> {
    for await (const vectors of this.slices) yield* vectors;
  }
}

async function collect(
  slices: AsyncIterable<Float32Array[]>,
): Promise<Float32Array[]> {
  const all: Float32Array[] = [];
  for await (const vectors of slices) all.push(...vectors);
  return all;
}

function slicesOf(
  source: StreamSource<string>,
  embeds: Embeds,
  options: EmbedManyOptions,
): AsyncIterable<Float32Array[]> {
  const { priority = "normal", signal, onProgress } = options;
  const { streams } = embeds;
  const environment = hostEnvironment();
  const most = priority === "low" ? LOW_TOKENS : MOST_TOKENS;
  const chunks = chunksOf("embedMany", source);
  const progress = { done: 0, total: chunks.total, tokens: 0 };

  let isSpent = false;
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    if (!isSpent) await (stopped ??= chunks.cancel(signal?.reason));
  };

  async function* cut(): AsyncGenerator<Slice, void> {
    let place = 0;
    let slice: Slice = { texts: [], ids: [], tokens: 0 };
    let end: { error: unknown } | undefined;
    let turn = 0;
    try {
      while (!isSpent && end === undefined) {
        try {
          if (turn >= AT_ONCE) {
            await nextTask(environment);
            turn = 0;
          }
          const { done, value } = await chunks.next();
          isSpent = done === true;
          if (isSpent) break;
          const ids = embeds.split(value, place);
          place += 1;
          if (slice.tokens > 0 && slice.tokens + ids.length > most) {
            yield slice;
            slice = { texts: [], ids: [], tokens: 0 };
          }
          slice.texts.push(value as string);
          slice.ids.push(ids);
          slice.tokens += ids.length;
          turn += ids.length;
        } catch (error) {
          end = { error };
        }
      }
      // Texts in front of an error are embedded all the same.
      if (slice.tokens > 0) yield slice;
      if (end !== undefined) throw end.error;
    } finally {
      await stop();
    }
  }

  // A generator that waits for a text ends only once there is one, so `return` cancels the source itself.
  const slices = cut();
  const sliced = {
    [Symbol.asyncIterator]: () => sliced,
    next: () => slices.next(),
    async return() {
      await stop();
      return slices.return();
    },
  };

  let isFirst = true;

  const work = async (
    slice: Slice,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<Done> => {
    // The CPU answers before a flush returns: without tasks in between, all slices
    // would be one long task of the page. The first slice waits for nothing.
    const goesOn = !isFirst;
    isFirst = false;
    if (goesOn && priority !== "high") await nextTask(environment);
    signal.throwIfAborted();
    const calls = slice.texts.map((text, i) =>
      embeds.embed(text, slice.ids[i]),
    );
    // Each slice is a batch of its own; calls of other priorities go by themselves.
    if (priority === "normal") embeds.flush();
    return { slice, vectors: await Promise.all(calls) };
  };

  async function* run(): AsyncGenerator<Float32Array[], void> {
    const depth = priority === "low" ? MOST_TOKENS / LOW_TOKENS : 3;
    const terms = signal === undefined ? { depth } : { depth, signal };
    const stream = new Stream("embedMany", sliced, work, streams, terms);
    for await (const { slice, vectors } of stream) {
      progress.done += vectors.length;
      progress.tokens += slice.tokens;
      onProgress?.({ ...progress });
      yield vectors;
    }
  }
  return run();
}

function check(options: EmbedManyOptions): void {
  const about = "embedMany";
  checkOptions(about, options, NAMES);
  const { priority, onProgress } = options;
  checkPriority(about, priority);
  checkFunction(about, "onProgress", onProgress);
}
