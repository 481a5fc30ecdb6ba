// The answers of `ask.js`, and the check of them.

import assert from "node:assert/strict";

const ANSWERS = [[0.5, 15], Array(16).fill(0x80), [17, 37], [5]];

/** Holds what an environment found to the answers, computed where it should be. */
export function assertFound(found, engine) {
  assert.deepEqual(found.answers, ANSWERS);
  if (engine !== undefined) assert.equal(found.engine, engine);
}
