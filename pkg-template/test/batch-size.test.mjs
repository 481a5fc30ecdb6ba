// What `gpu.optimalBatchSize` may be asked, and that the core is asked it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, fake, manual } from "./face.mjs";

const CASES = [
  [{ memoryBudget: 100e6 }, { modelBytes: 30e6, bytesPerItem: 1e6 }, 50],
  [{ memoryBudget: 100e6 }, { bytesPerItem: 1e6 }, 80],
  [{ memoryBudget: 100e6 }, { modelBytes: 90e6, bytesPerItem: 1 }, 1],
  [{ memoryBudget: 100e6, maxBatchSize: 7 }, { bytesPerItem: 1 }, 7],
  [{}, { bytesPerItem: 1 << 20 }, 409],
];
for (const [options, sizes, expected] of CASES) {
  test(`${JSON.stringify(options)}: ${JSON.stringify(sizes)} is ${expected}`, async () => {
    const { gpu } = await manual(options);
    assert.equal(fake.config.memoryBudget, options.memoryBudget);
    assert.equal(gpu.optimalBatchSize(sizes), expected);
  });
}

const TEXTS = [
  [{ sequenceLength: 128, hiddenSize: 384 }, [0, 128, 384, 1536]],
  [
    { modelBytes: 9, sequenceLength: 1, hiddenSize: 2, intermediateSize: 3 },
    [9, 1, 2, 3],
  ],
];
for (const [sizes, asked] of TEXTS) {
  test(`${JSON.stringify(sizes)} asks the core for ${asked}`, async () => {
    const { gpu, core } = await manual();
    assert.equal(gpu.optimalBatchSize(sizes), 28);
    assert.deepEqual(core.textSizes, asked);
  });
}

const WRONG = [
  [undefined, /it takes \{ modelBytes, bytesPerItem \} or .*, got undefined/],
  [null, /got null/],
  [{}, /bytesPerItem must be a whole number of bytes from 1, got undefined/],
  [{ bytesPerItem: 0 }, /from 1, got 0/],
  [{ bytesPerItem: 1.5 }, /got 1.5/],
  [{ bytesPerItem: NaN }, /got NaN/],
  [{ bytesPerItem: 1, modelBytes: -1 }, /modelBytes must be .* from 0, got -1/],
  [{ bytesPerItem: 1, model: 1 }, /there is no option 'model'/],
  [{ sequenceLength: 8 }, /hiddenSize must be .* floats from 1, got undefined/],
  [{ hiddenSize: 8 }, /sequenceLength must be .* tokens from 1, got undefined/],
  [
    { sequenceLength: 8, hiddenSize: 8, intermediateSize: 0 },
    /intermediateSize must be .* from 1, got 0/,
  ],
  [
    { sequenceLength: 8, hiddenSize: 8, heads: 2 },
    /there is no option 'heads'/,
  ],
  [{ sequenceLength: 8, bytesPerItem: 8 }, /there is no option 'bytesPerItem'/],
];
for (const [sizes, message] of WRONG) {
  test(`${JSON.stringify(sizes)} throws ${message}`, async () => {
    const { gpu } = await manual();
    assert.throws(() => gpu.optimalBatchSize(sizes), {
      code: "invalid-input",
      message,
    });
  });
}

test("it needs an open session", async () => {
  const gpu = face.shared({ flush: "manual" });
  const sizes = { bytesPerItem: 1 };
  assert.throws(() => gpu.optimalBatchSize(sizes), {
    code: "invalid-input",
    message: /still opening; await gpu\.ready/,
  });
  await gpu.ready;
  assert.ok(gpu.optimalBatchSize(sizes) > 1);
  await gpu.dispose();
  assert.throws(() => gpu.optimalBatchSize(sizes), { code: "disposed" });
});
