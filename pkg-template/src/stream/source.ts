// The sources of a stream: arrays, iterables, async iterables and readable streams.
//
// Each source gets the same face here; what is no source is refused. Nothing is taken
// before it is asked for, and no chunk is looked at.

import { invalid, kindOf } from "../checks/errors.js";

/** What chunks may come from. */
export type StreamSource<Chunk> =
  ReadableStream<Chunk> | AsyncIterable<Chunk> | Iterable<Chunk>;

/** A source while it is read. */
export interface Chunks<Chunk> {
  /** How many there are, where that is known. */
  readonly total: number | undefined;
  next(): PromiseLike<IteratorResult<Awaited<Chunk>, unknown>>;
  /** Says that no more are wanted. */
  cancel(reason: unknown): Promise<void>;
}

/** Begins to read a source. Throws `invalid-input` for what is none. */
export function chunksOf<Chunk>(
  about: string,
  source: StreamSource<Chunk>,
): Chunks<Chunk> {
  if (typeof source === "object" && source !== null) {
    if ("getReader" in source) return ofReader(source.getReader());
    if (Symbol.asyncIterator in source)
      return ofIterator(source[Symbol.asyncIterator](), undefined);
    // The elements of a typed array are numbers, which nobody streams.
    if (Symbol.iterator in source && !ArrayBuffer.isView(source)) {
      const total = Array.isArray(source) ? source.length : undefined;
      return ofIterator(source[Symbol.iterator](), total);
    }
  }
  throw invalid(
    about,
    `source must be an array of chunks, an iterable, an async iterable or a ReadableStream, got ${kindOf(source)}`,
  );
}

function ofReader<Chunk>(
  reader: ReadableStreamDefaultReader<Chunk>,
): Chunks<Chunk> {
  return {
    total: undefined,
    next: () => reader.read() as Promise<IteratorResult<Awaited<Chunk>>>,
    async cancel(reason) {
      const canceled = reader.cancel(reason);
      reader.releaseLock();
      await canceled;
    },
  };
}

function ofIterator<Chunk>(
  iterator: AsyncIterator<Chunk> | Iterator<Chunk>,
  total: number | undefined,
): Chunks<Chunk> {
  return {
    total,
    async next() {
      const { done, value } = await iterator.next();
      try {
        return { done, value: await value } as IteratorResult<Awaited<Chunk>>;
      } catch (error) {
        // The chunk failed and not its iterator, which nobody else closes.
        await ignored(() => iterator.return?.());
        throw error;
      }
    },
    async cancel() {
      await iterator.return?.();
    },
  };
}

/** Runs a function and ignores what it throws: another error is being told. */
async function ignored(work: () => unknown): Promise<void> {
  try {
    await work();
  } catch {}
}
