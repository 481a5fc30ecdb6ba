// WebAssembly memory that cannot grow, as in browsers that give a page little: what needs
// it is out of memory, and nothing else is lost.
//
// The page loads the core with a maximum written into its memory; beyond that the module's
// own allocator finds none.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  readNumber,
  section,
  sections,
  writeNumber,
} from "../../tools/wasm-sections.mjs";
import { openSite } from "./site.mjs";

const pages = openSite();

const MEMORY = 5;
const WITH_MAXIMUM = 1;
/** Pages of 64 KiB: 48 MiB in all. */
const MORE_PAGES = 768;

/** The module with so many pages more than it begins with, and no more. */
function capped(wasm) {
  const parts = [wasm.subarray(0, 8)];
  for (const { id, body, whole } of sections(wasm)) {
    if (id !== MEMORY) {
      parts.push(whole);
      continue;
    }
    // One memory, its flags, its first size.
    const [least] = readNumber(body, 2);
    const limits = [writeNumber(least), writeNumber(least + MORE_PAGES)];
    const head = Uint8Array.of(1, WITH_MAXIMUM);
    parts.push(section(MEMORY, Buffer.concat([head, ...limits])));
  }
  return Buffer.concat(parts);
}

/** In the page: opens a session on a core that is given so little. */
function begin(text) {
  const wasm = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const open = () => framebatch.open({ engine: "cpu", flush: "manual", wasm });
  const outcome = async (ask) => {
    try {
      return { length: (await ask()).length };
    } catch ({ code, message }) {
      return { code, message };
    }
  };
  /** The outcome of what `ask` gives, sent at once. */
  window.sent = (gpu, ask) =>
    outcome(() => {
      const result = ask();
      gpu.flush();
      return result;
    });
  window.opened = open;
}

const CASES = {
  "operands of a call": {
    bytes: 8 << 23,
    ask: (gpu) => {
      const long = new Float32Array(1 << 23);
      return gpu.lerp(long, long, 0.5);
    },
  },
  "data of a tensor": {
    bytes: 1 << 26,
    ask: (gpu) => gpu.tensor(new Float32Array(1 << 24)),
  },
  "data of a tensor that is kept packed": {
    bytes: 3 << 25,
    ask: (gpu) =>
      gpu.tensor(new Float32Array(1 << 23), undefined, { dtype: "f16" }),
  },
  // The message of a chain names the memory that was asked for last.
  "the result of a chain": {
    ask: (gpu) => {
      const column = gpu.tensor(new Float32Array(1 << 12), [1 << 12, 1]);
      const row = gpu.tensor(new Float32Array(1 << 12), [1, 1 << 12]);
      return column.add(row).read();
    },
  },
  "what a chain has in between": {
    ask: (gpu) => {
      const column = gpu.tensor(new Float32Array(1 << 12), [1 << 12, 1]);
      const row = gpu.tensor(new Float32Array(1 << 12), [1, 1 << 12]);
      const square = column.add(row);
      return square.matmul(square.transpose()).sum(1).read();
    },
  },
};

for (const [name, { ask, bytes = "\\d+" }] of Object.entries(CASES)) {
  test(`no memory for ${name}: that call is told so, and the page goes on`, () =>
    pages.page(async (page) => {
      const wasm = capped(readFileSync("pkg/wasm/framebatch_bg.wasm"));
      await page.evaluate(begin, wasm.toString("base64"));
      const outcome = await page.evaluate(async (source) => {
        const ask = (0, eval)(source);
        const gpu = await opened();
        const beside = await opened();
        const short = () =>
          gpu.lerp(Float32Array.of(1), Float32Array.of(3), 0.5);
        const waiting = beside.lerp(
          Float32Array.of(1),
          Float32Array.of(3),
          0.5,
        );
        const before = await sent(gpu, short);
        const refused = await sent(gpu, () => ask(gpu));
        const after = await sent(gpu, short);
        beside.flush();
        const other = (await waiting)[0];
        await gpu.dispose();
        return { before, refused, after, other };
      }, ask.toString());
      const { before, refused, after, other } = outcome;
      assert.equal(refused.code, "out-of-memory", refused.message);
      assert.match(refused.message, new RegExp(`${bytes} bytes; \\w+ \\w+`));
      assert.deepEqual(
        [before, after, other],
        [{ length: 1 }, { length: 1 }, 2],
      );
    }));
}
