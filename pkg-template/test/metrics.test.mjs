// Who hears of a batch, and that nothing is measured while nobody listens.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, fake, manual, settled } from "./face.mjs";

const one = new Float32Array([1]);
const ask = (gpu, options) => gpu.lerp(one, one, 0.5, options);
const ignore = () => {};

test("nobody listens: nothing is measured", async () => {
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  const calls = [ask(gpu), ask(gpu, { label: "x" })];
  gpu.flush();
  await Promise.all(calls);
  assert.equal(core.counts.measures, 0);
});

test("on batch: every batch while it listens, with its facts", async () => {
  const { gpu, core } = await manual();
  const heard = [];
  const off = gpu.on("batch", (facts) => heard.push(facts));
  assert.equal(core.measuring, true);
  for (const count of [3, 2]) {
    const calls = Array.from({ length: count }, () => ask(gpu));
    gpu.flush();
    core.answer();
    await Promise.all(calls);
  }
  assert.deepEqual(
    heard.map(({ calls }) => calls),
    [3, 2],
  );
  const { first, last, bytesUp, gpuMs } = heard[0];
  assert.deepEqual(
    [first, last, bytesUp, gpuMs],
    [undefined, undefined, 10, null],
  );
  off();
  assert.equal(core.measuring, false);
  const call = ask(gpu);
  gpu.flush();
  core.answer();
  await call;
  assert.equal(heard.length, 2);
});

test("on batch, while the session opens: measured from the first batch on", async () => {
  const gpu = face.shared({ flush: "manual" });
  const heard = [];
  gpu.on("batch", ({ calls }) => heard.push(calls));
  const call = ask(gpu);
  await gpu.ready;
  gpu.flush();
  fake.core.answer();
  await call;
  assert.deepEqual(heard, [1]);
  await gpu.dispose();
});

test("onMetrics: each call hears of its own batch, when all of it is back", async () => {
  const { gpu, core } = await manual();
  const heard = [];
  const onMetrics = (name) => (facts) => heard.push([name, facts.calls]);
  const first = [ask(gpu), ask(gpu, { onMetrics: onMetrics("a") }), ask(gpu)];
  gpu.flush();
  const second = [
    ask(gpu, { onMetrics: onMetrics("b") }),
    ask(gpu, { onMetrics: onMetrics("c") }),
  ];
  gpu.flush();
  core.answerInChunks(1, { behind: () => heard.push("chunk") });
  assert.deepEqual(heard, ["chunk", "chunk", ["a", 3], "chunk"]);
  assert.equal(core.measuring, true, "b and c are on their way");
  core.answer();
  assert.deepEqual(heard.slice(4), [
    ["b", 2],
    ["c", 2],
  ]);
  assert.equal(core.measuring, false);
  await Promise.all([...first, ...second]);
});

test("onMetrics: a call between those of a batch that goes with a later one", async () => {
  const { gpu, core } = await manual();
  const heard = [];
  const onMetrics = ({ calls }) => heard.push(calls);
  const calls = [ask(gpu), ask(gpu, { onMetrics }), ask(gpu)];
  gpu.flush();
  core.flights.push(core.flights[0].splice(1, 1));
  core.answer();
  assert.deepEqual(heard, []);
  core.answer();
  assert.deepEqual(heard, [1]);
  assert.equal(core.measuring, false);
  await Promise.all(calls);
});

test("onMetrics: in a batch that is sent, and answered, as it fills", async () => {
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  core.full = 2;
  const heard = [];
  const onMetrics = ({ calls }) => heard.push(calls);
  await Promise.all([ask(gpu, { onMetrics }), ask(gpu, { onMetrics })]);
  assert.deepEqual(heard, [2, 2]);
  assert.equal(core.measuring, false);
});

test("onMetrics: of a reading, and of a call made while the session opens", async () => {
  const gpu = face.shared({ flush: "manual" });
  const heard = [];
  const onMetrics = ({ calls }) => heard.push(calls);
  const calls = [
    ask(gpu, { onMetrics }),
    gpu.tensor([1, 2]).relu().read({ onMetrics }),
  ];
  await gpu.ready;
  gpu.flush();
  fake.core.answer();
  await Promise.all(calls);
  assert.deepEqual(heard, [2, 2]);
  assert.equal(fake.core.measuring, false);
  await gpu.dispose();
});

