// Sessions that stay opening for as long as a test wants. After each test nothing is held
// back any more, and the shared session is disposed of.

import { afterEach } from "node:test";
import { face, fake } from "./face.mjs";

/** A call that resolves to one float. */
export const lerp = (gpu, value, options) => {
  const floats = new Float32Array([value]);
  return gpu.lerp(floats, floats, 0, options);
};

/** Holds `Core.open` back until its result is called. */
export function gate() {
  const it = {};
  fake.opening = new Promise((done, fail) => Object.assign(it, { done, fail }));
  return it;
}

afterEach(async () => {
  fake.opening = Promise.resolve();
  fake.loading = Promise.resolve();
  await face.shared().dispose();
});
