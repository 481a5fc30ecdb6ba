// What listeners hear of the device.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual, settled, stateOf } from "./face.mjs";

test("each event reaches its listeners, until they leave", async () => {
  const { gpu, core } = await manual();
  const heard = [];
  const leave = gpu.on("lost", (news) => heard.push(["first", news]));
  gpu.on("lost", ({ type }) => heard.push(["second", type]));
  gpu.on("restored", ({ type }) => heard.push(["third", type]));
  core.tell("lost", "it is gone");
  leave();
  core.tell("lost", "it is gone");
  core.tell("restored", "there is another");
  assert.deepEqual(heard, [
    [
      "first",
      {
        type: "lost",
        message: "it is gone",
        lostTensors: [],
        revertedTensors: [],
      },
    ],
    ["second", "lost"],
    ["second", "lost"],
    ["third", "restored"],
  ]);
});

test("a listener may make calls, whenever the core tells it", async () => {
  const { gpu, core } = await manual();
  const f32 = (...values) => new Float32Array(values);
  const calls = [];
  const heard = [];
  gpu.on("fallback", ({ type, message }) => {
    heard.push(type, message);
    calls.push(gpu.lerp(f32(1), f32(3), 0.5));
  });
  // A full batch is sent before its last call has a ticket.
  core.full = 1;
  const { flush } = core;
  core.flush = function () {
    core.flush = flush;
    core.tell("relieved", "the CPU answers it");
    flush.call(core);
  };
  calls.push(gpu.lerp(f32(5), f32(7), 0.5));
  await settled();
  assert.deepEqual(heard, ["fallback", "the CPU answers it"]);
  core.answer();
  core.answer();
  const states = await Promise.all(calls.map(stateOf));
  assert.deepEqual(states, [{ value: f32(6) }, { value: f32(2) }]);
});

test("a GPU that takes over from the CPU brings every tensor, and is told as restored", async () => {
  const { gpu, core } = await manual();
  const heard = [];
  gpu.on("restored", ({ type, message }) => heard.push(type, message));
  const data = new Float32Array(16_384);
  const tensor = gpu.tensor(data, undefined, { keep: false });
  const { fills } = core.counts;
  core.tell("regained", "a GPU again");
  assert.deepEqual(heard, [], "not inside of a call that may be entering");
  await settled();
  assert.deepEqual(heard, ["restored", "a GPU again"]);
  assert.equal(core.counts.fills, fills);
  tensor.dispose();
});

test("an unknown event is named, with the known ones", async () => {
  const { gpu } = await manual();
  assert.throws(() => gpu.on("gone", () => {}), {
    code: "invalid-input",
    message:
      "on: there is no event 'gone'; give one of lost, restored, fallback, batch",
  });
});
