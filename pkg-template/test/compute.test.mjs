// Results that stay on the device: what becomes of them, in which order, and which calls are
// refused.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { face, fake, manual, settled } from "./face.mjs";

const LARGE = 16_384;
const f32 = (...values) => new Float32Array(values);
const u32 = (...values) => new Uint32Array(values);
const large = (value, length = LARGE) => new Float32Array(length).fill(value);

// Sessions of tests may not open while these do.
const { gpu: other } = await manual();
const { gpu, core } = await manual();

afterEach(() => {
  fake.opening = Promise.resolve();
  fake.failures = {};
});

/** Sends what is queued, answers it, and gives what came of the promises. */
async function sent({ gpu, core }, ...promises) {
  gpu.flush();
  if (core.flights.length > 0) core.answer();
  return Promise.all(promises);
}

/** What the words of a tensor on the device are, as floats. */
function floatsOf(core, number) {
  return new Float32Array(core.tensors.get(number).slice().buffer);
}

const KINDS = [
  ["an operation", (x) => x.scale(2).add(1), [2, 2], [3, 5, 7, 9]],
  ["a reduction", (x) => x.sum(1), [2], [3, 7]],
  ["one number", (x) => x.sum(), [], [10]],
  ["indexes", (x) => x.argmax(1), [2], [1, 1]],
  ["a copy of data", (x) => x, [2, 2], [1, 2, 3, 4]],
  ["another shape", (x) => x.reshape([4, 1]), [4, 1], [1, 2, 3, 4]],
  ["no elements", (x) => x.slice([5]), [0, 2], []],
];

for (const [name, make, shape, values] of KINDS) {
  test(`compute: ${name}`, async () => {
    const session = await manual();
    const { gpu, core } = session;
    const x = gpu.tensor(f32(1, 2, 3, 4), [2, 2]);
    const [result] = await sent(session, make(x).compute());
    assert.deepEqual(result.shape, shape);
    assert.equal(result.dtype, make(x).dtype);
    const [read] = await sent(session, result.read());
    assert.deepEqual([...read], values);
    const again = await sent(
      session,
      gpu.readAll([result, result.reshape([-1])]),
    );
    assert.deepEqual([...again[0][1]], values);
    assert.equal(core.counts.fills, 0);
    result.dispose();
    await assert.rejects(result.read(), { code: "disposed" });
    assert.equal(core.tensors.size, 0);
  });
}

test("compute: the result is on the device, and only there", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const [result] = await sent(session, gpu.tensor(f32(4, 9)).sqrt().compute());
  assert.deepEqual([...core.tensors.keys()], [1]);
  assert.deepEqual(core.homes.get(1), 1);
  assert.deepEqual(floatsOf(core, 1), f32(2, 3));
  assert.deepEqual(result.gpuBuffer(), {
    buffer: "buffer 1",
    offset: 256,
    size: 8,
  });
  assert.deepEqual(core.counts.fills, 0);
  assert.deepEqual(core.counts.allocations, 1);
});

test("computeAll: one call, what is shared once, results in order, empty ones too", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const x = gpu.tensor(f32(1, 2, 3));
  const e = x.exp();
  const asked = [e.sum(), e, x.slice([3]), x.argmax(), e, x];
  const tensors = await (async () => {
    const promise = gpu.computeAll(asked);
    assert.equal(core.counts.submits, 1);
    const { chain } = core.queued[0].spec;
    assert.equal(chain.nodes.filter(({ code }) => code === 2).length, 1);
    assert.equal(chain.stores.length, 5);
    return (await sent(session, promise))[0];
  })();
  const expected = await sent(session, gpu.readAll(asked));
  const results = await sent(session, gpu.readAll(tensors));
  assert.deepEqual(results, expected);
  assert.deepEqual(
    tensors.map(({ dtype }) => dtype),
    asked.map(({ dtype }) => dtype),
  );
  assert.deepEqual(await gpu.computeAll([]), []);
});

test("a recorded tensor sees its operands as they are when it is asked for", async () => {
  const session = await manual();
  const { gpu } = session;
  const s = gpu.tensor(f32(1, 2));
  const doubled = s.scale(2);
  const [before, , after, computed] = await sent(
    session,
    doubled.read(),
    doubled.computeInto(s),
    doubled.read(),
    doubled.compute(),
  );
  assert.deepEqual(before, f32(2, 4));
  assert.deepEqual(after, f32(4, 8));
  const [last] = await sent(session, computed.read());
  assert.deepEqual(last, f32(4, 8));
});

