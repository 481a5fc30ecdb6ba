// Opening a session and disposing of it. The session that callers share is in
// shared.test.mjs.

import assert from "node:assert/strict";
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
    [{}, { flush: "frame" }],
    [
      { flush: "eager", maxWaitMs: 5, preset: undefined },
      { flush: "eager", maxWaitMs: 5 },
    ],
    [{ flush: scheduler, wasm: "/f.wasm" }, { flush: "manual" }],
    [{ preset: "latency" }, { flush: "eager", preset: "latency" }],
    [{ preset: "frame" }, { flush: "frame", preset: "frame" }],
    [
      { preset: "latency", flush: "frame" },
      { flush: "frame", preset: "latency" },
    ],
    [{ queueCapacity: 9 }, { flush: "frame", queueCalls: 9 }],
    [
      { engine: "cpu", queueCapacity: { bytes: 2 } },
      { flush: "frame", engine: "cpu", queueBytes: 2 },
    ],
  ];
  for (const [options, config] of CONFIGS) {
    const gpu = await open(options);
    assert.deepEqual(fake.config, config);
    await gpu.dispose();
  }
});

test("open: the WebAssembly file is where the option says", async () => {
  const failing = Promise.reject(new Error("404"));
  failing.catch(() => {});
  // The file is loaded once a page, so only a fresh module still reads the option.
  const { loadCore } = await module("core/core-instance", "?fresh");
  fake.loading = failing;
  await assert.rejects(loadCore("/elsewhere.wasm"), {
    code: "unsupported",
    message:
      "the WebAssembly file could not be loaded (404); give its address or its bytes as the option wasm",
  });
  fake.loading = Promise.resolve();
  await loadCore("/elsewhere.wasm");
  assert.deepEqual(fake.input, { module_or_path: "/elsewhere.wasm" });
});

test("open: without an option the file is the one that runs here", async (t) => {
  const file = async (query, source) => {
    const { loadCore } = await module("core/core-instance", query);
    await loadCore(source);
    return fake.input?.module_or_path;
  };
  assert.equal(await file("?vectors"), undefined, "the glue finds its own");
  const validate = t.mock.method(WebAssembly, "validate", () => false);
  const scalar = await file("?none");
  assert.match(scalar.href, /\/wasm\/framebatch_bg_scalar\.wasm$/);
  assert.equal(validate.mock.callCount(), 1);
  assert.equal(await file("?given", "/elsewhere.wasm"), "/elsewhere.wasm");
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
  const gpu = shared({ flush: "manual" });
  const promise = lerp(gpu, 1);
  await gpu.dispose();
  await assert.rejects(promise, { code: "disposed" });
  done();
  await settled();
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
