// Reading tensors: results, their arrays, and what becomes of calls as of any others.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual, settled, stateOf } from "./face.mjs";

const f32 = (...values) => new Float32Array(values);
const u32 = (...values) => new Uint32Array(values);

test("readings and other calls share a batch, and settle in order", async () => {
  const { gpu, core } = await manual();
  const order = [];
  const note = (name) => () => order.push(name);
  const a = gpu.tensor(f32(1, 2, 3));
  gpu.lerp(f32(0), f32(2), 0.5).then(note("lerp"));
  a.exp().read().then(note("read"));
  gpu.readAll([a, a.neg()]).then(note("readAll"));
  gpu.lerp(f32(0), f32(2), 0.5).then(note("lerp again"));
  assert.equal(core.queued.length, 4);
  gpu.flush();
  core.answer();
  await settled();
  assert.deepEqual(order, ["lerp", "read", "readAll", "lerp again"]);
});

test("read: flush 'now' sends the batch, and the frame's clock hears of readings", async () => {
  const { gpu, core } = await manual();
  const promise = gpu.tensor(f32(4)).sqrt().read({ flush: "now" });
  core.answer();
  assert.deepEqual(await promise, f32(2));
  const paced = await manual({ flush: "frame" });
  const later = paced.gpu.tensor(f32(9)).sqrt().read();
  await settled();
  paced.core.answer();
  assert.deepEqual(await later, f32(3));
});

test("read: into, by type", async () => {
  const { gpu, core } = await manual();
  const a = gpu.tensor(f32(1, 5, 3));
  for (const mapped of [true, false]) {
    const floats = new Float32Array(new SharedArrayBuffer(16), 4, 3);
    const place = u32(99);
    const promises = [
      a.add(1).read({ into: floats }),
      a.argmax().read({ into: place }),
    ];
    gpu.flush();
    core.answer({ mapped });
    const results = await Promise.all(promises);
    assert.equal(results[0], floats);
    assert.equal(results[1], place);
    assert.deepEqual([...floats], [2, 6, 4]);
    assert.deepEqual([...place], [1]);
  }
});

test("read: an into that was detached meanwhile", async () => {
  const { gpu, core } = await manual();
  const into = f32(0);
  const promise = gpu.tensor(f32(1)).exp().read({ into, label: "x" });
  structuredClone(into.buffer, { transfer: [into.buffer] });
  gpu.flush();
  core.answer();
  await assert.rejects(promise, {
    code: "invalid-input",
    message: /^read \(label 'x'\): into was detached or resized/,
  });
});

test("readAll: arrays in order, each its own, also into those given", async () => {
  const { gpu, core } = await manual();
  const a = gpu.tensor(f32(3, 1, 2, 5, 4));
  const double = a.scale(2);
  const tensors = [double, a.argmax(), double, double.sum(), gpu.tensor([])];
  const expected = [[6, 2, 4, 10, 8], [3], [6, 2, 4, 10, 8], [30], []];
  const into = [f32(0, 0, 0, 0, 0), u32(0), undefined, f32(0), undefined];
  const promises = [gpu.readAll(tensors), gpu.readAll(tensors, { into })];
  assert.equal(core.queued.length, 2);
  const list = [...into];
  into.reverse(); // The list is the caller's again.
  gpu.flush();
  core.answer();
  const [fresh, given] = await Promise.all(promises);
  assert.deepEqual(
    fresh.map((array) => [...array]),
    expected,
  );
  assert.deepEqual(
    given.map((array) => [...array]),
    expected,
  );
  list.forEach((array, i) => array && assert.equal(given[i], array));
  assert.ok(fresh[1] instanceof Uint32Array);
  assert.notEqual(fresh[0].buffer, fresh[2].buffer);
});

