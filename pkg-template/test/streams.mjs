// What tests of streams stream, and how they take it.

import { manual } from "./face.mjs";

/** A session whose core answers inside `flush`, and that never flushes by itself. */
export async function answering() {
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  return { gpu, core };
}

export const chunk = (value, floats = 4) =>
  new Float32Array(floats).fill(value);
export const double = (gpu) => (values, context) =>
  gpu.lerp(new Float32Array(values.length), values, 2, {
    signal: context.signal,
  });

export async function collect(results) {
  const seen = [];
  for await (const result of results) seen.push(result[0]);
  return seen;
}

/** What a stream gives until it throws, and what it throws. */
export async function untilError(results) {
  const seen = [];
  try {
    for await (const result of results) seen.push(result[0] ?? result);
  } catch (error) {
    return { seen, error };
  }
  return { seen };
}

/** Chunks 0, 1, 2 … and what the loop over them did. */
export function counter(end = Infinity) {
  const log = { pulled: 0, returned: 0, canceled: undefined };
  const next = () => {
    if (log.pulled === end) return { done: true, value: undefined };
    log.pulled += 1;
    return { done: false, value: chunk(log.pulled - 1) };
  };
  const finish = () => {
    log.returned += 1;
    return { done: true, value: undefined };
  };
  const sync = { next, return: finish, [Symbol.iterator]: () => sync };
  const async = {
    next: async () => next(),
    return: async () => finish(),
    [Symbol.asyncIterator]: () => async,
  };
  const readable = () =>
    new ReadableStream(
      {
        pull(to) {
          const { done, value } = next();
          if (done) to.close();
          else to.enqueue(value);
        },
        cancel(reason) {
          log.returned += 1;
          log.canceled = { reason };
        },
      },
      { highWaterMark: 0 },
    );
  return { log, sync, async, readable };
}
