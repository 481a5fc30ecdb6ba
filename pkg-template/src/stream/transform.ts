// A stream as a pair for `pipeThrough`: chunks are written, results are read.
//
// Ends and errors go both ways: what breaks one side breaks the other.

import {
  type ChunkFunction,
  type Streaming,
  Stream,
  type StreamOptions,
} from "./stream.js";

/** Makes the pair. */
export function transformPair<Chunk, Result>(
  work: ChunkFunction<Awaited<Chunk>, Result>,
  session: Streaming,
  options: StreamOptions | undefined,
): ReadableWritablePair<Awaited<Result>, Chunk> {
  const { readable: chunks, writable } = new TransformStream<Chunk, Chunk>();
  const results = new Stream("transform", chunks, work, session, options);
  const readable = new ReadableStream<Awaited<Result>>(
    {
      async pull(controller) {
        const { done, value } = await results.next();
        if (done) controller.close();
        else controller.enqueue(value as Awaited<Result>);
      },
      cancel: (reason) => results.finish(reason),
    },
    // The depth is the stream's: nothing is kept here as well.
    { highWaterMark: 0 },
  );
  return { readable, writable };
}