for (const words of [1, 5, 16, 200]) {
  test(`results in chunks of ${words} words`, async () => {
    const { gpu, core } = await manual();
    const values = Float32Array.from({ length: 101 }, (_, i) => (i * 37) % 101);
    const a = gpu.tensor(values);
    const into = new Float32Array(101);
    const place = u32(0);
    const promises = [
      a.read(),
      a.read({ into }),
      a.argmax().read({ into: place }),
      gpu.readAll([a.argmax(), a.slice([0, 3]), a.neg()]),
      gpu.tensor(Uint32Array.from(values)).read(),
    ];
    gpu.flush();
    core.answerInChunks(words);
    const best = values.indexOf(100);
    const [whole, given, at, all, places] = await Promise.all(promises);
    assert.deepEqual(whole, values);
    assert.equal(given, into);
    assert.deepEqual(into, values);
    assert.equal(at, place);
    assert.deepEqual([...place], [best]);
    assert.deepEqual(all, [
      u32(best),
      values.slice(0, 3),
      values.map((x) => -x),
    ]);
    assert.deepEqual(places, Uint32Array.from(values));
  });
}

test("nothing to compute is answered without the core", async () => {
  const { gpu, core } = await manual();
  const none = gpu.tensor(new Float32Array(0), [0, 3]);
  assert.deepEqual(await none.add(1).read(), f32());
  assert.deepEqual(await none.argmax(1).read(), u32());
  assert.deepEqual(await gpu.readAll([none, none.transpose()]), [f32(), f32()]);
  assert.deepEqual(await gpu.readAll([]), []);
  const into = f32();
  assert.equal(await none.read({ into }), into);
  assert.equal(core.counts.submits, 0);
});

test("abort, deadline, key and failure, as for every call", async () => {
  const { gpu, core } = await manual({ overflow: "latest" });
  const a = gpu.tensor(f32(1));
  const controller = new AbortController();
  const reason = new Error("enough");
  const aborted = a.exp().read({ signal: controller.signal });
  const late = a.exp().read({ deadlineMs: 0, label: "soon" });
  const keyed = a.exp().read({ key: "k" });
  assert.equal(core.queued[2].key, 1);
  controller.abort(reason);
  await assert.rejects(aborted, reason);
  await assert.rejects(a.exp().read({ signal: controller.signal }), reason);
  await assert.rejects(late, {
    code: "timeout",
    message: "read (label 'soon'): no answer within 0 ms",
  });
  gpu.flush();
  core.answer({ failure: { code: "out-of-memory", message: "full" } });
  await assert.rejects(keyed, { code: "out-of-memory", message: "read: full" });
});

test("what the core refuses rejects that reading alone", async () => {
  for (const method of ["chain", "reserve", "submit", "hold", "fill"]) {
    const { gpu, core } = await manual();
    const a = gpu.tensor(new Float32Array(5000));
    a.read();
    core.failures[method] = { code: "limit-exceeded", message: "too much" };
    core.view()[core.header() + 1] = 0; // No room without `reserve`.
    await assert.rejects(
      a
        .exp()
        .concat(gpu.tensor(new Float32Array(9000)))
        .read({ label: "y" }),
      {
        code: "limit-exceeded",
        message: /too much$/,
      },
    );
    const promise = gpu.tensor(f32(0)).exp().read();
    gpu.flush();
    core.answer();
    assert.deepEqual(await promise, f32(1));
  }
});

test("a trap of the core ends the session", async () => {
  for (const method of ["chain", "submit", "hold", "fill", "release"]) {
    const { gpu, core } = await manual();
    const large = gpu.tensor(new Float32Array(20_000));
    const small = gpu.tensor(f32(1));
    const pending = gpu.lerp(f32(1), f32(1), 0);
    core.failures[method] = new WebAssembly.RuntimeError("unreachable");
    const read = () => gpu.tensor(new Float32Array(20_000)).sum().read();
    if (method === "release") large.dispose();
    else if (method === "hold" || method === "fill")
      assert.throws(read, { code: "fatal" });
    else await assert.rejects(read(), { code: "fatal" });
    await assert.rejects(pending, { code: "fatal" });
    await assert.rejects(small.read(), { code: "fatal" });
    assert.throws(() => gpu.tensor(f32(1)), { code: "fatal" });
  }
});

test("explain plans readings and sends none", async () => {
  const { gpu, core } = await manual();
  const a = gpu.tensor(f32(1));
  let promise;
  assert.equal(
    gpu.explain(() => {
      promise = a.exp().read();
    }),
    "chain 0",
  );
  await assert.rejects(promise, {
    code: "aborted",
    message: /^read: made inside/,
  });
  assert.equal(core.queued.length, 0);
  assert.equal(await stateOf(a.read()), "pending");
});
