// Inputs for the tests, and the calls of a frame as an app would make them.
//
// Everything is seeded: a failure comes back the same.

import * as oracle from "/oracle.js";

/** Numbers in [0, 1), the same for the same seed. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function floats(length, seed) {
  const next = random(seed);
  return Float32Array.from({ length }, () => next() * 2 - 1);
}

export function bytes(length, seed) {
  const next = random(seed);
  return Uint8Array.from({ length }, () => next() * 256);
}

/** Unit quaternions, xyzw. */
export function quaternions(items, seed) {
  const out = floats(items * 4, seed);
  for (let at = 0; at < out.length; at += 4) {
    const q = out.subarray(at, at + 4);
    const norm = Math.hypot(...q);
    q.forEach((x, i) => (q[i] = x / norm));
  }
  return out;
}

/** `calls` independent lerps of 1 to `longest` floats, of every length in between. */
export function lerps(calls, longest) {
  return Array.from({ length: calls }, (_, i) => {
    const length = 1 + ((i * 7919) % longest);
    return {
      a: floats(length, i),
      b: floats(length, i + 1e6),
      t: (i % 101) / 100,
    };
  });
}

/** Runs each lerp in an async function of its own; resolves to the largest error. */
export async function lerpFrame(gpu, inputs) {
  const component = async ({ a, b, t }) => {
    const result = await gpu.lerp(a, b, t);
    return oracle.error(result, oracle.lerp(a, b, t));
  };
  return Math.max(...(await Promise.all(inputs.map(component))));
}

/** What became of a promise, as something that can leave the page. */
export async function outcome(promise) {
  try {
    const value = await promise;
    return { value: value === undefined ? undefined : Array.from(value) };
  } catch (error) {
    return {
      code: error?.code,
      name: error?.name,
      message: String(error?.message ?? error),
      known: error instanceof framebatch.FramebatchError,
    };
  }
}
