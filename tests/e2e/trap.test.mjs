// A trap in WebAssembly: what is pending rejects with `fatal`, and the next session
// starts clean.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSite } from "./site.mjs";

const pages = openSite();

/** Remembers every instance's memory, so that a test can ruin it. */
const remember = () => {
  window.memories = [];
  for (const method of ["instantiate", "instantiateStreaming"]) {
    const original = WebAssembly[method];
    WebAssembly[method] = async (...args) => {
      const made = await original(...args);
      const { exports } = made.instance ?? made;
      if (exports.memory) window.memories.push(exports.memory);
      return made;
    };
  }
};

test("a trap ends the sessions of its instance, and the next open() gets another", () =>
  pages.page(
    async (page) => {
      const outcome = await page.evaluate(async () => {
        const settings = { engine: "gpu", flush: "manual" };
        const floats = (value) => new Float32Array(100).fill(value);
        const first = await framebatch.open(settings);
        const second = await framebatch.open(settings);
        const pending = [
          first.lerp(floats(0), floats(2), 0.5),
          second.lerp(floats(0), floats(2), 0.5),
        ];
        for (const memory of memories) new Uint8Array(memory.buffer).fill(0xff);
        pending.push(first.lerp(floats(0), floats(2), 0.5));
        try {
          first.flush();
          second.flush();
        } catch {
          // The session has ended; how its calls end is what counts.
        }
        const codes = await Promise.all(
          pending.map((call) => call.catch((error) => error.code)),
        );
        const third = await framebatch.open(settings);
        const sound = third.lerp(floats(0), floats(2), 0.5);
        third.flush();
        return { codes, sound: (await sound)[99], instances: memories.length };
      });
      assert.deepEqual(outcome.codes, ["fatal", "fatal", "fatal"]);
      assert.equal(outcome.sound, 1);
      assert.equal(outcome.instances, 2);
    },
    { prepare: remember },
  ));

test("a trap in the background, where nobody calls the core, ends them as well", () =>
  pages.page(
    async (page) => {
      const outcome = await page.evaluate(async () => {
        const settings = { engine: "gpu", flush: "manual" };
        const floats = (value) => new Float32Array(100).fill(value);
        const first = await framebatch.open(settings);
        const second = await framebatch.open(settings);
        const pending = [first, second].map((gpu) =>
          gpu.lerp(floats(0), floats(2), 0.5),
        );
        first.flush();
        // The GPU's answer finds it.
        for (const memory of memories) new Uint8Array(memory.buffer).fill(0xff);
        const codes = await Promise.all(
          pending.map((call) => call.catch((error) => error.code)),
        );
        await first.dispose();
        const third = await framebatch.open(settings);
        const sound = third.lerp(floats(0), floats(2), 0.5);
        third.flush();
        return { codes, sound: (await sound)[99], instances: memories.length };
      });
      assert.deepEqual(outcome.codes, ["fatal", "fatal"]);
      assert.equal(outcome.sound, 1);
      assert.equal(outcome.instances, 2);
    },
    { prepare: remember },
  ));

test("a trap of the embeddings' WebAssembly ends the embedders on it, and no session", () =>
  pages.page(
    async (page) => {
      const outcome = await page.evaluate(async () => {
        const code = (call) =>
          call.then(
            () => "answered",
            ({ code }) => code,
          );
        const gpu = await framebatch.open({ engine: "cpu", flush: "eager" });
        const address = "/data/tiny-model/";
        const first = await gpu.embedder(address);
        const beside = await gpu.embedder(address);
        const before = await beside.embed("ab ba");
        const ids = [2, 5, 6, 3];
        await beside.embedIds(ids);
        // What the core has already does not enter that WebAssembly.
        const asked = beside.embedIds(ids);
        const [, memory] = memories;
        new Uint8Array(memory.buffer).fill(0xff);
        const codes = await Promise.all([
          code(first.embed("what finds it")),
          code(first.embedIds([2, 3])),
          code(beside.embed("ab ba")),
          code(beside.embedIds(ids)),
          code(asked),
        ]);
        const third = await gpu.embedder(address);
        const again = await third.embed("ab ba");
        first.dispose();
        beside.dispose();
        return {
          codes,
          isSame: before.every((x, i) => x === again[i]),
          instances: memories.length,
          pending: gpu.stats().pending,
        };
      });
      const ended = ["fatal", "fatal", "fatal", "fatal"];
      assert.deepEqual(outcome.codes, [...ended, "answered"]);
      assert.ok(outcome.isSame);
      assert.equal(outcome.instances, 3);
      assert.equal(outcome.pending, 0);
    },
    { prepare: remember, may: /404/ },
  ));
