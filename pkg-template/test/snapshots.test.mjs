// Snapshots of tensors that calls write: when they are taken, what comes back from them after
// a loss, and what they never do to callers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual, module, settled } from "./face.mjs";
import { growth } from "./heap.mjs";

await module("animation/index");

const AS_SNAPSHOT = 16;
const f32 = (...values) => new Float32Array(values);

/** Sends what is queued, answers it, snapshots too, and gives what came of the promises. */
async function sent({ gpu, core }, ...promises) {
  gpu.flush();
  const all = Promise.all(promises);
  let isIdle = false;
  // A snapshot waits until the thread is free, and a busy machine is not at once.
  for (let turn = 0; turn < 2 || (!isIdle && turn < 1000); turn += 1) {
    isIdle = core.flights.length === 0 && core.low.length === 0;
    while (core.flights.length > 0) core.answer();
    await settled();
  }
  return all;
}

/** Waits until a snapshot is on its way. */
async function underWay(core) {
  for (let turn = 0; core.flights.length === 0 && turn < 1000; turn += 1) {
    await settled();
  }
  assert.equal(core.flights.length, 1, "the snapshot");
}

/** Loses the device, finds another, and gives what the event told of tensors. */
function replace({ gpu, core }, event = "restored") {
  let told;
  const off = gpu.on(event, (news) => (told = news));
  core.lose();
  core.restore(event);
  off();
  return told;
}

/** The label, the elements and the writes of each tensor that holds its last snapshot. */
function revertedOf({ revertedTensors }) {
  return revertedTensors.map(({ label, elements, writes }) => [
    label,
    elements,
    writes,
  ]);
}

const step = (session, s) => sent(session, s.add(1).computeInto(s));
const OPTIONS = { snapshotEvery: 3, label: "s" };

/** After so many steps: what the newest snapshot of every third holds, and the writes that it lacks. */
const LOSSES = [
  [1, 0, 1],
  [2, 0, 2],
  [3, 3, 0],
  [5, 3, 2],
  [6, 6, 0],
  [7, 6, 1],
];

for (const event of ["restored", "fallback"]) {
  for (const [steps, held, gone] of LOSSES) {
    test(`${event} after ${steps} steps: the last snapshot, and the writes that are gone`, async () => {
      const session = await manual();
      const s = session.gpu.tensor([0, 10], [2], OPTIONS);
      for (let i = 0; i < steps; i += 1) await step(session, s);
      // Calls that wait go on from what came back.
      const waiting = [s.read(), s.write([7], 1), s.read()];
      const told = replace(session, event);
      assert.deepEqual(told.lostTensors, []);
      assert.deepEqual(revertedOf(told), [["s", 2, gone]]);
      const [before, , after] = await sent(session, ...waiting);
      assert.deepEqual(before, f32(held, 10 + held));
      assert.deepEqual(after, f32(held, 7));
      const again = revertedOf(replace(session, event));
      const isDue = (steps + 1) % 3 === 0;
      assert.deepEqual(again, [["s", 2, isDue ? 0 : 1]]);
      const [values] = await sent(session, s.read());
      assert.deepEqual(values, isDue ? f32(held, 7) : f32(held, 10 + held));
    });
  }
}

const clipOf = (gpu) =>
  gpu.clip({ tracks: [{ times: [0, 1], values: [0, 1] }] });

/** What writes a tensor of two floats, with values told by `n`. */
const WRITES = {
  computeInto: (gpu, s, n) => gpu.tensor([n, n + 1]).computeInto(s),
  write: (gpu, s, n) => s.write([n, n + 1]),
  "a part": (gpu, s, n) => s.write([n + 1], 1),
  sampleTo: (gpu, s, n) => clipOf(gpu).sampleTo(s, f32(n, n + 1)),
  blendTo: (gpu, s, n) =>
    gpu.blendTo(s, [{ clip: clipOf(gpu), times: f32(n, n + 1) }]),
};

