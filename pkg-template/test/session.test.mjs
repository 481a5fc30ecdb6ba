// Opening a session and disposing of it. The session that callers share is in
// shared.test.mjs.

import assert from "node:assert/strict";
import filesystem from "node:fs/promises";
import { test } from "node:test";
import { face, fake, manual, module, settled } from "./face.mjs";
import { gate, lerp } from "./opening.mjs";

const { open, shared, isSupported } = face;

test("importing does nothing", async () => {
  await module("index");
  assert.equal(fake.opened, 0);
});

test("open sends the core its options, and keeps its own", async () => {
  const scheduler = () => {};
  const CONFIGS = [
    [{}, { flush: "auto" }],
    [
      { flush: "eager", maxWaitMs: 5, preset: undefined },
      { flush: "eager", maxWaitMs: 5 },
    ],
    [{ flush: scheduler, wasm: "/f.wasm" }, { flush: "manual" }],
    [{ preset: "latency" }, { flush: "auto", preset: "latency" }],
    [{ preset: "frame" }, { flush: "frame", preset: "frame" }],
    [{ preset: "eager" }, { flush: "eager", preset: "eager" }],
    [
      { maxInFlight: 2, maxPiecesInFlight: 1, maxBatchCost: 9 },
      { flush: "auto", maxInFlight: 2, maxPiecesInFlight: 1, maxBatchCost: 9 },
    ],
    [
      { preset: "latency", flush: "frame" },
      { flush: "frame", preset: "latency" },
    ],
    [{ queueCapacity: 9 }, { flush: "auto", queueCalls: 9 }],
    [
      { engine: "cpu", queueCapacity: { bytes: 2 } },
      { flush: "auto", engine: "cpu", queueBytes: 2 },
    ],
  ];
  for (const [options, config] of CONFIGS) {
    const gpu = await open(options);
    assert.deepEqual(fake.config, config);
    await gpu.dispose();
  }
});

test("open: a file that does not load is asked for again after a while, by whoever comes first", async (t) => {
  const { performance } = globalThis;
  let now = performance.now();
  t.mock.method(performance, "now", () => now);
  const failing = Promise.reject(new Error("no memory"));
  failing.catch(() => {});
  // The file is loaded once a page, so only a fresh module loads it again.
  const { isRemembered, loadCore } = await module(
    "core/core-instance",
    "?fresh",
  );
  fake.loading = failing;
  const load = (source) => loadCore(source).catch((error) => error);
  const first = await load();
  assert.deepEqual(
    [first.code, first.message],
    ["unsupported", "the WebAssembly file could not be started: no memory"],
  );
  for (const pause of [1000, 2000, 4000]) {
    const { instances } = fake;
    assert.equal(await load(), await load(), "the same error");
    assert.equal(fake.instances, instances, "nothing is tried");
    now += pause - 1;
    assert.equal(isRemembered(await load()), true);
    now += 1;
    await load();
    assert.equal(fake.instances, instances + 1, `behind ${pause} ms`);
  }
  fake.loading = Promise.resolve();
  const given = await load(new WebAssembly.Module(fake.file));
  assert.equal(given.constructor.name, "CoreInstance", "another file is tried");
});

test("open: another file than that which is loaded is said to have no effect, once", async (context) => {
  const warn = context.mock.method(console, "warn", () => {});
  const bytes = new Uint8Array(8);
  const { noteSource } = await module("core/wasm-source", "?sources");
  noteSource("/a.wasm", false);
  noteSource("/a.wasm", true);
  noteSource(undefined, true);
  noteSource("/b.wasm", false); // The first one could not be loaded.
  noteSource(new URL("file:///b.wasm"), false);
  noteSource("file:///b.wasm", true);
  assert.equal(warn.mock.callCount(), 0);
  noteSource(bytes, true);
  noteSource("/c.wasm", true);
  assert.deepEqual(
    warn.mock.calls.map(({ arguments: [message] }) => message),
    [
      "framebatch: the option wasm has no effect, because the WebAssembly file is loaded; give it to the first session of the page",
    ],
  );
});

test("open: without an option the file is the one that runs here", async (t) => {
  const read = [];
  const { readFile } = filesystem;
  t.mock.method(filesystem, "readFile", (place, ...rest) => {
    const [name] = /[^/]*\.wasm$/.exec(place) ?? [];
    if (name !== undefined) read.push(name);
    return readFile(place, ...rest);
  });
  const load = async (query) => {
    const { loadCore } = await module("core/core-instance", query);
    await loadCore(undefined);
    return read.splice(0);
  };
  assert.deepEqual(await load("?vectors"), ["framebatch_bg.wasm"]);
  t.mock.method(WebAssembly, "validate", () => false);
  assert.deepEqual(await load("?none"), ["framebatch_bg_scalar.wasm"]);
});

