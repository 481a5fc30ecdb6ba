// Holds random bodies of kernels to the oracle, and to the bits that they give alone.

import { Body } from "./random.js";

/** Calls of a body that are made alone and together. */
const CALLS = 6;

const bits = ({ buffer, byteOffset, length }) =>
  new Uint32Array(buffer, byteOffset, length).join();

/** Holds the body of a seed to the oracle, and to the same bits alone and merged. */
async function tryBody(gpu, form, seed, tally) {
  const body = new Body(form, seed);
  const fail = (what) => {
    throw new Error(`body ${seed}, ${what}\n${body.code}`);
  };
  const call = body.kernel(gpu);
  const calls = Array.from({ length: CALLS }, () => body.data());
  const read = async (calls) => {
    const { dispatches, batches } = gpu.stats();
    const reads = calls.map((data) => call(data).read());
    gpu.flush();
    const results = await Promise.all(reads).catch(({ message }) =>
      fail(message),
    );
    const after = gpu.stats();
    return {
      results,
      dispatches: after.dispatches - dispatches,
      batches: after.batches - batches,
    };
  };
  const alone = [];
  let dispatches = 0;
  for (const [at, data] of calls.entries()) {
    const { results, dispatches: own } = await read([data]);
    const [result] = results;
    dispatches += own;
    alone.push(result);
    result.forEach((got, i) => {
      const { v, e } = body.expected(data, i);
      if (e === Infinity) tally.open += 1;
      else if (e <= 1e-3 * Math.max(Math.abs(v), 1)) tally.tight += 1;
      else tally.loose += 1;
      if (e < Infinity && !(Math.abs(got - v) <= e)) {
        fail(`call ${at}, element ${i}: ${got} instead of ${v} ± ${e}`);
      }
    });
  }
  const together = await read(calls);
  together.results.forEach((result, at) => {
    if (bits(result) !== bits(alone[at])) fail(`call ${at} has other bits`);
  });
  if (together.batches !== 1) fail(`${together.batches} batches`);
  // Whether loops were stopped is looked up by one kernel for short calls, and by another for
  // long ones.
  const programs = body.hasLoops ? 2 : 1;
  if (together.dispatches > (programs * dispatches) / CALLS) {
    fail(`${together.dispatches} dispatches`);
  }
}

/** Tries the bodies of some seeds; throws for the first that is wrong. */
export async function tryBodies(engine, form, first, count) {
  const gpu = await framebatch.open({ engine, flush: "manual" });
  const tally = { tight: 0, loose: 0, open: 0 };
  for (let seed = first; seed < first + count; seed += 1) {
    await tryBody(gpu, form, seed, tally);
  }
  gpu.dispose();
  return tally;
}
