// The session that a page's callers share, and the calls that are made while it opens.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, fake, settled, stateOf } from "./face.mjs";
import { gate, lerp } from "./opening.mjs";

const { shared } = face;
const f32 = (...values) => new Float32Array(values);

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
  const gpu = shared({ flush: "frame" });
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

const GIVE =
  "; give the options to the first shared() of the page, or open() a session of your own";
const first = () => {};

/** What the session was opened with, what is asked for later, and what is said of it. */
const LATER = [
  [{ engine: "cpu" }, { engine: "cpu" }, undefined],
  [{}, { engine: "auto", flush: "auto", devtools: false }, undefined],
  [{}, { engine: undefined }, undefined],
  [{ preset: "frame" }, { flush: "frame" }, undefined],
  [{ flush: first }, { flush: first }, undefined],
  [
    { engine: "auto" },
    { engine: "cpu" },
    'engine "auto", so engine "cpu" has no effect',
  ],
  [
    {},
    { engine: "cpu" },
    'the default of engine, "auto", so engine "cpu" has no effect',
  ],
  [
    { preset: "latency" },
    { overflow: "latest" },
    'the default of overflow, "reject", so overflow "latest" has no effect',
  ],
  [
    {},
    { maxInFlight: 5 },
    "the default of maxInFlight, so maxInFlight 5 has no effect",
  ],
  [
    {},
    { flush: () => {} },
    'the default of flush, "auto", so flush (a function) has no effect',
  ],
  [
    { flush: first },
    { flush: () => {} },
    "flush (a function), so flush (a function) has no effect",
  ],
];

for (const [opened, wanted, said] of LATER) {
  test(`shared: other options later: ${said ?? "nothing is said"}`, async (context) => {
    const warn = context.mock.method(console, "warn", () => {});
    const gpu = shared(opened);
    assert.equal(shared(wanted), gpu);
    shared(wanted);
    assert.deepEqual(
      warn.mock.calls.map(({ arguments: [message] }) => message),
      said === undefined
        ? []
        : [
            `framebatch: shared: the page's session was opened with ${said}${GIVE}`,
          ],
    );
    await gpu.ready;
  });
}

test("open and shared: another wasm than what is loaded is said to have no effect", async (context) => {
  const warn = context.mock.method(console, "warn", () => {});
  const gpu = shared();
  await gpu.ready;
  shared({ wasm: "/later.wasm" });
  await (await face.open({ wasm: "/later.wasm" })).dispose();
  assert.equal(warn.mock.callCount(), 1);
  assert.match(
    warn.mock.calls[0].arguments[0],
    /the option wasm has no effect, because/,
  );
});
