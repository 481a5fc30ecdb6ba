// Wrong readings: each rejects with this code and this sentence, and nothing is submitted.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual, settled } from "./face.mjs";

const { gpu, core } = await manual();
const other = (await manual()).gpu;
const floats = (length) => new Float32Array(length);
const x = gpu.tensor(floats(12), [3, 4]);
const y = gpu.tensor(floats(5));
const foreign = other.tensor(floats(12), [3, 4]);
const gone = gpu.tensor(floats(12), undefined, { label: "w" });
gone.dispose();

function detached(array) {
  structuredClone(array.buffer, { transfer: [array.buffer] });
  return array;
}

const chainOf = (length) => {
  let tensor = x;
  for (let i = 0; i < length; i += 1) tensor = tensor.neg();
  return tensor;
};
const left = gpu.tensor(floats(2), [2], { label: "left" });
const ofLeft = left.exp().add(1);
left.dispose();

const wide = Array.from({ length: 2049 }, () => gpu.tensor([1]).neg());

const READINGS = [
  [
    () => gpu.readAll(wide),
    "invalid-input",
    "readAll: a chain has at most 4096 nodes; read an intermediate result",
  ],
  [
    () => gone.read(),
    "disposed",
    "read: the tensor (label 'w') is disposed; make it anew",
  ],
  [
    () => ofLeft.read({ label: "r" }),
    "disposed",
    "read (label 'r'): the tensor (label 'left') is disposed; make it anew",
  ],
  [
    () => gpu.readAll([x, foreign]),
    "invalid-input",
    "readAll: an operand is a tensor of another session; make both with one session",
  ],
  [
    () => gpu.readAll(x),
    "invalid-input",
    "readAll: give an array of tensors, got a tensor",
  ],
  [
    () => gpu.readAll([floats(1)]),
    "invalid-input",
    "readAll: an operand must be a tensor, got Float32Array",
  ],
  [
    () => x.read({ width: 1 }),
    "invalid-input",
    "read: there is no option 'width'; the options are signal, deadlineMs, into, key, engine, flush, priority, onMetrics, label",
  ],
  [
    () => x.read({ into: floats(3) }),
    "invalid-input",
    "read: into has 3 elements, but the result has 12; give an array of that length",
  ],
  [
    () => x.read({ into: detached(floats(12)) }),
    "invalid-input",
    "read: into is detached (its buffer was transferred); give an array that still has its memory",
  ],
  [
    () => x.argmax().read({ into: floats(1) }),
    "invalid-input",
    "read: into must be a Uint32Array, got Float32Array",
  ],
  [
    () => gpu.readAll([x, y], { into: [floats(12)] }),
    "invalid-input",
    "readAll: into must be an array with one array for each of the 2 tensors",
  ],
  [
    () => gpu.readAll([x, y], { into: [floats(12), floats(6)] }),
    "invalid-input",
    "readAll: into[1] has 6 elements, but the result has 5; give an array of that length",
  ],
  [
    () => chainOf(1024).read(),
    "invalid-input",
    "read: a chain is at most 1024 operations deep; read an intermediate result",
  ],
  [
    () => chainOf(100_000).read(),
    "invalid-input",
    "read: a chain is at most 1024 operations deep; read an intermediate result",
  ],
  [
    () => gpu.readAll(Array.from({ length: 4097 }, () => x)),
    "invalid-input",
    "readAll: a chain has at most 4096 results; read some of them first",
  ],
];

for (const [read, code, message] of READINGS) {
  test(`${code}: ${message}`, async () => {
    let promise;
    assert.doesNotThrow(() => (promise = read()));
    await assert.rejects(promise, { code, message });
    await settled(1);
    assert.equal(core.counts.submits, 0);
  });
}

test("the longest chain is read, also after one that was too long", async () => {
  const { gpu, core } = await manual();
  let tensor = gpu.tensor(new Float32Array([2]));
  for (let i = 0; i < 1023; i += 1) tensor = tensor.neg();
  await assert.rejects(tensor.neg().read(), { code: "invalid-input" });
  const promise = tensor.read();
  gpu.flush();
  core.answer();
  assert.deepEqual(await promise, new Float32Array([-2]));
});
