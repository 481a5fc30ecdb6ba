// What becomes of results on the device after a loss, and what of them the page remembers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual, settled } from "./face.mjs";
import { collect, growth } from "./heap.mjs";

const f32 = (...values) => new Float32Array(values);
const GONE = { code: "device-lost", message: /could not be restored/ };

/** Sends what is queued, answers it, and gives what came of the promises. */
async function sent({ gpu, core }, ...promises) {
  gpu.flush();
  while (core.flights.length > 0) core.answer();
  return Promise.all(promises);
}

/** Loses the device, finds another, and tells what `restored` said is lost. */
function replace({ gpu, core }, event = "restored") {
  let lost;
  const off = gpu.on(event, ({ lostTensors }) => (lost = lostTensors));
  core.lose();
  core.restore(event);
  off();
  return lost;
}

test("what was written in place is named, and reading it rejects until all is written", async () => {
  for (const event of ["restored", "fallback"]) {
    const session = await manual();
    const { gpu } = session;
    const s = gpu.tensor(f32(1, 2), undefined, { label: "s" });
    const kept = gpu.tensor(f32(3, 4));
    await sent(session, s.add(1).computeInto(s), kept.read(), kept.read());
    const lost = replace(session, event);
    assert.deepEqual(
      lost.map(({ label, elements }) => [label, elements]),
      [["s", 2]],
    );
    const message =
      "tensor (label 's'): its data was lost with the device, and could not be restored (only the device had it); make it anew";
    assert.equal(lost[0].error.message, message);
    const error = { code: "device-lost", message };
    // A part does not bring it back, nor what is computed from it.
    for (const call of [
      () => s.read(),
      () => s.add(kept).compute(),
      () => s.neg().computeInto(s),
      () => s.write([1], 1),
      () => s.computeInto(kept),
    ]) {
      await assert.rejects(call(), error);
    }
    assert.throws(() => s.gpuBuffer(), error);
    const [, values] = await sent(session, kept.computeInto(s), s.read());
    assert.deepEqual(values, f32(3, 4));
    assert.deepEqual(replace(session, event).length, 1, "and lost again");
    const [, again] = await sent(session, s.write([8, 9]), s.read());
    assert.deepEqual(again, f32(8, 9));
  }
});

test("a lost tensor stays lost where writing all of it fails", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const s = gpu.tensor(f32(1, 2));
  await sent(session, s.add(1).computeInto(s));
  replace(session);
  const FAILURES = [
    () => {
      core.failures.submit = { code: "queue-full", message: "full" };
      return s.write([1, 2]);
    },
    () => s.write([1, 2], 0, { deadlineMs: 0 }),
    () => {
      const controller = new AbortController();
      const promise = s.write([1, 2], 0, { signal: controller.signal });
      controller.abort(new Error("enough"));
      return promise;
    },
    () => {
      gpu.explain(() => s.write([1, 2]).catch(() => {}));
      return s.read();
    },
  ];
  for (const fail of FAILURES) {
    await assert.rejects(fail());
    await assert.rejects(s.read(), GONE);
  }
  // An earlier call that is given up takes nothing from a later one.
  const controller = new AbortController();
  const first = s.write([1, 2], 0, { signal: controller.signal });
  const second = s.write([3, 4]);
  controller.abort("enough");
  await assert.rejects(first, (reason) => reason === "enough");
  await sent(session, second);
  const [values] = await sent(session, s.read());
  assert.deepEqual(values, f32(3, 4));
});

test("a call that fails takes nothing from one before that writes all of a lost tensor", async () => {
  const session = await manual();
  const { gpu } = session;
  const [s, other] = [gpu.tensor(f32(1, 2)), gpu.tensor(f32(3, 4))];
  for (const tensor of [s, other]) {
    await sent(session, tensor.add(1).computeInto(tensor));
  }
  replace(session);
  const written = s.write([8, 9]);
  const failed = [
    s.add(other).computeInto(s),
    s.write([1], 0, { deadlineMs: 0 }),
  ];
  await Promise.all(failed.map((call) => assert.rejects(call)));
  const [, values] = await sent(session, written, s.read());
  assert.deepEqual(values, f32(8, 9));
});

test("a write that was not sent yet finds the page's data on the next device", async () => {
  const session = await manual();
  const { gpu } = session;
  const s = gpu.tensor(f32(1, 2));
  const promises = [s.add(1).computeInto(s), s.write([9], 1), s.read()];
  assert.deepEqual(replace(session), []);
  const results = await sent(session, ...promises);
  assert.deepEqual(results[2], f32(2, 9));
});

test("a write that failed leaves the page's data, and what was on the device", async () => {
  for (const code of ["device-lost", "out-of-memory"]) {
    const session = await manual();
    const { gpu, core } = session;
    const s = gpu.tensor(f32(1, 2));
    const promise = s.add(1).computeInto(s);
    gpu.flush();
    core.answer({ failure: { code, message: "no" } });
    await assert.rejects(promise, { code });
    const [before] = await sent(session, s.read());
    assert.deepEqual(before, f32(1, 2));
    assert.deepEqual(replace(session), []);
    const [after] = await sent(session, s.read());
    assert.deepEqual(after, f32(1, 2));
  }
});

