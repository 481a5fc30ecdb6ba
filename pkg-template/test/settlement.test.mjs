// Answers reach their own calls: in order, with their own value or error, whenever the
// core gives them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, manual, settled } from "./face.mjs";

const f32 = (...values) => new Float32Array(values);

test("promises settle in submission order, each with its own value", async () => {
  const { gpu, core } = await manual();
  const order = [];
  for (let i = 0; i < 300; i += 1) {
    gpu.lerp(f32(i), f32(i), 0).then(([value]) => order.push(value));
  }
  gpu.flush();
  core.answer();
  await settled();
  assert.deepEqual(
    order,
    Array.from({ length: 300 }, (_, i) => i),
  );
});

test("a core that answers inside flush, and inside submit", async () => {
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  core.full = 3;
  const promises = [1, 2, 3, 4, 5].map((i) => gpu.lerp(f32(i), f32(i), 0));
  assert.equal(core.queued.length, 2);
  gpu.flush();
  assert.deepEqual(
    (await Promise.all(promises)).map(([value]) => value),
    [1, 2, 3, 4, 5],
  );
});

test("tickets wrap around", async () => {
  const { gpu, core } = await manual();
  core.nextTicket = 0xffffffff - 50;
  const promises = Array.from({ length: 200 }, (_, i) =>
    gpu.lerp(f32(i), f32(i), 0),
  );
  gpu.flush();
  core.answer();
  assert.deepEqual(
    (await Promise.all(promises)).map(([value]) => value),
    Array.from({ length: 200 }, (_, i) => i),
  );
});

test("a failure is the failure of its own call", async () => {
  const { gpu, core } = await manual();
  const first = gpu.lerp(f32(1), f32(1), 0);
  const second = gpu.lerp(f32(2), f32(2), 0, { label: "hero" });
  gpu.flush();
  const failed = core.flights[0][1].ticket;
  core.answer({
    failure: { code: "device-lost", message: "gone" },
    only: ({ ticket }) => ticket === failed,
  });
  assert.deepEqual([...(await first)], [1]);
  await assert.rejects(second, {
    code: "device-lost",
    message: "lerp (label 'hero'): gone",
  });
});

test("every status is its code", async () => {
  const { gpu, core } = await manual();
  for (const code of face.CODES) {
    const promise = gpu.slerp(f32(0, 0, 0, 1), f32(0, 0, 0, 1), 0);
    gpu.flush();
    core.answer({ failure: { code, message: "so it is" } });
    await assert.rejects(promise, { code, message: "slerp: so it is" });
  }
});

test("an older call may be superseded while a newer one is submitted", async () => {
  const { gpu, core } = await manual({ overflow: "latest" });
  const older = gpu.lerp(f32(1), f32(1), 0, { key: "k" });
  const { submit } = core;
  core.submit = function (...args) {
    this.supersede(this.queued[0].ticket);
    return submit.apply(this, args);
  };
  const newer = gpu.lerp(f32(2), f32(2), 0, { key: "k" });
  await assert.rejects(older, { code: "superseded" });
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await newer)], [2]);
});
