// Bad input: a code, a sentence that names the argument, and an untouched batch.

import assert from "node:assert/strict";
import { lightTest as test, openSite, testIn } from "./site.mjs";

const INSECURE = "insecure.test";

// A name that is not loopback, so that a page there is no secure context.
const site = openSite({ loopback: [INSECURE] });

// Each row: what is wrong, the call as text (run in the page), and words of the message.
const CALLS = [
  ["no array", "gpu.lerp(null, f(4), 0.5)", ["lerp", "a", "Float32Array"]],
  ["wrong type", "gpu.lerp(f(4), [1, 2, 3, 4], 0.5)", ["b", "Float32Array"]],
  [
    "wrong element",
    "gpu.lerp(f(4), new Float64Array(4), 0.5)",
    ["b", "Float64Array"],
  ],
  ["bytes wanted", "gpu.states.gradients(f(16))", ["states", "Uint8Array"]],
  ["unequal lengths", "gpu.lerp(f(4), f(5), 0.5)", ["b", "5", "4"]],
  ["half a quaternion", "gpu.slerp(f(6), f(6), 0.5)", ["qa", "6", "4"]],
  [
    "half a state",
    "gpu.states.lerp(u(24), u(24), 0)",
    ["states.lerp", "24", "16"],
  ],
  [
    "width does not divide",
    "gpu.lerp(f(7), f(7), f(2), { width: 3 })",
    ["7", "3"],
  ],
  ["too few t", "gpu.lerp(f(4), f(4), f(3))", ["t", "3", "4"]],
  ["detached", "gpu.lerp(detached(4), f(4), 0.5)", ["a", "detached"]],
  ["NaN t", "gpu.lerp(f(4), f(4), NaN)", ["t", "NaN"]],
  [
    "NaN in t",
    "gpu.lerp(f(2), f(2), new Float32Array([0, NaN]))",
    ["t", "NaN"],
  ],
  [
    "three control points",
    "gpu.bezier([f(4), f(4), f(4)], 0.5)",
    ["bezier", "3", "4"],
  ],
  ["no steps", "gpu.states.sequence(u(16), u(16), 0, 'lerp')", ["steps", "0"]],
  [
    "NaN in rate",
    "gpu.states.descend(u(16), new Float32Array([NaN]))",
    ["rate[0]", "NaN"],
  ],
  [
    "no formula",
    "gpu.states.gradients(u(16), { field: 'rho * ' })",
    ["states.gradients", "field", "expected", "character 7"],
  ],
  [
    "an unknown name",
    "gpu.states.gradients(u(16), { field: 'rho * x' })",
    ["'x'", "rho, theta, layer", "character 7"],
  ],
  ["t is text", "gpu.slerp(f(4), f(4), '0.5')", ["t", "number"]],
  [
    "into too short",
    "gpu.lerp(f(4), f(4), 0, { into: f(3) })",
    ["into", "3", "4"],
  ],
  ["unknown call option", "gpu.lerp(f(4), f(4), 0, { prio: 1 })", ["prio"]],
  [
    "the label is named",
    "gpu.lerp(f(4), f(5), 0, { label: 'door' })",
    ["door"],
  ],
];

testIn(
  "chromium",
  "bad calls reject with invalid-input and touch nothing else",
  async (t) => {
    await site.page(async (page) => {
      const { outcomes, good, counts, stats } = await page.evaluate(
        async (rows) => {
          const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
          const f = (length) => new Float32Array(length);
          const u = (length) => new Uint8Array(length);
          const detached = (length) => {
            const array = f(length);
            structuredClone(array, { transfer: [array.buffer] });
            return array;
          };
          const before = counting.count();
          const good = [];
          const bad = rows.map((text, i) => {
            good.push(gpu.lerp(f(3), f(3).fill(i), 1));
            const make = new Function(
              "gpu",
              "f",
              "u",
              "detached",
              `return ${text}`,
            );
            return workload.outcome(make(gpu, f, u, detached));
          });
          gpu.flush();
          const outcomes = await Promise.all(bad);
          const values = await Promise.all(good);
          const stats = gpu.stats();
          await gpu.dispose();
          return {
            outcomes,
            good: values.map((value) => Array.from(value)),
            counts: counting.since(before),
            stats,
          };
        },
        CALLS.map(([, text]) => text),
      );
      for (const [i, [name, , words]] of CALLS.entries()) {
        await t.test(name, () => {
          const { code, message, known } = outcomes[i];
          assert.equal(code, "invalid-input", message);
          assert.ok(known, "not a FramebatchError");
          for (const word of words) assert.ok(message.includes(word), message);
        });
      }
      assert.deepEqual(
        good,
        CALLS.map((_, i) => [i, i, i]),
      );
      assert.equal(counts.submits, 1);
      assert.equal(counts.readMaps, 1);
      assert.equal(stats.settled, CALLS.length);
      assert.equal(stats.pending, 0);
    });
  },
);