for (const [name, write] of Object.entries(WRITES)) {
  test(`what ${name} wrote is in snapshots`, async () => {
    const session = await manual();
    const { gpu } = session;
    const s = gpu.tensor([1, 0], [2], { snapshotEvery: 2, label: "s" });
    const held = [];
    for (let n = 0; n < 5; n += 1) {
      await sent(session, write(gpu, s, n));
      held.push((await sent(session, s.read()))[0]);
    }
    assert.deepEqual(revertedOf(replace(session)), [["s", 2, 1]]);
    const [values] = await sent(session, s.read());
    assert.deepEqual(values, held[3]);
  });
}

test("computing counts as a write, and what can be computed again is", async () => {
  const session = await manual();
  const { gpu } = session;
  const x = gpu.tensor([1, 2]);
  const places = gpu.tensor(new Uint32Array([5, 6]), [2], OPTIONS);
  const asked = [
    x.scale(2).compute({ snapshotEvery: 1, label: "y" }),
    x.argmax().compute({ snapshotEvery: 1, keep: false, label: "places" }),
    gpu.computeAll([x.neg(), x.exp()], { snapshotEvery: 1, label: "all" }),
  ];
  const [y, first, all] = await sent(session, ...asked);
  const [z] = await sent(session, y.add(1).compute({ label: "z" }));
  const told = replace(session);
  assert.deepEqual(told.lostTensors, []);
  assert.deepEqual(revertedOf(told), [["places", 1, 0]]);
  // What these were computed from is another by now.
  await sent(session, x.write([5], 1), places.write(new Uint32Array([7])));
  const later = replace(session);
  assert.deepEqual(revertedOf(later), [
    ["places", 1, 0],
    ["s", 2, 1],
    ["y", 2, 0],
    ["all", 2, 0],
    ["all", 2, 0],
  ]);
  const [read, indexes, negated] = await sent(
    session,
    y.read(),
    first.read(),
    all[0].read(),
  );
  assert.deepEqual(read, f32(2, 4));
  assert.deepEqual(indexes, new Uint32Array([1]));
  assert.deepEqual(negated, f32(-1, -2));
  // Nothing is computed again from what came back, which may be older.
  const names = later.lostTensors.map(({ label }) => label);
  assert.deepEqual(names, [undefined, "z"]);
  await assert.rejects(z.read(), { code: "device-lost" });
});

test("nothing is computed again from a tensor that holds a snapshot", async () => {
  const session = await manual();
  const { gpu } = session;
  const s = gpu.tensor([1, 2], [2], { snapshotEvery: 2, label: "s" });
  await step(session, s);
  const [before] = await sent(session, s.neg().compute({ label: "before" }));
  await step(session, s);
  await step(session, s);
  const { lostTensors } = replace(session);
  assert.deepEqual(
    lostTensors.map(({ label }) => label),
    ["before"],
  );
  const [after] = await sent(session, s.neg().compute({ label: "after" }));
  const [values] = await sent(session, after.read());
  assert.deepEqual(values, f32(-3, -4));
  assert.equal(replace(session).lostTensors[0].label, "after");
  await assert.rejects(before.read(), { code: "device-lost" });
});

test("without a snapshot a tensor comes back from its data, or not at all", async () => {
  const session = await manual();
  const { gpu } = session;
  const kept = gpu.tensor([1, 2], [2], { snapshotEvery: 9, label: "kept" });
  const alone = gpu.tensor([1, 2], [2], { snapshotEvery: 9, keep: false });
  const never = gpu.tensor([1, 2], [2], { snapshotEvery: 9 });
  const plain = gpu.tensor([1, 2]);
  const [y] = await sent(
    session,
    kept.neg().compute({ snapshotEvery: 9, keep: false }),
    ...[kept, alone, plain].map((s) => s.write([3])),
    ...[never.read(), never.read()],
  );
  const told = replace(session);
  assert.deepEqual(revertedOf(told), [["kept", 2, 1]]);
  assert.equal(told.lostTensors.length, 3);
  for (const gone of [alone, plain, y]) {
    await assert.rejects(gone.read(), { code: "device-lost" });
  }
  const [first, second] = await sent(session, kept.read(), never.read());
  assert.deepEqual([first, second], [f32(1, 2), f32(1, 2)]);
  // A lost tensor that is written whole has snapshots again.
  for (let i = 0; i < 9; i += 1) await sent(session, alone.write([i, i]));
  assert.deepEqual(revertedOf(replace(session)), [
    ["kept", 2, 0],
    [undefined, 2, 1],
  ]);
  const [again] = await sent(session, alone.read());
  assert.deepEqual(again, f32(7, 7), "the ninth write, the first one counted");
});

