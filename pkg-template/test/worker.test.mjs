// Sessions in a worker: what is sent, how often, and what comes of refusals, losses and ends.
// That these sessions do what sessions do, other suites tell, which `run.mjs` runs twice.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fake, module, settled } from "./face.mjs";
import { counts, InProcessWorker } from "./in-process.mjs";

const { connect } = await module("worker/hosted-session");
const { open, shared, isSupported } = await module("worker/index");
await module("kernels/index");
const { batchSize, sizesOf, textBytes } = await module("worker/batch-sizes");

const LARGE = 16_384;
const f32 = (...values) => new Float32Array(values);
const large = (value) => new Float32Array(LARGE).fill(value);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** A session in a worker of its own, which sends only when told; the core there, and the worker. */
async function begin(options) {
  const worker = new InProcessWorker(connect);
  const gpu = await open({ flush: "manual", worker, ...options });
  return { gpu, core: fake.core, worker };
}

/** Sends what was called, and has the core answer it. */
function answer({ gpu, core }, failure) {
  gpu.flush();
  core.answer(failure);
}

test("1,000 calls of a frame are one message each way", async () => {
  const { gpu, core } = await begin();
  const x = gpu.tensor(f32(1, 2));
  for (const expected of [0, 1, 2]) {
    const before = counts.messages;
    const calls = Array.from({ length: 1000 }, (_, i) =>
      i % 2 ? gpu.lerp(f32(i), f32(i), 0) : x.mul(i).sum().read(),
    );
    answer({ gpu, core });
    const results = await Promise.all(calls);
    results.forEach(([got], i) => assert.equal(got, i % 2 ? i : 3 * i));
    assert.equal(counts.messages - before, 2, `round ${expected}`);
  }
  await gpu.dispose();
});

test("callers' arrays stay theirs, and results are their own", async () => {
  const { gpu, core } = await begin();
  const [a, b, into] = [f32(0, 10), f32(2, 20), f32(0, 0)];
  const calls = [gpu.lerp(a, b, 0.5), gpu.lerp(a, b, 0.5, { into })];
  a.fill(7);
  answer({ gpu, core });
  const [first, second] = await Promise.all(calls);
  assert.deepEqual(first, f32(1, 15));
  assert.equal(second, into);
  assert.deepEqual([a, into], [f32(7, 7), f32(1, 15)]);
  await gpu.dispose();
});

test("tensors have other numbers in the core than in the page", async () => {
  const { gpu, core } = await begin();
  core.lastTensor = 40;
  const [a, b] = [gpu.tensor(large(1)), gpu.tensor(large(2))];
  const sum = a.add(b).sum().read();
  answer({ gpu, core });
  assert.deepEqual(await sum, f32(3 * LARGE));
  assert.deepEqual([...core.tensors.keys()], [41, 42]);
  a.dispose();
  await sleep(40);
  assert.deepEqual([...core.tensors.keys()], [42]);
  await gpu.dispose();
});

/** What the core refuses, by the method that fails, and a call that needs it. */
const REFUSED = {
  chain: (gpu) => gpu.tensor(f32(1)).exp().read(),
  structure: (gpu) => gpu.slerp(f32(0, 0, 0, 1), f32(0, 0, 0, 1), 0),
  field_gradients: (gpu) =>
    gpu.states.gradients(new Uint8Array(16), { field: "m0" }),
  hold: (gpu) => gpu.tensor(large(1)).sum().read(),
  fill: (gpu) => gpu.tensor(large(1)).sum().read(),
  allocate: (gpu) => gpu.tensor(f32(1)).exp().compute(),
  reserve: (gpu) => gpu.lerp(large(1), large(1), 0),
  submit: (gpu) => gpu.lerp(f32(1), f32(1), 0),
};

for (const [method, ask] of Object.entries(REFUSED)) {
  test(`${method} that fails rejects the call that needs it, and no other`, async () => {
    const { gpu, core } = await begin();
    core.failures = { [method]: { code: "limit-exceeded", message: "no" } };
    const refused = ask(gpu);
    const other = gpu.lerp(f32(4), f32(4), 0);
    answer({ gpu, core });
    await assert.rejects(refused, { code: "limit-exceeded", message: /: no$/ });
    assert.deepEqual(await other, f32(4));
    await gpu.dispose();
  });
}