const UNHEARD = {
  "an aborted call": async (gpu, core, onMetrics) => {
    const controller = new AbortController();
    const call = ask(gpu, { onMetrics, signal: controller.signal });
    controller.abort();
    await call.catch(ignore);
  },
  "a call that the core refuses": async (gpu, core, onMetrics) => {
    core.failures.submit = { code: "invalid-input", message: "no" };
    await ask(gpu, { onMetrics }).catch(ignore);
  },
  "a call inside explain": async (gpu, core, onMetrics) => {
    gpu.explain(() => ask(gpu, { onMetrics }));
  },
  "a wrong call": async (gpu, core, onMetrics) => {
    await gpu.lerp(one, new Float32Array(3), 0.5, { onMetrics }).catch(ignore);
  },
};
for (const [name, make] of Object.entries(UNHEARD)) {
  test(`onMetrics: ${name} hears nothing, and measuring ends`, async () => {
    const { gpu, core } = await manual();
    await make(gpu, core, () => assert.fail("it was told"));
    assert.equal(core.measuring, false);
    const call = ask(gpu);
    gpu.flush();
    core.answer();
    await call;
  });
}

test("onMetrics: a superseded call is forgotten with the next batch", async () => {
  const { gpu, core } = await manual({ overflow: "latest" });
  const heard = [];
  const onMetrics = (facts) => heard.push(facts.calls);
  const older = ask(gpu, { onMetrics, key: "k" }).catch(ignore);
  core.supersede(core.queued[0].ticket);
  await older;
  const newer = ask(gpu, { key: "k" });
  gpu.flush();
  core.answer();
  await newer;
  assert.equal(core.measuring, false);
  assert.ok(heard.length <= 1);
});

test("a listener that throws is reported and stops nobody", async () => {
  const { gpu, core } = await manual();
  const heard = [];
  gpu.on("batch", () => {
    throw new Error("listener");
  });
  gpu.on("batch", ({ calls }) => heard.push(calls));
  // Reported as an error that nobody catches, which the runner would count.
  const { queueMicrotask } = globalThis;
  const reported = [];
  globalThis.queueMicrotask = (run) => {
    try {
      run();
    } catch (error) {
      reported.push(error.message);
    }
  };
  const call = ask(gpu);
  gpu.flush();
  core.answer();
  globalThis.queueMicrotask = queueMicrotask;
  await call;
  assert.deepEqual(reported, ["listener"]);
  assert.deepEqual(heard, [1]);
});

test("a session that ends in a listener", async () => {
  const { gpu, core } = await manual();
  gpu.on("batch", () => gpu.dispose());
  const calls = [ask(gpu), ask(gpu)];
  gpu.flush();
  core.answer();
  await Promise.all(calls);
  await settled();
  await assert.rejects(ask(gpu), { code: "disposed" });
});

test("devtools: an entry a batch, with its facts", async () => {
  const { gpu, core } = await manual({ devtools: true });
  assert.equal("devtools" in fake.config, false);
  core.answersAtOnce = true;
  performance.clearMeasures();
  const call = ask(gpu);
  gpu.flush();
  await call;
  const entries = performance.getEntriesByName("framebatch batch");
  assert.equal(entries.length, 1);
  assert.equal(entries[0].detail.calls, 1);
  assert.ok(Math.abs(entries[0].duration - 9) < 1e-6);
  performance.clearMeasures();
});

/** The spread of a number that is the same in every run. */
const always = (x) => ({ mean: x, min: x, max: x, sd: 0, p50: x, p95: x });