test("open rejects an unknown option, and names the known ones", async () => {
  await assert.rejects(open({ engin: "gpu" }), (error) => {
    assert.equal(error.code, "invalid-input");
    assert.match(
      error.message,
      /^open: there is no option 'engin'; the options are engine, flush, .*, wasm$/,
    );
    return true;
  });
  await assert.rejects(open({ queueCapacity: { call: 1 } }), {
    code: "invalid-input",
    message: "open: there is no option 'call'; the options are calls, bytes",
  });
  for (const [queueCapacity, problem] of [
    [0, "calls from 1, got 0"],
    [null, "calls from 1, got null"],
    [{ calls: 8, bytes: 1.5 }, "bytes from 1, got 1.5"],
  ]) {
    await assert.rejects(open({ queueCapacity }), {
      code: "invalid-input",
      message: `open: queueCapacity must be a whole number of ${problem}`,
    });
  }
  await assert.rejects(open(3), {
    code: "invalid-input",
    message: "open: options must be an object, got number",
  });
});

test("open rejects as the core does", async () => {
  const { fail } = gate();
  const opening = open();
  fail({ code: "no-adapter", message: "no GPU adapter was found" });
  await assert.rejects(opening, {
    code: "no-adapter",
    message: "no GPU adapter was found",
  });
});

test("open: a GPU that cannot be", async (context) => {
  await assert.rejects(open({ engine: "gpu" }), {
    code: "unsupported",
    message: /navigator\.gpu is missing/,
  });
  globalThis.isSecureContext = false;
  context.after(() => delete globalThis.isSecureContext);
  await assert.rejects(open({ engine: "gpu" }), {
    code: "insecure-context",
    message: /https/,
  });
  const gpu = await open({ engine: "auto" });
  await gpu.dispose();
});

test("isSupported: whether an adapter answers", async (context) => {
  const had = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  context.after(() => {
    delete globalThis.navigator;
    if (had) Object.defineProperty(globalThis, "navigator", had);
  });
  const NAVIGATORS = [
    [undefined, false],
    [{}, false],
    [{ gpu: { requestAdapter: async () => null } }, false],
    [
      { gpu: { requestAdapter: () => Promise.reject(new Error("crashed")) } },
      false,
    ],
    [{ gpu: { requestAdapter: async () => ({}) } }, true],
  ];
  for (const [value, expected] of NAVIGATORS) {
    Object.defineProperty(globalThis, "navigator", {
      value,
      configurable: true,
    });
    assert.equal(await isSupported(), expected);
  }
});

test("dispose: what is pending rejects, and so does everything after", async () => {
  const { gpu, core } = await manual();
  const inFlight = lerp(gpu, 1);
  gpu.flush();
  const queued = lerp(gpu, 2, { label: "q" });
  core.room = 0;
  const { ready } = gpu;
  await gpu.dispose();
  await gpu.dispose();
  assert.equal(core.counts.disposed, 1);
  for (const promise of [inFlight, queued, ready, gpu.ready]) {
    await assert.rejects(promise, { code: "disposed" });
  }
  await assert.rejects(lerp(gpu, 3, { label: "x" }), {
    code: "disposed",
    message: "lerp (label 'x'): the session is disposed; open a new one",
  });
  assert.throws(() => gpu.flush(), { code: "disposed" });
  assert.throws(() => gpu.explain(() => {}), { code: "disposed" });
  assert.deepEqual(
    [gpu.desiredSize, gpu.info, gpu.stats().calls],
    [0, undefined, 2],
  );
});

test("dispose while opening: waiting calls reject at once, and the core is given back", async () => {
  const { done } = gate();
  const { opened } = fake;
  // In the same task no core is opened at all.
  const early = shared({ flush: "manual" });
  const first = lerp(early, 1);
  await early.dispose();
  await assert.rejects(first, { code: "disposed" });
  const gpu = shared({ flush: "manual" });
  const promise = lerp(gpu, 1);
  await settled();
  await gpu.dispose();
  await assert.rejects(promise, { code: "disposed" });
  done();
  await settled();
  assert.equal(fake.opened, opened + 1);
  assert.deepEqual(
    [fake.core.counts.disposed, fake.core.counts.submits],
    [1, 0],
  );
});

test("dispose: the core is asked nothing any more, and its answers are still taken", async () => {
  const { gpu, core } = await manual({ flush: "eager" });
  const promise = lerp(gpu, 1);
  core.room = 0;
  void gpu.ready; // nobody need catch it
  await settled();
  let asked = 0;
  core.due = () => (asked += 1);
  await gpu.dispose();
  await assert.rejects(promise, {
    code: "disposed",
    message: "lerp: disposed",
  });
  await settled();
  assert.equal(asked, 0);
});

test("asyncDispose disposes", async () => {
  const { gpu, core } = await manual();
  await gpu[Symbol.asyncDispose]();
  assert.equal(core.counts.disposed, 1);
});