test("a snapshot holds the calls made before it, and is told from those behind", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const s = gpu.tensor([0, 0], [2], { snapshotEvery: 1, label: "s" });
  const first = s.write([1, 1]);
  gpu.flush();
  // Made before the snapshot, and acknowledged behind it.
  const second = s.write([2, 2]);
  gpu.flush();
  core.answer();
  await first;
  await settled();
  assert.equal(core.flights.length, 2, "the snapshot is the second of them");
  const third = s.write([3, 3]);
  core.answer();
  core.answer();
  await second;
  gpu.flush();
  core.answer();
  await third;
  assert.deepEqual(revertedOf(replace(session)), [["s", 2, 1]]);
  const [values] = await sent(session, s.read());
  assert.deepEqual(values, f32(2, 2));
});

test("acknowledgments behind the answer of a snapshot tell what it lacks", async () => {
  const { Snapshots } = await module("tensor/snapshots");
  const snapshots = new Snapshots(2);
  assert.deepEqual([snapshots.note(0), snapshots.note(0)], [false, true]);
  snapshots.begin();
  snapshots.finish(f32(1));
  // Two calls that were made before the snapshot was, and one behind it.
  assert.deepEqual(
    [0, 0, 1].map((begun) => snapshots.note(begun)),
    [false, true, false],
  );
  assert.equal(snapshots.revert(), 1);
  assert.equal(snapshots.revert(), 0);
});

test("a snapshot that fails is skipped, and no caller hears of it", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const s = gpu.tensor([0, 10], [2], OPTIONS);
  const fail = async () => {
    for (let i = 0; i < 3; i += 1) {
      const promise = s.add(1).computeInto(s);
      gpu.flush();
      core.answer();
      await promise;
      await settled();
    }
    await underWay(core);
    core.answer({ failure: { code: "out-of-memory", message: "no" } });
    await settled();
  };
  await fail();
  await fail();
  // The data that the tensor was made with is what there is.
  assert.deepEqual(revertedOf(replace(session)), [["s", 2, 6]]);
  for (let i = 0; i < 3; i += 1) await step(session, s);
  assert.deepEqual(revertedOf(replace(session)), [["s", 2, 0]]);
  await step(session, s);
  await step(session, s);
  const promise = s.add(1).computeInto(s);
  gpu.flush();
  core.failures.submit = { code: "queue-full", message: "full" };
  await sent(session, promise);
  assert.deepEqual(core.failures, {}, "the snapshot was refused");
  const [values] = await sent(session, s.read());
  assert.deepEqual(values, f32(6, 16));
  assert.deepEqual(revertedOf(replace(session)), [["s", 2, 3]]);
});

test("one snapshot of a tensor is under way at a time, and a full queue gives its place away", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const s = gpu.tensor([0, 10], [2], { snapshotEvery: 1, label: "s" });
  core.slice = 0; // Work of low priority waits.
  for (let i = 0; i < 5; i += 1) {
    const promise = s.add(1).computeInto(s);
    gpu.flush();
    core.answer();
    await promise;
    await settled();
  }
  assert.equal(core.low.length, 1);
  core.room = 1;
  const fits = s.read();
  assert.equal(core.low.length, 1);
  const full = s.read();
  assert.equal(core.low.length, 0);
  core.room = 1000;
  core.slice = Infinity;
  await sent(session, fits, full);
  assert.deepEqual(revertedOf(replace(session)), [["s", 2, 5]]);
});

