// WebAssembly memory that grows while answers are handed out, as a page makes it do that
// disposes of many tensors where their reads come back.
//
// Whether the core needs memory just then is its own matter, so the pages here have it
// grow by a page whenever something is given back: every view of it before is gone then.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSite } from "./site.mjs";

const pages = openSite();

/** Counts what is given back to the core in `window.grown`, and has its memory grow first. */
const growing = () => {
  window.grown = 0;
  const grows = (exports, name) => {
    if (!/^core_(release|forget)$/.test(name)) return exports[name];
    return (...args) => {
      window.grown += 1;
      exports.memory.grow(1);
      return exports[name](...args);
    };
  };
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = async (module, imports) => {
    const { exports } = await instantiate(module, imports);
    const names = Object.keys(exports);
    const wrapped = names.map((name) => [name, grows(exports, name)]);
    return { exports: Object.fromEntries(wrapped) };
  };
};

for (const engine of ["cpu", "gpu"]) {
  test(`many tensors disposed of inside the continuations of reads, and before: every answer is right (${engine})`, () =>
    pages.page(
      async (page) => {
        const outcome = await page.evaluate(async (engine) => {
          const gpu = await framebatch.open({ engine, flush: "eager" });
          const LENGTH = 16_384;
          const wrong = [];
          /** Reads the first floats of a tensor, of which each is told by its place. */
          const read = async (tensor, from, length, options) => {
            const floats = await tensor.slice([0, length]).read(options);
            const isRight =
              floats.length === length &&
              floats.every((x, i) => x === from + i);
            if (!isRight) wrong.push([from, ...floats.slice(0, 3)]);
          };
          const tensorOf = (from) =>
            gpu.tensor(
              Float32Array.from({ length: LENGTH }, (_, i) => from + i),
            );
          // Each chain of reads goes on from the last one's answer, where it disposes of
          // tensors that its next reads, and those of others, are still waiting for.
          const chain = async (number) => {
            for (let turn = 0; turn < 5; turn += 1) {
              const from = 100_000 * number + 1000 * turn;
              const tensors = [0, 1, 2, 3].map((k) => tensorOf(from + k));
              const into = new Float32Array(40);
              await read(tensors[0], from, 3);
              const pending = tensors.map((tensor, k) =>
                read(tensor, from + k, k % 2 ? 40 : 5, k === 3 ? { into } : {}),
              );
              for (const tensor of tensors) tensor.dispose();
              await Promise.all(pending);
            }
          };
          const isOver = await Promise.race([
            Promise.all(Array.from({ length: 12 }, (_, k) => chain(k))),
            new Promise((done) => setTimeout(done, 20_000, "no answer")),
          ]);
          await gpu.dispose();
          return { wrong, isOver: isOver !== "no answer", grown: window.grown };
        }, engine);
        assert.deepEqual(outcome.wrong, []);
        assert.ok(outcome.isOver, "a read was never answered");
        assert.ok(outcome.grown >= 12 * 5 * 4, `${outcome.grown} times`);
      },
      { prepare: growing },
    ));
}
