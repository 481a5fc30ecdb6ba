// The frames of a page, for the tests of motions: each runs when a test says so. There is
// no frame before a test begins, nor after it ends.

import assert from "node:assert/strict";
import { afterEach, beforeEach } from "node:test";
import { module } from "./face.mjs";

await module("animation/index");

/** The frames that were asked for. */
export let frames;
export let clock;

beforeEach(() => {
  frames = new Map();
  clock = 1000;
  let next = 0;
  globalThis.requestAnimationFrame = (callback) => {
    frames.set(++next, callback);
    return next;
  };
  globalThis.cancelAnimationFrame = (id) => frames.delete(id);
});
afterEach(() => {
  delete globalThis.requestAnimationFrame;
  delete globalThis.cancelAnimationFrame;
  delete globalThis.matchMedia;
});

/** Runs a frame so many milliseconds after the one before. */
export function frame(ms = 0) {
  clock += ms;
  const due = [...frames.values()];
  frames.clear();
  for (const callback of due) callback(clock);
}

export const near = (a, b, bound = 1e-6) =>
  assert.ok(Math.abs(a - b) <= bound, `${a}, not ${b}`);