test("dispose drops what is kept, before a snapshot, during one and after", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const make = () => gpu.tensor([0, 10], [2], { snapshotEvery: 1 });
  const [before, during, after] = [make(), make(), make()];
  await step(session, after);
  const wrote = during.write([1], 0);
  gpu.flush();
  core.answer();
  await wrote;
  await underWay(core);
  for (const tensor of [before, during, after]) tensor.dispose();
  assert.equal(core.tensors.size, 1, "that of the snapshot under way");
  core.answer();
  await settled();
  assert.equal(core.tensors.size, 0);
  const late = make();
  const last = late.write([1], 0);
  gpu.flush();
  core.answer();
  late.dispose();
  await last;
  await settled();
  assert.equal(core.tensors.size, 0);
  assert.deepEqual(revertedOf(replace(session)), []);
  const ended = make();
  await sent(session, ended.write([1], 0));
  await gpu.dispose();
});

test("a tensor that cannot be filled is lost, and only a snapshot is called one", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const plain = gpu.tensor([1, 2]);
  await sent(session, plain.read(), plain.read());
  const s = gpu.tensor([0, 10], [2], { snapshotEvery: 1, label: "s" });
  await step(session, s);
  const fills = [];
  const { fill } = core;
  core.fill = function (tensor, data, home, row) {
    fills.push(home & AS_SNAPSHOT);
    return fill.call(this, tensor, data, home & ~AS_SNAPSHOT, row);
  };
  replace(session);
  assert.deepEqual(fills, [0, AS_SNAPSHOT]);
  core.lose();
  plain.dispose();
  core.failures.fill = { code: "out-of-memory", message: "no room" };
  let told;
  gpu.on("restored", (news) => (told = news));
  core.restore();
  assert.deepEqual(revertedOf(told), []);
  assert.equal(told.lostTensors[0].label, "s");
  await assert.rejects(s.read(), { code: "device-lost", message: /no room/ });
  const [, values] = await sent(session, s.write([8, 9]), s.read());
  assert.deepEqual(values, f32(8, 9));
});

test("wrong options are refused in a sentence", async () => {
  const { gpu } = await manual();
  const x = gpu.tensor([1, 2]);
  const wrong = [0, -1, 1.5, NaN, Infinity, "1", null, true].map((given) => [
    { snapshotEvery: given },
    `snapshotEvery must be a whole number from 1, got ${given}`,
  ]);
  wrong.push([{ ownBuffer: 1 }, "ownBuffer must be true or false, got number"]);
  for (const [options, message] of wrong) {
    const error = (about) => ({
      code: "invalid-input",
      message: `${about}: ${message}`,
    });
    assert.throws(() => gpu.tensor([1], [1], options), error("tensor"));
    await assert.rejects(x.compute(options), error("compute"));
    await assert.rejects(gpu.computeAll([x], options), error("computeAll"));
  }
  const option = { code: "invalid-input", message: /there is no option/ };
  for (const name of ["snapshotEvery", "ownBuffer"]) {
    await assert.rejects(x.write([1], 0, { [name]: 1 }), option);
    await assert.rejects(x.read({ [name]: 1 }), option);
  }
  for (const dtype of ["f16", "bf16", "int8", "int4"]) {
    assert.throws(
      () => gpu.tensor([1], [1], { dtype, snapshotEvery: 1 }),
      /^FramebatchError: tensor: no call writes a tensor in fewer bits/,
    );
  }
});

test("ten thousand steps with snapshots leave the heap as it was", async () => {
  const session = await manual();
  const { core } = session;
  const s = session.gpu.tensor([0, 10], [2], { snapshotEvery: 10 });
  const steps = async (count) => {
    for (let i = 0; i < count; i += 1) {
      const promise = s.add(1).computeInto(s);
      session.gpu.flush();
      while (core.flights.length > 0) core.answer();
      await promise;
      if (i % 10 === 9) await sent(session);
    }
  };
  await steps(3_000);
  // The smallest object for each step would take more.
  const grown = await growth(() => steps(10_000), 200_000);
  assert.ok(grown < 200_000, `${grown} bytes`);
  const [[, , gone]] = revertedOf(replace(session));
  assert.ok(gone < 100, "snapshots went on being taken");
});