test("computeInto: resolves to nothing, and a reading behind it finds the new values", async () => {
  for (const length of [3, LARGE]) {
    const session = await manual();
    const { gpu, core } = session;
    const s = gpu.tensor(large(1, length));
    const x = gpu.tensor(large(5, length));
    const [nothing, first, , second] = await sent(
      session,
      x.add(s).computeInto(s),
      s.read(),
      s.scale(2).computeInto(s),
      s.read(),
    );
    assert.equal(nothing, undefined);
    assert.deepEqual(first, large(6, length));
    assert.deepEqual(second, large(12, length));
    assert.equal(core.counts.flushes, 1);
  }
});

test("computeInto: a thousand steps, awaited or not, make nothing new", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const s = gpu.tensor(f32(0, 1));
  const step = s.add(1);
  await sent(session, step.computeInto(s));
  const { structures, lastTensor } = core;
  const known = structures.length;
  for (let i = 0; i < 500; i += 1) await sent(session, step.computeInto(s));
  for (let i = 0; i < 499; i += 1) step.computeInto(s);
  const [values] = await sent(session, s.read());
  assert.deepEqual(values, f32(1000, 1001));
  assert.equal(structures.length, known + 1, "and the reading");
  assert.equal(core.lastTensor, lastTensor);
  assert.deepEqual(core.counts.fills, 1);
  assert.deepEqual(core.counts.allocations, 0);
});

test("computeInto: indexes, what was computed, and shapes without elements", async () => {
  const session = await manual();
  const { gpu } = session;
  const x = gpu.tensor(f32(1, 5, 3, 9, 2, 4), [2, 3]);
  const places = gpu.tensor(u32(0, 0));
  const none = gpu.tensor(f32(), [0, 3]);
  const [sums] = await sent(session, x.sum(1).compute());
  const [, , nothing] = await sent(
    session,
    x.argmax(1).computeInto(places),
    sums.neg().computeInto(sums),
    x.slice([2]).computeInto(none),
  );
  assert.equal(nothing, undefined);
  const [found, negated] = await sent(session, places.read(), sums.read());
  assert.deepEqual(found, u32(1, 0));
  assert.deepEqual(negated, f32(-9, -15));
});

test("indexes that calls write are not compared with an axis any more", async () => {
  const session = await manual();
  const { gpu } = session;
  const x = gpu.tensor(f32(10, 11, 12));
  const places = gpu.tensor(u32(7));
  assert.throws(() => x.gather(places), { code: "invalid-input" });
  const [picked] = await sent(
    session,
    (places.write(u32(2)), x.gather(places).read()),
  );
  assert.deepEqual(picked, f32(12));
});

const WRITTEN = [
  ["all of it", [f32(7, 8, 9)], [7, 8, 9]],
  ["numbers", [[7, 8, 9]], [7, 8, 9]],
  ["a part in front", [f32(7)], [7, 2, 3]],
  ["a part behind", [[7, 8], 1], [1, 7, 8]],
  ["rows", [[[7], [8]], 1], [1, 7, 8]],
  ["nothing", [[], 3], [1, 2, 3]],
  ["nothing of it", [f32(), 0], [1, 2, 3]],
];

for (const [name, given, expected] of WRITTEN) {
  test(`write: ${name}`, async () => {
    const session = await manual();
    const { gpu, core } = session;
    const s = gpu.tensor(f32(1, 2, 3));
    const [nothing, values] = await sent(session, s.write(...given), s.read());
    assert.equal(nothing, undefined);
    assert.deepEqual([...values], expected);
    assert.equal(core.tensors.size, given[0].length > 0 ? 1 : 0);
  });
}

test("write: long data goes with its call, and may change at once", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const s = gpu.tensor(large(1));
  const data = large(2, LARGE - 4);
  const promise = s.write(data, 4);
  data.fill(9);
  const [, values] = await sent(session, promise, s.read());
  assert.deepEqual(values.subarray(0, 5), f32(1, 1, 1, 1, 2));
  assert.equal(values.at(-1), 2);
  assert.equal(core.tensors.size, 1);
});

test("a shape of its own for each length, and offsets are data of the call", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const s = gpu.tensor(f32(0, 0, 0, 0), [2, 2]);
  for (const at of [0, 1, 2]) s.write([at + 1], at);
  const numbers = core.queued.map(({ spec }) => spec);
  assert.equal(new Set(numbers).size, 1);
  const [values] = await sent(session, s.read());
  assert.deepEqual(values, f32(1, 2, 3, 0));
});

