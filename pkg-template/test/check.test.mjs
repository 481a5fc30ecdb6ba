// Bad input: each case rejects, without throwing, with this sentence, and takes
// nothing into the batch.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, manual, settled } from "./face.mjs";

const { gpu, core } = await manual();
const floats = (length) => new Float32Array(length);
const bytes = (length) => new Uint8Array(length);

function detached(array) {
  structuredClone(array.buffer, { transfer: [array.buffer] });
  return array;
}

const CASES = [
  // Types.
  [
    () => gpu.lerp([1], floats(1), 0),
    "lerp: a must be a Float32Array, got Array; give Float32Array.from(a)",
  ],
  [
    () => gpu.lerp(floats(1), undefined, 0),
    "lerp: b must be a Float32Array, got undefined",
  ],
  [
    () => gpu.lerp(floats(1), new Float64Array(1), 0),
    "lerp: b must be a Float32Array, got Float64Array; give Float32Array.from(b)",
  ],
  [
    () => gpu.lerp(floats(1), null, 0),
    "lerp: b must be a Float32Array, got null",
  ],
  [
    () => gpu.slerp(bytes(4), floats(4), 0),
    "slerp: qa must be a Float32Array, got Uint8Array; give Float32Array.from(qa)",
  ],
  [
    () => gpu.states.gradients(floats(16)),
    "states.gradients: states must be a Uint8Array, got Float32Array",
  ],
  [
    () => gpu.states.gradients(new Uint8ClampedArray(16)),
    "states.gradients: states must be a Uint8Array, got Uint8ClampedArray; give Uint8Array.from(states)",
  ],
  [
    () => gpu.lerp(floats(1), floats(1), "1"),
    "lerp: t must be a number or a Float32Array, got string",
  ],
  [
    () => gpu.lerp(floats(1), floats(1)),
    "lerp: t must be a number or a Float32Array, got undefined",
  ],
  [
    () => gpu.slerp(floats(4), floats(4), [0]),
    "slerp: t must be a number or a Float32Array, got Array; give Float32Array.from(t)",
  ],
  // Lengths.
  [
    () => gpu.lerp(floats(8), floats(6), 0, { label: "x" }),
    "lerp (label 'x'): b has 6 floats, but a has 8; give both the same length",
  ],
  [
    () => gpu.slerp(floats(8), floats(4), 0),
    "slerp: qb has 4 floats, but qa has 8; give both the same length",
  ],
  [
    () => gpu.slerp(floats(6), floats(6), 0),
    "slerp: qa has 6 floats, which is not a multiple of 4, the width of an item",
  ],
  [
    () => gpu.slerp(floats(8), floats(7), 0),
    "slerp: qb has 7 floats, which is not a multiple of 4, the width of an item",
  ],
  [
    () => gpu.states.gradients(bytes(17)),
    "states.gradients: states has 17 bytes, which is not a multiple of 16, the width of an item",
  ],
  [
    () => gpu.states.slerp(bytes(32), bytes(16), 0),
    "states.slerp: b has 16 bytes, but a has 32; give both the same length",
  ],
  [
    () => gpu.lerp(floats(7), floats(7), floats(2), { width: 3 }),
    "lerp: a has 7 floats, which is not a multiple of 3, the width of an item",
  ],
  [
    () => gpu.lerp(floats(8), floats(8), floats(3)),
    "lerp: t has 3 floats, but a has 8 items; give one number for all, or one t an item",
  ],
  [
    () => gpu.lerp(floats(8), floats(8), floats(8), { width: 2 }),
    "lerp: t has 8 floats, but a has 4 items; give one number for all, or one t an item",
  ],
  [
    () => gpu.slerp(floats(8), floats(8), floats(0)),
    "slerp: t has 0 floats, but qa has 2 items; give one number for all, or one t an item",
  ],
  [
    () => gpu.bezier([floats(4), floats(4), floats(3), floats(4)], 0),
    "bezier: p2 has 3 floats, but p0 has 4; give all the same length",
  ],
  [
    () => gpu.bezier([floats(4), floats(4), floats(4), bytes(4)], 0),
    "bezier: p3 must be a Float32Array, got Uint8Array; give Float32Array.from(p3)",
  ],
  [
    () => gpu.bezier([floats(4), floats(4), floats(4)], 0, { label: "x" }),
    "bezier (label 'x'): there are 3 control points, but a cubic curve has 4; give p0, p1, p2, p3",
  ],
  [
    () => gpu.bezier(floats(16), 0),
    "bezier: the control points must be an array of 4 Float32Arrays, got Float32Array",
  ],
  [
    () => gpu.states.bezier(undefined, 0),
    "states.bezier: the control points must be an array of 4 Uint8Arrays, got undefined",
  ],
  [
    () => gpu.bezier(Array(4).fill(floats(6)), floats(6), { width: 2 }),
    "bezier: t has 6 floats, but p0 has 3 items; give one number for all, or one t an item",
  ],
  [
    () => gpu.states.bezier(Array(4).fill(bytes(24)), 0),
    "states.bezier: p0 has 24 bytes, which is not a multiple of 16, the width of an item",
  ],
  [
    () => gpu.states.distance(bytes(16), bytes(32)),
    "states.distance: b has 32 bytes, but a has 16; give both the same length",
  ],
  [
    () => gpu.states.geodesicDistance(bytes(16)),
    "states.geodesicDistance: b must be a Uint8Array, got undefined",
  ],
  [
    () => gpu.states.sequence(bytes(16), bytes(16), 1, "lerp"),
    "states.sequence: steps must be a whole number from 2 to 65536, got 1",
  ],
  [
    () => gpu.states.sequence(bytes(16), bytes(16), 65537, "slerp"),
    "states.sequence: steps must be a whole number from 2 to 65536, got 65537",
  ],
  [
    () => gpu.states.sequence(bytes(16), bytes(16), 2.5, "lerp"),
    "states.sequence: steps must be a whole number from 2 to 65536, got 2.5",
  ],
  [
    () => gpu.states.sequence(bytes(16), bytes(16), floats(1), "lerp"),
    "states.sequence: steps must be a whole number from 2 to 65536, got Float32Array",
  ],
  [
    () => gpu.states.sequence(bytes(16), bytes(16), 2, "cubic"),
    "states.sequence: mode must be 'lerp' or 'slerp', got 'cubic'",
  ],
  [
    () => gpu.states.sequence(bytes(16), bytes(16), 2),
    "states.sequence: mode must be 'lerp' or 'slerp', got undefined",
  ],
  [
    () =>
      gpu.states.sequence(bytes(32), bytes(32), 3, "lerp", { into: bytes(32) }),
    "states.sequence: into has 32 bytes, but the result has 96; give an array of that length",
  ],
  [
    () => gpu.states.distance(bytes(32), bytes(32), { into: floats(32) }),
    "states.distance: into has 32 floats, but the result has 2; give an array of that length",
  ],
  [
    () => gpu.states.descend(bytes(32), floats(1)),
    "states.descend: rate has 1 floats, but states has 2 items; give one number for all, or one rate an item",
  ],
  [
    () => gpu.states.descend(bytes(16), NaN),
    "states.descend: rate is NaN; give a number",
  ],
  [
    () => gpu.states.descend(bytes(16)),
    "states.descend: rate must be a number or a Float32Array, got undefined",
  ],
  [
    () => gpu.states.lerp(bytes(16), bytes(16), 0, { width: 3 }),
    "states.lerp: there is no option 'width'; the options are signal, deadlineMs, into, key, engine, flush, priority, onMetrics, label",
  ],
  [
    () => gpu.states.gradients(bytes(16), { field: 3 }),
    "states.gradients: field must be a string, got number",
  ],
  [
    () => gpu.lerp(floats(1), floats(1), 0, { field: "rho" }),
    "lerp: there is no option 'field'; the options are width, signal, deadlineMs, into, key, engine, flush, priority, onMetrics, label",
  ],
  // Detached.
  [
    () => gpu.lerp(detached(floats(2)), floats(2), 0),
    "lerp: a is detached (its buffer was transferred); give an array that still has its memory",
  ],
  [
    () => gpu.lerp(floats(2), detached(floats(2)), 0),
    "lerp: b is detached (its buffer was transferred); give an array that still has its memory",
  ],
  [
    () => gpu.lerp(floats(2), floats(2), detached(floats(2))),
    "lerp: t is detached (its buffer was transferred); give an array that still has its memory",
  ],
  [
    () => gpu.lerp(floats(0), floats(0), detached(floats(2))),
    "lerp: t is detached (its buffer was transferred); give an array that still has its memory",
  ],
  [
    () => gpu.states.gradients(detached(bytes(16))),
    "states.gradients: states is detached (its buffer was transferred); give an array that still has its memory",
  ],
  [
    () => gpu.lerp(floats(2), floats(2), 0, { into: detached(floats(2)) }),
    "lerp: into is detached (its buffer was transferred); give an array that still has its memory",
  ],
  // t.
  [() => gpu.lerp(floats(1), floats(1), NaN), "lerp: t is NaN; give a number"],
  [
    () => gpu.states.lerp(bytes(16), bytes(16), NaN),
    "states.lerp: t is NaN; give a number",
  ],
  // into.
  [
    () => gpu.lerp(floats(2), floats(2), 0, { into: [] }),
    "lerp: into must be a Float32Array, got Array",
  ],
  [
    () => gpu.states.lerp(bytes(16), bytes(16), 0, { into: floats(4) }),
    "states.lerp: into must be a Uint8Array, got Float32Array",
  ],
  [
    () => gpu.states.gradients(bytes(16), { into: bytes(32) }),
    "states.gradients: into must be a Float32Array, got Uint8Array",
  ],
  [
    () => gpu.states.gradients(bytes(16), { into: floats(16) }),
    "states.gradients: into has 16 floats, but the result has 32; give an array of that length",
  ],
  // Options.
  [
    () => gpu.lerp(floats(1), floats(1), 0, { widht: 1 }),
    "lerp: there is no option 'widht'; the options are width, signal, deadlineMs, into, key, engine, flush, priority, onMetrics, label",
  ],
  [
    () => gpu.slerp(floats(4), floats(4), 0, { width: 4 }),
    "slerp: there is no option 'width'; the options are signal, deadlineMs, into, key, engine, flush, priority, onMetrics, label",
  ],
  [
    () => gpu.lerp(floats(1), floats(1), 0, 7),
    "lerp: options must be an object, got number",
  ],
  [
    () => gpu.lerp(floats(1), floats(1), 0, null),
    "lerp: options must be an object, got null",
  ],
  [
    () => gpu.lerp(floats(1), floats(1), 0, { width: 0 }),
    "lerp: width must be a whole number from 1, got 0",
  ],
  [
    () => gpu.lerp(floats(1), floats(1), 0, { width: 1.5 }),
    "lerp: width must be a whole number from 1, got 1.5",
  ],
  [
    () => gpu.lerp(floats(1), floats(1), 0, { width: "2" }),
    "lerp: width must be a whole number from 1, got 2",
  ],
  [
    () => gpu.lerp(floats(1), floats(1), 0, { signal: {} }),
    "lerp: signal must be an AbortSignal, got Object",
  ],
  [
    () => gpu.lerp(floats(1), floats(1), 0, { signal: null }),
    "lerp: signal must be an AbortSignal, got null",
  ],
  [
    () => gpu.lerp(floats(1), floats(1), 0, { key: 3 }),
    "lerp: key must be a string, got number",
  ],
  [
    () => gpu.lerp(floats(1), floats(1), 0, { engine: "auto" }),
    "lerp: engine must be 'gpu', 'cpu' or left out, got 'auto'",
  ],
  [
    () => gpu.lerp(floats(1), floats(1), 0, { flush: "later" }),
    "lerp: flush must be 'now' or left out, got 'later'",
  ],
  [
    () => gpu.lerp(floats(1), floats(1), 0, { label: 3 }),
    "lerp: label must be a string, got number",
  ],
];