test("a lost device: the page fills its tensors, and only then the core goes on", async () => {
  const { gpu, core } = await begin();
  const heard = [];
  for (const event of ["lost", "restored", "fallback"]) {
    gpu.on(event, ({ type, lostTensors }) =>
      heard.push([type, lostTensors.length]),
    );
  }
  const kept = gpu.tensor(large(2));
  const gone = gpu.tensor(large(3), undefined, { keep: false, label: "g" });
  const computed = kept.add(1).compute();
  answer({ gpu, core });
  const sum = (await computed).sum().read();
  const before = kept.sum().read();
  core.lose();
  const failed = gone.sum().read();
  core.restore();
  assert.deepEqual(core.waits, ["wait"]);
  await settled();
  assert.deepEqual(core.waits, ["wait", "resume"]);
  // What is computed again goes first.
  assert.equal(core.queued[0].isRestoring, true);
  failed.catch(() => {});
  answer({ gpu, core });
  assert.deepEqual(await before, f32(2 * LARGE));
  assert.deepEqual(await sum, f32(3 * LARGE));
  await assert.rejects(failed, { code: "device-lost" });
  assert.deepEqual(heard, [
    ["lost", 0],
    ["restored", 1],
  ]);
  await gpu.dispose();
});

/** What ends a session, and the error of whatever was pending. */
const ENDS = {
  "its worker is terminated": [
    ({ worker }) => worker.terminate(),
    { code: "fatal", message: /ended with its worker/ },
  ],
  "its core traps": [
    ({ gpu, core }) => {
      core.failures = { flush: new WebAssembly.RuntimeError("unreachable") };
      gpu.flush();
    },
    { code: "fatal", message: /unreachable/ },
  ],
  "it is disposed of": [({ gpu }) => gpu.dispose(), { code: "disposed" }],
};

const rejectsAs = (reason, error) =>
  assert.rejects(Promise.reject(reason), error);

for (const [name, [end, error]] of Object.entries(ENDS)) {
  test(`a session ends where ${name}: nothing stays pending`, async () => {
    const session = await begin();
    const { gpu, core } = session;
    const sent = gpu.lerp(f32(1), f32(1), 0);
    gpu.flush();
    core.room = 0;
    const [queued, plan] = [
      gpu.lerp(f32(1), f32(1), 0),
      gpu.explain(() => gpu.lerp(f32(1), f32(1), 0).catch(() => {})),
    ];
    await settled();
    const text = await plan;
    const pending = Promise.allSettled([sent, queued, gpu.ready]);
    end(session);
    await settled();
    for (const { reason } of await pending) await rejectsAs(reason, error);
    await assert.rejects(gpu.lerp(f32(1), f32(1), 0), error);
    assert.equal(text, "lerp 1");
    assert.equal(gpu.info, undefined);
    const { gpu: next } = await begin();
    await next.dispose();
  });
}

test("a plan that is not here when the session ends rejects", async () => {
  const { gpu, worker } = await begin();
  worker.ports[0].onmessage = null;
  const plan = gpu.explain(() => {});
  worker.terminate();
  await assert.rejects(plan, { code: "fatal" });
});

test("workers that cannot be used are told of when a session opens", async () => {
  const mute = new InProcessWorker(() => {});
  const opening = open({ worker: mute });
  await settled();
  mute.dispatchEvent(Object.assign(new Event("error"), { message: "404" }));
  await assert.rejects(opening, {
    code: "unsupported",
    message: /could not be started \(404\).*worker-script\.js/,
  });
  const refusals = {
    "of another origin": () => {
      throw new Error("of another origin");
    },
    // Node has no workers of pages.
    "Worker is not defined": "/worker-script.js",
  };
  for (const [why, worker] of Object.entries(refusals)) {
    await assert.rejects(open({ worker }), {
      code: "unsupported",
      message: new RegExp(`could not be started .*${why}.*worker-script\\.js`),
    });
  }
  const old = new InProcessWorker((message) =>
    connect({ ...message, framebatch: 0 }),
  );
  await assert.rejects(open({ worker: old }), {
    code: "unsupported",
    message: /another version/,
  });
  await assert.rejects(open({ worker: 3 }), {
    code: "invalid-input",
    message: /worker must be a Worker/,
  });
  await assert.rejects(open({ wroker: mute }), /there is no option 'wroker'/);
  fake.opening = Promise.reject({ code: "no-adapter", message: "none" });
  fake.opening.catch(() => {});
  const worker = new InProcessWorker(connect);
  const refused = open({ worker });
  await assert.rejects(refused, { code: "no-adapter", message: "none" });
  fake.opening = Promise.resolve();
});