test("calls while the session opens keep their order and what they were given", async () => {
  let open;
  fake.opening = new Promise((done) => (open = done));
  const gpu = face.shared({ flush: "manual" });
  const s = gpu.tensor(f32(1, 2));
  const t = gpu.tensor(large(3));
  const data = large(4);
  const promises = [
    s.read(),
    s.scale(10).computeInto(s),
    s.read(),
    t.write(data),
    t.sum().read(),
    s.add(1).compute(),
  ];
  data.fill(9);
  const aborted = s.compute({ signal: AbortSignal.abort("no") });
  await assert.rejects(aborted, (reason) => reason === "no");
  open();
  await gpu.ready;
  const core = fake.core;
  const results = await sent({ gpu, core }, ...promises);
  assert.deepEqual(results[0], f32(1, 2));
  assert.deepEqual(results[2], f32(10, 20));
  assert.deepEqual(results[4], f32(4 * LARGE));
  const [last] = await sent({ gpu, core }, results[5].read());
  assert.deepEqual(last, f32(11, 21));
  await gpu.dispose();
  const error = { code: "disposed" };
  await assert.rejects(s.compute(), error);
  await assert.rejects(s.computeInto(s), error);
  await assert.rejects(s.write([1]), error);
  await assert.rejects(gpu.computeAll([s]), error);
});

const x = gpu.tensor(f32(1, 2, 3));
const places = gpu.tensor(u32(1, 2, 3));
const halves = gpu.tensor(f32(1, 2, 3), [3], { dtype: "f16" });
const gone = gpu.tensor(f32(1, 2, 3), [3], { label: "s" });
gone.dispose();

const REFUSED = [
  [
    () => x.computeInto(5),
    "computeInto: an operand must be a tensor, got number",
  ],
  [
    () => x.computeInto(other.tensor(f32(1, 2, 3))),
    "computeInto: an operand is a tensor of another session; make both with one session",
  ],
  [
    () => x.computeInto(x.exp()),
    "computeInto: a recorded tensor has no memory to write to; await its compute() first, and write to that tensor",
  ],
  [
    () => x.computeInto(halves, { label: "w" }),
    "computeInto (label 'w'): a tensor in fewer bits cannot be written; make it with dtype 'f32'",
  ],
  [
    () => x.computeInto(places),
    "computeInto: the result holds floats, and the target whole numbers without a sign; give a target of the same kind",
  ],
  [
    () => x.sum().computeInto(x),
    "computeInto: the result has shape [], and the target [3]; give a target of the same shape, or reshape the result",
  ],
  [
    () => x.reshape([3, 1]).computeInto(x),
    "computeInto: the result has shape [3, 1], and the target [3]; give a target of the same shape, or reshape the result",
  ],
  [
    () => x.compute({ into: f32(1) }),
    /^compute: there is no option 'into'; the options are keep, snapshotEvery, ownBuffer, signal/,
  ],
  [
    () => x.computeInto(x, { keep: true }),
    /^computeInto: there is no option 'keep'; the options are signal/,
  ],
  [
    () => x.compute({ keep: 1 }),
    "compute: keep must be true or false, got number",
  ],
  [
    () => x.compute({ label: 1 }),
    "compute: label must be a string, got number",
  ],
  [() => x.compute(null), "compute: options must be an object, got null"],
  [
    () => gpu.computeAll(x),
    "computeAll: give an array of tensors, got a tensor",
  ],
  [
    () => gpu.computeAll([1]),
    "computeAll: an operand must be a tensor, got number",
  ],
  [
    () => x.write(u32(1)),
    "write: the tensor holds floats; give a Float32Array, or numbers",
  ],
  [
    () => places.write([1]),
    "write: the tensor holds whole numbers without a sign; give a Uint32Array or an Int32Array",
  ],
  [
    () => places.write(Int32Array.of(-1)),
    "write: the tensor holds whole numbers from 0; give no others",
  ],
  [
    () => gpu.tensor(Int32Array.of(1)).write(u32(1)),
    "write: the tensor holds whole numbers with a sign; give an Int32Array",
  ],
  [
    () => x.write(f32(1), 3),
    "write: data has 1 elements and begins at element 3, but the tensor holds 3; give fewer, or a smaller offset",
  ],
  [
    () => x.write(f32(1), -1, { label: "w" }),
    "write (label 'w'): offset must be a whole number from 0, got -1",
  ],
  [
    () => x.write(f32(1), 0.5),
    "write: offset must be a whole number from 0, got 0.5",
  ],
  [() => x.write("no"), /^write: data must be a Float32Array/],
  [
    () => x.write(f32(1), 0, { into: f32(1) }),
    /^write: there is no option 'into'/,
  ],
  [
    () => x.exp().write(f32(1)),
    "write: a recorded tensor has no memory to write to; await its compute() first, and write to that tensor",
  ],
];

for (const [call, message] of REFUSED) {
  test(`refused: ${message}`, async () => {
    await assert.rejects(call(), { code: "invalid-input", message });
    assert.equal(core.counts.submits, 0);
  });
}

test("refused: tensors that are disposed of", async () => {
  const message = /the tensor \(label 's'\) is disposed/;
  for (const call of [
    () => gone.compute(),
    () => gone.computeInto(x),
    () => x.computeInto(gone),
    () => gone.write([1]),
  ]) {
    await assert.rejects(call(), { code: "disposed", message });
  }
});