test("computed tensors are computed again, each behind its operands", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const x = gpu.tensor(f32(1, 2, 3));
  const [a] = await sent(session, x.scale(2).compute());
  const [b, c] = await sent(
    session,
    gpu.computeAll([a.add(x), a.argmax()]),
  ).then(([both]) => both);
  const [d] = await sent(session, b.gather(c).compute({ label: "d" }));
  for (let i = 0; i < 3; i += 1) {
    assert.deepEqual(replace(session), []);
    const reads = [a, b, c, d].map((tensor) => tensor.read());
    const results = await sent(session, ...reads);
    assert.deepEqual(
      results.map((values) => [...values]),
      [[2, 4, 6], [3, 6, 9], [2], [9]],
    );
  }
  const { submits } = core.counts;
  core.lose();
  core.restore();
  core.lose();
  core.restore();
  assert.equal(core.counts.submits, submits + 8, "a loss before it was done");
  const [values] = await sent(session, d.read());
  assert.deepEqual(values, f32(9));
});

test("losses while computing: what was asked for is computed on the next device", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const x = gpu.tensor(f32(1, 2));
  const promise = x.scale(2).compute();
  assert.deepEqual(replace(session), []);
  const [a] = await sent(session, promise);
  core.lose();
  const during = a.add(1).compute();
  core.restore();
  const [b] = await sent(session, during);
  const [values] = await sent(session, b.read());
  assert.deepEqual(values, f32(3, 5));
});

const LOST = [
  ["keep: false", (x) => x.neg().compute({ keep: false }), () => {}],
  ["an operand is disposed of", (x) => x.neg().compute(), (x) => x.dispose()],
  [
    "an operand was computed into",
    (x) => x.neg().compute(),
    (x) => x.exp().computeInto(x),
  ],
  [
    "an operand was written before",
    (x) => (x.write([5], 1), x.neg().compute()),
    () => {},
  ],
  ["it was written itself", (x) => x.neg().compute(), (_, y) => y.write([5])],
];

for (const [name, make, then] of LOST) {
  test(`computed tensors are lost where ${name}`, async () => {
    const session = await manual();
    const { gpu } = session;
    const x = gpu.tensor(f32(1, 2));
    const promise = make(x);
    const [y] = await sent(session, promise);
    // From what is lost nothing comes back, either.
    const [z] = await sent(session, y.add(1).compute({ label: "z" }));
    await sent(session, then(x, y));
    const lost = replace(session);
    assert.ok(lost.some(({ label }) => label === "z"));
    await assert.rejects(y.read(), GONE);
    await assert.rejects(z.read(), GONE);
    y.dispose();
    z.dispose();
  });
}

test("computed tensors are lost where their data is the device's alone, or the page's buffer", async () => {
  const session = await manual();
  const { gpu } = session;
  const alone = gpu.tensor(f32(1, 2), [2], { keep: false });
  const [y] = await sent(session, alone.neg().compute());
  assert.equal(replace(session).length, 1);
  await assert.rejects(y.read(), GONE);
});

test("a computation that fails on the next device loses its tensor", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const x = gpu.tensor(f32(1, 2));
  const [y] = await sent(session, x.neg().compute());
  core.lose();
  core.restore();
  gpu.flush();
  core.answer({ failure: { code: "limit-exceeded", message: "too large" } });
  await settled();
  await assert.rejects(y.read(), GONE);
  core.lose();
  core.failures.allocate = { code: "out-of-memory", message: "no room" };
  core.restore();
  await assert.rejects(y.read(), GONE);
});

test("32 calls deep, and no deeper", async () => {
  const session = await manual();
  const { gpu } = session;
  const all = [gpu.tensor(f32(0))];
  for (let i = 0; i < 40; i += 1) {
    all.push(...(await sent(session, all.at(-1).add(1).compute())));
  }
  assert.equal(replace(session).length, 40 - 32);
  const reads = all.slice(0, 33).map((tensor) => tensor.read());
  const values = await sent(session, ...reads);
  assert.deepEqual(
    values.map(([value]) => value),
    Array.from(reads.keys()),
  );
  for (const tensor of all.slice(33)) await assert.rejects(tensor.read(), GONE);
});

const STEPS = {
  computeInto: () => async (session, s) => {
    await sent(session, s.scale(0.5).computeInto(s));
    return s;
  },
  "compute, and dispose": () => async (session, s) => {
    const [next] = await sent(session, s.scale(0.5).compute());
    s.dispose();
    return next;
  },
  "compute, and let go": () => async (session, s) =>
    (await sent(session, s.scale(0.5).compute()))[0],
  write: () => async (session, s) => {
    await sent(session, s.write([1], 1));
    return s;
  },
};

for (const [name, make] of Object.entries(STEPS)) {
  test(`ten thousand steps leave the heap as it was: ${name}`, async () => {
    const session = await manual();
    const step = make();
    let s = session.gpu.tensor(f32(1, 2, 3, 4));
    for (let i = 0; i < 5_000; i += 1) s = await step(session, s);
    const steps = async () => {
      for (let i = 0; i < 10_000; i += 1) s = await step(session, s);
      for (let i = 0; i < 50 && session.core.tensors.size > 1; i += 1) {
        collect();
        await settled();
      }
    };
    // The smallest object for each step would take more.
    const grown = await growth(steps, 200_000);
    assert.ok(grown < 200_000, `${grown} bytes`);
    assert.equal(session.core.tensors.size, 1);
    assert.deepEqual(s.shape, [4], "which is still held");
  });
}