test("the page's worker is one for all its sessions, and ends with the last", async () => {
  const made = [];
  globalThis.Worker = class extends InProcessWorker {
    constructor(address, options) {
      super(connect);
      made.push({ worker: this, address: String(address), options });
    }
  };
  try {
    const [a, b, c] = [await open(), shared(), shared()];
    await b.ready;
    assert.equal(b, c);
    assert.equal(made.length, 1);
    assert.match(made[0].address, /worker-script\.js$/);
    assert.deepEqual(made[0].options, { type: "module" });
    await a.dispose();
    assert.equal(made[0].worker.isTerminated, false);
    await b.dispose();
    assert.equal(made[0].worker.isTerminated, true);
    const own = await open({ worker: "/own.js" });
    assert.equal(made[1].address, "/own.js");
    await own.dispose();
    assert.equal(made[1].worker.isTerminated, true);
    const given = new InProcessWorker(connect);
    await (await open({ worker: () => given })).dispose();
    assert.equal(given.isTerminated, false, "it belongs to who made it");
    // Ended in the task that made it, as by a component that is shown and hidden at once.
    const opened = fake.opened;
    await shared().dispose();
    assert.equal(made[2].worker.isTerminated, true);
    assert.equal(fake.opened, opened, "no device is opened for it");
  } finally {
    delete globalThis.Worker;
  }
});

test("what does not reach into a worker says so, and names the direct entry", async () => {
  const { gpu } = await begin();
  assert.equal(gpu.device, undefined);
  const error = { code: "unsupported", message: /open of 'framebatch'/ };
  const tensor = gpu.tensor(large(1));
  assert.throws(() => tensor.gpuBuffer(), error);
  const buffer = {
    ...{ usage: 0x84, size: 16, mapState: "unmapped" },
    [Symbol.toStringTag]: "GPUBuffer",
  };
  assert.throws(() => gpu.tensor(buffer, [4]), error);
  assert.equal(await isSupported(), false);
  await gpu.dispose();
});

test("what nobody waits for goes along with calls, or a little later alone", async () => {
  const { gpu, core } = await begin();
  const tensor = gpu.tensor(large(1));
  assert.equal(core.counts.fills, 0);
  await sleep(40);
  assert.equal(core.counts.fills, 1);
  const sum = tensor.sum().read();
  const given = new AbortController();
  const call = gpu.lerp(f32(1), f32(1), 0, { signal: given.signal });
  gpu.flush();
  given.abort();
  await assert.rejects(call, { name: "AbortError" });
  await sleep(40);
  assert.equal(core.counts.aborts, 1);
  core.answer();
  assert.deepEqual(await sum, f32(LARGE));
  await gpu.dispose();
});

test("many operands, and full batches, go ahead of the flush", async () => {
  const { gpu, core } = await begin();
  const long = new Float32Array(2 ** 19);
  const calls = [1, 2, 3].map(() => gpu.lerp(long, long, 0));
  assert.ok(core.counts.submits > 0);
  answer({ gpu, core });
  await Promise.all(calls);
  await gpu.dispose();
  const full = await begin({ maxBatchSize: 4 });
  for (let i = 0; i < 4; i += 1)
    full.gpu.lerp(f32(1), f32(1), 0).catch(() => {});
  assert.equal(full.core.counts.submits, 4);
  await full.gpu.dispose();
});

test("what is due is sent when the core in the worker says so", async () => {
  const { gpu, core } = await begin({ flush: "eager" });
  core.dueAt = NaN;
  const call = gpu.lerp(f32(1), f32(1), 0);
  await sleep(5);
  assert.deepEqual([core.counts.submits, core.counts.flushes], [1, 0]);
  core.dueAt = 0;
  const now = gpu.lerp(f32(1), f32(1), 0, { flush: "now" });
  await sleep(5);
  assert.ok(core.counts.flushes > 0);
  core.answer();
  await Promise.all([call, now]);
  await gpu.dispose();
});