test("a GPUBuffer of the page is never written", async () => {
  const session = await manual();
  const { gpu: own } = session;
  class GPUBuffer {
    usage = 0x84;
    size = 16;
    mapState = "unmapped";
    bytes = new ArrayBuffer(16);
    [Symbol.toStringTag] = "GPUBuffer";
  }
  const b = own.tensor(new GPUBuffer(), [4]);
  const message = /^(computeInto|write): a GPUBuffer of the page is read only/;
  await assert.rejects(b.neg().computeInto(b), { message });
  await assert.rejects(b.write([1]), { message });
});

const ENDS = [
  [
    "refused",
    ({ core }) =>
      (core.failures.submit = { code: "queue-full", message: "full" }),
  ],
  [
    "without room",
    ({ core }) =>
      (core.failures.allocate = { code: "out-of-memory", message: "none" }),
  ],
];

for (const [name, prepare] of ENDS) {
  test(`compute: ${name}, nothing is left of it`, async () => {
    const session = await manual();
    prepare(session);
    const { gpu: own, core: fakeCore } = session;
    await assert.rejects(own.tensor(f32(1)).exp().compute());
    assert.equal(fakeCore.tensors.size, 0);
  });
}

test("compute: given up, late or failed, nothing is left of it", async () => {
  const session = await manual();
  const { gpu: own, core: fakeCore } = session;
  const t = own.tensor(f32(1));
  const controller = new AbortController();
  const asked = [
    t.exp().compute({ signal: controller.signal }),
    t.exp().compute({ deadlineMs: 0 }),
    own.computeAll([t.exp(), t.neg()]),
  ];
  const ends = Promise.allSettled(asked);
  controller.abort("enough");
  await new Promise((done) => setTimeout(done, 5));
  own.flush();
  fakeCore.answer({ failure: { code: "device-lost", message: "lost" } });
  const [given, late, failed] = await ends;
  assert.equal(given.reason, "enough");
  assert.equal(late.reason.code, "timeout");
  assert.equal(failed.reason.code, "device-lost");
  t.dispose();
  assert.equal(fakeCore.tensors.size, 0);
});

test("explain and warm-up send nothing, and change nothing", async () => {
  const session = await manual();
  const { gpu: own, core: fakeCore } = session;
  const s = own.tensor(f32(1, 2));
  const make = () => {
    s.scale(2).computeInto(s);
    s.write([5], 1);
    s.exp().compute();
  };
  assert.equal(own.explain(make), "chain 0\nchain 0\nchain 0");
  await settled();
  assert.equal(fakeCore.tensors.size, 1, "no tensor of the result");
  fakeCore.lose();
  fakeCore.restore();
  const [values] = await sent(session, s.read());
  assert.deepEqual(values, f32(1, 2), "the page's data is still the newest");
});

test("what the core answers inside of submit is computed too", async () => {
  const { gpu: own, core: fakeCore } = await manual();
  fakeCore.full = 1;
  fakeCore.answersAtOnce = true;
  const s = own.tensor(f32(1, 2));
  assert.equal(await s.scale(3).computeInto(s), undefined);
  const computed = await s.add(1).compute();
  assert.deepEqual(await computed.read(), f32(4, 7));
});

test("what a call stores and what it reads share no buffer, whichever is there first", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const x = gpu.tensor(f32(1, 2));
  const v = gpu.tensor(f32(3, 4));
  // The speeds travel with the first step, and stay from the second on.
  for (let step = 0; step < 2; step += 1) {
    await sent(session, x.add(v).computeInto(x));
  }
  const asked = [...core.asked.values()];
  assert.deepEqual(asked, [
    { words: 2, apart: u32() },
    { words: 2, apart: u32(1) },
  ]);
  const y = gpu.tensor(f32(5, 6));
  y.gpuBuffer();
  await sent(session, y.add(x).computeInto(y));
  const [read] = await sent(session, y.read());
  assert.deepEqual([...read], [12, 16]);
});

test("a computed tensor shares no buffer with its operands, which would take a copy", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const x = gpu.tensor(f32(1, 2));
  const y = gpu.tensor(f32(3, 4));
  x.gpuBuffer();
  y.gpuBuffer();
  const [sum] = await sent(session, x.add(y).compute());
  const [last] = [...core.asked.values()].slice(-1);
  assert.deepEqual(last, { words: 2, apart: u32(1, 2) });
  assert.deepEqual(core.asked.get(1), { words: 2, apart: undefined });
  const [read] = await sent(session, sum.read());
  assert.deepEqual([...read], [4, 6]);
  await gpu.dispose();
});
