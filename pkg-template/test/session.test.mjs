// Opening, sharing, explaining and disposing.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { face, fake, manual, module, settled, stateOf } from "./face.mjs";

const { open, shared, isSupported } = face;
const f32 = (...values) => new Float32Array(values);
const lerp = (gpu, value, options) =>
  gpu.lerp(f32(value), f32(value), 0, options);

/** Holds `Core.open` back until its result is called. */
function gate() {
  const it = {};
  fake.opening = new Promise((done, fail) => Object.assign(it, { done, fail }));
  return it;
}

afterEach(async () => {
  fake.opening = Promise.resolve();
  fake.loading = Promise.resolve();
  await shared().dispose();
});

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

test("shared: one session, at once; its calls are checked, copied and replayed in order", async () => {
  const { done } = gate();
  const gpu = shared({ flush: "manual" });
  assert.equal(shared(), gpu);
  assert.deepEqual(
    [gpu.info, gpu.device, gpu.desiredSize],
    [undefined, undefined, 0],
  );
  const input = f32(1);
  const t = f32(0);
  const first = gpu.lerp(input, f32(5), t);
  input[0] = 9;
  t[0] = 1;
  const states = gpu.states.gradients(new Uint8Array(16));
  const third = lerp(gpu, 3);
  await assert.rejects(gpu.lerp(f32(1), f32(1, 2), 0), {
    code: "invalid-input",
  });
  assert.throws(() => gpu.explain(() => {}), {
    code: "invalid-input",
    message: /still opening/,
  });
  assert.deepEqual([gpu.stats().calls, gpu.stats().pending], [3, 3]);
  assert.equal(await stateOf(gpu.ready), "pending");
  done();
  await gpu.ready;
  const { core } = fake;
  assert.deepEqual(
    core.queued.map(({ ticket, spec }) => [ticket, spec.op]),
    [
      [1, "lerp"],
      [2, "states.gradients"],
      [3, "lerp"],
    ],
  );
  gpu.flush();
  core.answer();
  assert.deepEqual(
    [(await first)[0], (await states).length, (await third)[0]],
    [1, 32, 3],
  );
});

test("shared: a Buffer of Node's is copied like any array", async () => {
  const { done } = gate();
  const gpu = shared({ flush: "manual" });
  const bytes = [2, 4].map((value) => Buffer.alloc(16, value));
  const halfway = gpu.states.lerp(bytes[0], bytes[1], 0.5);
  for (const buffer of bytes) buffer.fill(9);
  gpu.flush();
  done();
  await gpu.ready;
  fake.core.answer();
  assert.deepEqual(await halfway, new Uint8Array(16).fill(3));
});

test("shared: flushes asked for while opening stay between their calls", async () => {
  const { done } = gate();
  const gpu = shared({ flush: "manual" });
  const promises = [lerp(gpu, 1), lerp(gpu, 2)];
  gpu.flush();
  promises.push(lerp(gpu, 3), lerp(gpu, 4, { flush: "now" }), lerp(gpu, 5));
  done();
  await gpu.ready;
  const { core } = fake;
  assert.deepEqual(
    core.flights.map((batch) => batch.length),
    [2, 2],
  );
  assert.equal(core.queued.length, 1);
  gpu.flush();
  for (let batch = 0; batch < 3; batch += 1) core.answer();
  const results = await Promise.all(promises);
  assert.deepEqual(
    results.map(([value]) => value),
    [1, 2, 3, 4, 5],
  );
});

test("shared: a call that the core refuses is not worth a flush", async () => {
  const { done } = gate();
  let asked = 0;
  const gpu = shared({ flush: () => (asked += 1) });
  const promise = lerp(gpu, 1);
  fake.failures = { submit: { code: "queue-full", message: "full" } };
  done();
  await assert.rejects(promise, { code: "queue-full" });
  assert.equal(asked, 0);
});

test("shared: what waited goes out by the clock once it is open", async () => {
  const { done } = gate();
  const gpu = shared();
  const promise = lerp(gpu, 1);
  done();
  await gpu.ready;
  await settled();
  assert.equal(fake.core.flights.length, 1);
  fake.core.answer();
  assert.deepEqual([...(await promise)], [1]);
});

test("shared: a failed open rejects its calls, and the next shared starts anew", async () => {
  const { fail } = gate();
  const gpu = shared({ flush: "manual" });
  const calls = [lerp(gpu, 1, { label: "a" }), lerp(gpu, 2)];
  const { ready } = gpu;
  fail({ code: "out-of-memory", message: "no memory" });
  const outcomes = await Promise.allSettled([...calls, ready]);
  assert.deepEqual(
    outcomes.map(({ reason }) => [reason.code, reason.message]),
    [
      ["out-of-memory", "lerp (label 'a'): no memory"],
      ["out-of-memory", "lerp: no memory"],
      ["out-of-memory", "no memory"],
    ],
  );
  await assert.rejects(lerp(gpu, 3), { code: "out-of-memory" });
  fake.opening = Promise.resolve();
  const next = shared({ flush: "manual" });
  assert.notEqual(next, gpu);
  await next.ready;
});

test("shared: an unknown option rejects the calls", async () => {
  const gpu = shared({ flsh: "manual" });
  await assert.rejects(lerp(gpu, 1), {
    code: "invalid-input",
    message: /shared: there is no option 'flsh'/,
  });
});

test("shared: other options later are said to have no effect, once", async (context) => {
  const warn = context.mock.method(console, "warn", () => {});
  const gpu = shared({ flush: "manual", engine: "auto" });
  shared({ engine: "auto" });
  assert.equal(warn.mock.callCount(), 0);
  assert.equal(shared({ engine: "cpu" }), gpu);
  shared({ engine: "cpu" });
  assert.equal(warn.mock.callCount(), 1);
  assert.match(
    warn.mock.calls[0].arguments[0],
    /engine "auto", so engine "cpu" has no effect/,
  );
  await gpu.ready;
});