test("numbers are those of the last message, and listeners hear of batches", async () => {
  const { gpu, core } = await begin();
  assert.equal(gpu.stats().calls, 0);
  const heard = [];
  gpu.on("batch", ({ calls, startTime }) => heard.push([calls, startTime > 0]));
  core.room = 2;
  const own = [];
  const onMetrics = ({ calls }) => own.push(calls);
  const calls = [0, 1, 2].map(() => gpu.lerp(f32(1), f32(1), 0));
  calls.push(gpu.lerp(f32(1), f32(1), 0, { onMetrics }));
  const room = gpu.desiredSize;
  answer({ gpu, core });
  await Promise.all(calls);
  assert.equal(gpu.desiredSize, 2);
  assert.equal(room, 1000 - 4, "less what the worker has not seen");
  assert.equal(gpu.stats().calls, 4);
  assert.deepEqual(heard, [[4, true]]);
  assert.deepEqual(own, [4]);
  await gpu.dispose();
});

test("a page that waits for room goes on when there is some", async () => {
  const { gpu, core } = await begin();
  core.room = 0;
  const call = gpu.lerp(f32(1), f32(1), 0);
  answer({ gpu, core });
  await call;
  let isReady = false;
  const ready = gpu.ready.then(() => (isReady = true));
  await settled();
  assert.equal(isReady, false);
  core.room = 5;
  const other = gpu.lerp(f32(1), f32(1), 0);
  answer({ gpu, core });
  await Promise.all([ready, other]);
  await gpu.dispose();
});

test("a warm-up compiles in the worker", async () => {
  const { gpu, core } = await begin();
  const warm = gpu.warmup(() => gpu.lerp(f32(1), f32(1), 0).catch(() => {}));
  await settled();
  assert.equal(core.warmups.length, 1);
  core.warmed();
  await warm;
  const failed = gpu.warmup(() => {});
  await settled();
  core.warmed({ code: "shader", message: "wrong" });
  await assert.rejects(failed, { code: "shader", message: "warmup: wrong" });
  const call = gpu.lerp(f32(2), f32(2), 0);
  answer({ gpu, core });
  assert.deepEqual(await call, f32(2));
  await gpu.dispose();
});

test("what compilers say in the worker is told in the page's words", async () => {
  let ask;
  const { gpu, core } = await begin();
  core.explain_kernels = (explain) => (ask = explain);
  gpu.kernel({
    name: "wrong",
    inputs: { x: "f32" },
    output: "f32",
    code: "fn element(x: f32) -> f32 { return x; }",
  });
  let code;
  core.kernel = (...told) => ([, , code] = told);
  await sleep(40);
  const message = { type: "error", lineNum: 1, linePos: 30, message: "no" };
  const compiler = (messages) => ({
    getCompilationInfo: () => Promise.resolve({ messages }),
  });
  assert.match(await ask(compiler([message]), code), /^wrong:1:\d+: no/);
  assert.equal(await ask(compiler([message]), "another"), undefined);
  const late = ask(compiler([]), code);
  await gpu.dispose();
  assert.equal(await late, undefined, "a session that is over says nothing");
});

test("what is measured is kept by the page, from visit to visit", async () => {
  const kept = new Map([["other", "1"]]);
  globalThis.localStorage = Object.assign(Object.fromEntries(kept), {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, text) => kept.set(key, text),
  });
  try {
    const { gpu, core } = await begin();
    core.model = () => Float64Array.of(1, 2);
    core.tell("tuned", "");
    await settled();
    const [, [key, text]] = [...kept];
    assert.match(key, /^framebatch /);
    assert.equal(text, "[1,2]");
    await gpu.dispose();
  } finally {
    delete globalThis.localStorage;
  }
});

test("a page counts items by the rule of the core", () => {
  for (const [live, most] of [
    [429_496_729, Infinity],
    [80_000_001, 1024],
    [80_000_000, 2],
  ]) {
    const ask = (model, item) =>
      Math.max(1, Math.min(Math.floor(Math.max(0, live - model) / item), most));
    const sizes = sizesOf(ask);
    assert.deepEqual(sizes, { liveBytes: live, mostItems: most });
    for (const [model, item] of [
      [0, 1],
      [0, 1000],
      [1e6, 12_345],
      [1e9, 7],
    ]) {
      assert.equal(batchSize(sizes, model, item, Infinity), ask(model, item));
    }
  }
  // 128 tokens of MiniLM, as the documentation of `optimalBatchSize` counts them.
  const bytes = 4 * (128 * (2 * 1536 + 384) + 128 + 384 + 4);
  assert.equal(textBytes(128, 384, 1536), bytes);
});