test("profile: means of the runs behind the first", async () => {
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  core.gpuMs = 7;
  core.flops = 3500;
  let runs = 0;
  const run = async () => {
    runs += 1;
    const calls = [ask(gpu), ask(gpu)];
    gpu.flush();
    await Promise.all(calls);
    await ask(gpu, { flush: "now" });
  };
  const told = await gpu.profile(run, { iterations: 4 });
  assert.equal(runs, 5);
  const { runMs, utilization, itemsPerSecond, ...counts } = told;
  assert.deepEqual(counts, {
    ...{ iterations: 4, batches: 2, calls: 3, items: 300, subBatches: 2 },
    ...{ bytesUp: 20, bytesDown: 40, encodeMs: always(4) },
    ...{ flops: 7000, kernelBytes: 1400 },
    ...{ flopsPerSecond: 500_000, kernelBytesPerSecond: 100_000 },
    ...{ transferMs: always(6), gpuMs: always(14), readMs: always(8) },
    ...{ upBytesPerSecond: (20 / 6) * 1000, downBytesPerSecond: 5000 },
    kernelEfficiency: 14 / 28,
  });
  assert.equal(utilization, 14 / runMs.mean);
  assert.equal(itemsPerSecond, (300 / runMs.mean) * 1000);
  assert.ok(runMs.min > 0 && runMs.min <= runMs.p50);
  assert.ok(runMs.p50 <= runMs.p95 && runMs.p95 <= runMs.max);
  assert.equal(core.measuring, false);
  core.gpuMs = null;
  const unknown = await gpu.profile(run, { iterations: 1 });
  assert.equal(unknown.gpuMs, null);
  assert.equal(unknown.flops, 7000);
  assert.equal(unknown.flopsPerSecond, null);
  assert.equal(unknown.kernelEfficiency, null);
});

const SPREADS = [
  [[8], { mean: 8, min: 8, max: 8, sd: 0, p50: 8, p95: 8 }],
  [[1, 5], { mean: 3, min: 1, max: 5, sd: Math.sqrt(8), p50: 1, p95: 5 }],
  [
    [4, 2, 6, 8, 5],
    { mean: 5, min: 2, max: 8, sd: Math.sqrt(20 / 4), p50: 5, p95: 8 },
  ],
];
for (const [times, expected] of SPREADS) {
  test(`profile: kernels of ${times} ms are spread so`, async () => {
    const { gpu, core } = await manual();
    core.answersAtOnce = true;
    const next = [99, ...times][Symbol.iterator]();
    const run = () => {
      core.gpuMs = next.next().value;
      return ask(gpu);
    };
    const { gpuMs } = await gpu.profile(run, { iterations: times.length });
    assert.deepEqual(gpuMs, expected);
  });
}

test("profile: operations are unknown where those of one batch are", async () => {
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  core.gpuMs = 7;
  const run = async () => {
    for (core.flops of [3500, null]) await ask(gpu, { flush: "now" });
  };
  const told = await gpu.profile(run, { iterations: 2 });
  assert.deepEqual([told.flops, told.flopsPerSecond], [null, null]);
  assert.equal(told.kernelBytesPerSecond, 100_000);
});

test("profile: of runs without a batch nothing is known but how long these took", async () => {
  const { gpu } = await manual();
  const told = await gpu.profile(() => {}, { iterations: 3 });
  assert.equal(told.batches, 0);
  assert.deepEqual(told.readMs, always(0));
  for (const name of [
    ...["gpuMs", "flops", "kernelBytes", "utilization", "flopsPerSecond"],
    ...["upBytesPerSecond", "downBytesPerSecond", "kernelBytesPerSecond"],
  ]) {
    assert.equal(told[name], null, name);
  }
});

test("profile: what fn throws arrives, and measuring ends", async () => {
  const { gpu, core } = await manual();
  const error = new Error("run");
  const run = () => {
    throw error;
  };
  await assert.rejects(gpu.profile(run), error);
  assert.equal(core.measuring, false);
  await gpu.dispose();
  await assert.rejects(gpu.profile(ignore), { code: "disposed" });
});

const WRONG = [
  [(gpu) => gpu.on("batch", 3), /it takes a function, got number/],
  [(gpu) => gpu.on("bach", ignore), /give one of lost, .*, batch/],
  [(gpu) => ask(gpu, { onMetrics: 3 }), /onMetrics must be a function/],
  [(gpu) => gpu.profile(3), /fn must be a function, got number/],
  [(gpu) => gpu.profile(ignore, 3), /options must be an object/],
  [(gpu) => gpu.profile(ignore, { runs: 3 }), /there is no option 'runs'/],
  [(gpu) => gpu.profile(ignore, { iterations: 0 }), /whole number from 1/],
  [() => face.open({ devtools: 3 }), /devtools must be a boolean, got number/],
];
for (const [make, message] of WRONG) {
  test(`refused: ${message}`, async () => {
    const { gpu } = await manual();
    await assert.rejects(async () => make(gpu), {
      code: "invalid-input",
      message,
    });
  });
}