const OPTIONS = [
  ["unknown option", { batchSize: 3 }, ["batchSize"]],
  ["unknown engine", { engine: "tpu" }, ["engine", "tpu"]],
  ["unknown policy", { flush: "sometimes" }, ["flush", "sometimes"]],
  ["zero capacity", { queueCapacity: 0 }, ["queueCapacity", "0"]],
  ["zero batch", { maxBatchSize: 0 }, ["maxBatchSize", "0"]],
  ["negative wait", { maxWaitMs: -1 }, ["maxWaitMs", "-1"]],
  ["unknown preset", { preset: "turbo" }, ["preset", "turbo"]],
  ["unknown overflow", { overflow: "drop" }, ["overflow", "drop"]],
  ["unknown feature", { requiredFeatures: ["time-travel"] }, ["time-travel"]],
  [
    "limit beyond the adapter's",
    { requiredLimits: { maxBufferSize: 2 ** 50 } },
    ["maxBufferSize", "1125899906842624"],
  ],
];

test("bad options are refused by name", async (t) => {
  await site.page(async (page) => {
    for (const [name, options, words] of OPTIONS) {
      await t.test(name, async () => {
        const { code, message } = await page.evaluate(async (options) => {
          const opening = framebatch.open({ engine: "gpu", ...options });
          return workload.outcome(opening.then(() => []));
        }, options);
        assert.equal(code, "invalid-input", message);
        for (const word of words) assert.ok(message.includes(word), message);
      });
    }
  });
});

test("the device has the features that the page asks for", () =>
  site.page(async (page) => {
    const { offered, has, told, unasked } = await page.evaluate(async () => {
      const adapter = await navigator.gpu.requestAdapter();
      const known = ["float32-filterable", "texture-compression-etc2"];
      const offered = known.filter((name) => adapter.features.has(name));
      const plain = await framebatch.open({ engine: "gpu" });
      const unasked = known.filter((name) => plain.device.features.has(name));
      await plain.dispose();
      const gpu = await framebatch.open({
        engine: "gpu",
        requiredFeatures: offered,
      });
      const has = known.filter((name) => gpu.device.features.has(name));
      const told = known.filter((name) => gpu.info.features.includes(name));
      await gpu.dispose();
      return { offered, has, told, unasked };
    });
    assert.ok(offered.length > 0, "SwiftShader and llvmpipe have some");
    assert.deepEqual([has, told, unasked], [offered, offered, []]);
  }));

test("empty input is answered with an empty array", () =>
  site.page(async (page) => {
    const lengths = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const none = new Float32Array(0);
      const results = await Promise.all([
        gpu.lerp(none, none, 0.5),
        gpu.lerp(none, none, none),
        gpu.slerp(none, none, 0.5),
        gpu.states.gradients(new Uint8Array(0)),
      ]);
      await gpu.dispose();
      return results.map((result) => result.length);
    });
    assert.deepEqual(lengths, [0, 0, 0, 0]);
  }));

test("a page that is not secure: insecure-context, and engines cpu and auto work", () =>
  site.page(
    async (page) => {
      const warnings = [];
      page.on("console", (message) => {
        if (message.type().startsWith("warn")) warnings.push(message.text());
      });
      const { secure, refused, values, reasons } = await page.evaluate(
        async () => {
          const opening = framebatch.open({ engine: "gpu" });
          const refused = await workload.outcome(opening.then(() => []));
          const cpu = await framebatch.open({ engine: "cpu" });
          const auto = await framebatch.open();
          const shared = framebatch.shared();
          await shared.ready;
          const reasons = [cpu, auto, shared].map((gpu) => gpu.info.reason);
          await Promise.all([auto.dispose(), shared.dispose()]);
          const value = await cpu.lerp(
            new Float32Array([0]),
            new Float32Array([8]),
            0.5,
          );
          const secure = isSecureContext;
          return { secure, refused, values: Array.from(value), reasons };
        },
      );
      const insecure = "insecure-context";
      assert.deepEqual(reasons, ["asked", insecure, insecure]);
      assert.equal(warnings.length, 1, "once a page");
      assert.match(warnings[0], /run on the CPU, because .* over https/);
      assert.equal(secure, false);
      assert.equal(refused.code, "insecure-context");
      assert.match(refused.message, /https/);
      assert.deepEqual(values, [4]);
    },
    { host: INSECURE },
  ));

test("no WebGPU: unsupported", () =>
  site.page(
    async (page) => {
      const { code, reason, supported } = await page.evaluate(async () => {
        const opening = framebatch.open({ engine: "gpu" });
        const { code } = await workload.outcome(opening.then(() => []));
        const { reason } = (await framebatch.open()).info;
        return { code, reason, supported: await framebatch.isSupported() };
      });
      assert.equal(code, "unsupported");
      assert.equal(reason, "unsupported");
      assert.equal(supported, false);
    },
    {
      prepare: () =>
        Object.defineProperty(navigator, "gpu", { value: undefined }),
    },
  ));
