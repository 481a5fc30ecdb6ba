// What listeners hear of the device.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual } from "./face.mjs";

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
    ["first", { type: "lost", message: "it is gone" }],
    ["second", "lost"],
    ["second", "lost"],
    ["third", "restored"],
  ]);
});

test("an unknown event is named, with the known ones", async () => {
  const { gpu } = await manual();
  assert.throws(() => gpu.on("gone", () => {}), {
    code: "invalid-input",
    message:
      "on: there is no event 'gone'; give one of lost, restored, fallback, batch",
  });
});