for (const [call, message] of CASES) {
  test(`rejects: ${message}`, async () => {
    const submits = core.counts.submits;
    const promise = call();
    await assert.rejects(promise, (error) => {
      assert.ok(error instanceof face.FramebatchError);
      assert.equal(error.name, "FramebatchError");
      assert.equal(error.code, "invalid-input");
      assert.equal(error.message, message);
      assert.match(error.stack, /check\.test\.mjs/, "the caller's stack");
      return true;
    });
    assert.equal(core.counts.submits, submits);
  });
}

const EMPTY = [
  ["lerp", () => gpu.lerp(floats(0), floats(0), 0.5), Float32Array],
  [
    "lerp with an empty t",
    () => gpu.lerp(floats(0), floats(0), floats(0)),
    Float32Array,
  ],
  ["slerp", () => gpu.slerp(floats(0), floats(0), 0.5), Float32Array],
  ["nlerp", () => gpu.nlerp(floats(0), floats(0), 0.5), Float32Array],
  ["states.gradients", () => gpu.states.gradients(bytes(0)), Float32Array],
  ["states.lerp", () => gpu.states.lerp(bytes(0), bytes(0), 0.5), Uint8Array],
  ["bezier", () => gpu.bezier(Array(4).fill(floats(0)), 0.5), Float32Array],
  [
    "states.sequence",
    () => gpu.states.sequence(bytes(0), bytes(0), 9, "lerp"),
    Uint8Array,
  ],
  [
    "states.distance",
    () => gpu.states.distance(bytes(0), bytes(0)),
    Float32Array,
  ],
  ["states.descend", () => gpu.states.descend(bytes(0), 1), Uint8Array],
];

for (const [name, call, type] of EMPTY) {
  test(`no items, ${name}: an empty result, asynchronously, without the core`, async () => {
    const submits = core.counts.submits;
    const result = await call();
    assert.ok(result instanceof type);
    assert.equal(result.length, 0);
    assert.equal(core.counts.submits, submits);
  });
}

test("no items, into: resolves to the caller's own array", async () => {
  const into = floats(0);
  assert.equal(await gpu.lerp(floats(0), floats(0), 0, { into }), into);
});

test("an array of another realm is an array", async () => {
  const { runInNewContext } = await import("node:vm");
  const foreign = runInNewContext("new Float32Array([1, 2])");
  const promise = gpu.lerp(foreign, foreign, 0.5);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await promise)], [1, 2]);
});

test("a bad call leaves its neighbors alone", async () => {
  const before = gpu.lerp(floats(2).fill(1), floats(2).fill(3), 0.5);
  const bad = gpu.lerp(floats(2), floats(3), 0.5);
  const after = gpu.lerp(floats(2).fill(5), floats(2).fill(7), 0.5);
  await assert.rejects(bad);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await before), ...(await after)], [2, 2, 6, 6]);
  await settled();
});