test("explain: the plan of its calls, which are not sent", async () => {
  const { gpu, core } = await manual();
  const outside = lerp(gpu, 1);
  let inside;
  const plan = gpu.explain(() => {
    inside = lerp(gpu, 2, { label: "in", flush: "now" });
    gpu.slerp(f32(0, 0, 0, 1), f32(0, 0, 0, 1), 0);
  });
  assert.equal(plan, "lerp 1\nslerp 1");
  await assert.rejects(inside, {
    code: "aborted",
    message: /^lerp \(label 'in'\): made inside explain/,
  });
  assert.equal(core.counts.flushes, 0);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await outside)], [1]);
});

test("warmup: compiles what its calls need, and sends none of them", async () => {
  const { gpu, core } = await manual();
  let inside;
  const warm = gpu.warmup(() => {
    inside = lerp(gpu, 2);
  });
  await assert.rejects(inside, {
    code: "aborted",
    message: /^lerp: made inside warmup/,
  });
  // Calls go on meanwhile, and are no part of it.
  const outside = lerp(gpu, 1);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await outside)], [1]);
  assert.equal(core.warmups.length, 1);
  core.warmed();
  assert.equal(await warm, undefined);

  const refused = gpu.warmup(() => lerp(gpu, 2));
  core.warmed({ code: "shader", message: "no such function" });
  await assert.rejects(refused, {
    code: "shader",
    message: "warmup: no such function",
  });
});

test("warmup: a session that ends inside it ends it", async () => {
  const { gpu } = await manual();
  let inside;
  const warm = gpu.warmup(() => {
    inside = lerp(gpu, 2);
    inside.catch(() => {});
    void gpu.dispose();
  });
  await assert.rejects(warm, { code: "disposed", message: /^warmup: / });
  await assert.rejects(inside, { code: "disposed" });
});

test("explain: a call that is refused inside is its caller's to catch", async () => {
  const { gpu, core } = await manual();
  const codes = [];
  const unhandled = [];
  const hear = (error) => unhandled.push(error);
  process.on("unhandledRejection", hear);
  core.failures.submit = { code: "invalid-input", message: "no" };
  gpu.explain(() => {
    lerp(gpu, 2).catch(({ code }) => codes.push(code));
  });
  await new Promise((run) => setTimeout(run, 5));
  process.off("unhandledRejection", hear);
  assert.deepEqual([codes, unhandled], [["invalid-input"], []]);
});

test("a batch that the core sends by itself is hurried like any other", async () => {
  const { gpu, core } = await manual();
  const call = lerp(gpu, 1);
  // Its kernel is not compiled: nothing is on its way when `flush` returns.
  const { flush } = core;
  core.flush = () => {};
  gpu.flush();
  flush.call(core);
  const nudges = () => core.counts.nudges;
  const at = core.header();
  await new Promise((run) => setTimeout(run, 30));
  assert.equal(nudges(), 0);
  const count = (flights) => core.view().fill(flights, at + 2, at + 4);
  count(1); // The GPU has it.
  core.tell("sent", "");
  for (let i = 0; i < 200 && nudges() === 0; i++)
    await new Promise((run) => setTimeout(run, 5));
  assert.ok(nudges() > 0, "the first batches are helped after 10 ms");
  count(0);
  core.answer();
  assert.deepEqual([...(await call)], [1]);
});

test("a batch that the GPU has nothing of is not hurried", async () => {
  const { gpu, core } = await manual();
  const call = lerp(gpu, 1);
  const at = core.header() + 2;
  const { flush } = core;
  core.flush = () => {
    flush.call(core);
    core.view()[at] = 1; // On its way, to the processor.
  };
  gpu.flush();
  await new Promise((run) => setTimeout(run, 50));
  assert.equal(core.counts.nudges, 0);
  core.view()[at] = 0;
  core.answer();
  assert.deepEqual([...(await call)], [1]);
});

test("warmup: waits for the device, and ends with the session", async () => {
  const gpu = shared();
  let made = 0;
  const warm = gpu.warmup(() => void (made += 1));
  assert.equal(made, 0);
  await gpu.ready;
  await Promise.resolve();
  assert.equal(made, 1);
  await assert.rejects(
    gpu.warmup(() => {
      throw new Error("mine");
    }),
    { message: "mine" },
  );
  let nested;
  const outer = gpu.warmup(() => {
    nested = gpu.warmup(() => {});
    nested.catch(() => {});
  });
  await assert.rejects(nested, { code: "invalid-input" });
  await gpu.dispose();
  for (const waiting of [warm, outer]) {
    await assert.rejects(waiting, { code: "disposed" });
  }
  await assert.rejects(
    gpu.warmup(() => {}),
    { code: "disposed" },
  );
});

test("explain: an async function and a throwing one leave nothing behind", async () => {
  const { gpu, core } = await manual();
  assert.equal(
    gpu.explain(async () => void (await lerp(gpu, 1))),
    "lerp 1",
  );
  assert.throws(
    () =>
      gpu.explain(() => {
        throw new Error("mine");
      }),
    { message: "mine" },
  );
  assert.throws(() => gpu.explain(() => gpu.explain(() => {})), {
    code: "invalid-input",
  });
  core.failures.begin_explain = { code: "limit-exceeded", message: "too much" };
  assert.throws(() => gpu.explain(() => {}), {
    code: "limit-exceeded",
    message: "explain: too much",
  });
  const promise = lerp(gpu, 4);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await promise)], [4]);
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
