// What chains give, from the words and data that the core is handed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual, module, settled, stateOf } from "./face.mjs";

const f32 = (...values) => new Float32Array(values);
const u32 = (...values) => new Uint32Array(values);

/** Reads one tensor of a session of its own. */
async function read(make) {
  const { gpu, core } = await manual();
  const tensor = make(gpu);
  const promise = tensor.read();
  gpu.flush();
  core.answer();
  return { shape: tensor.shape, result: await promise, core, gpu };
}

const x = (gpu) => gpu.tensor(f32(1, -2, 3, -4, 5, -6), [2, 3]);
const row = (gpu) => gpu.tensor(f32(10, 20, 30));
const column = (gpu) => gpu.tensor(f32(1, 2), [2, 1]);
const cube = (gpu) =>
  gpu.tensor(
    Float32Array.from({ length: 24 }, (_, i) => i),
    [2, 3, 4],
  );
const third = 1 / Math.sqrt(3);

// What is recorded, the shape it says it has, and what reading it gives.
const RESULTS = [
  // As they are.
  [x, [2, 3], [1, -2, 3, -4, 5, -6]],
  [
    (gpu) =>
      gpu
        .tensor([
          [1, 2],
          [3, 4],
        ])
        .add(0),
    [2, 2],
    [1, 2, 3, 4],
  ],
  [(gpu) => gpu.tensor([[[1], [2]]]), [1, 2, 1], [1, 2]],
  [(gpu) => gpu.tensor([7], []).neg(), [], [-7]],
  [(gpu) => gpu.tensor(u32(2 ** 31, 5)), [2], [2 ** 31, 5]],
  [(gpu) => gpu.tensor(new Int32Array([3, 4])), [2], [3, 4]],
  // Element by element.
  [(gpu) => x(gpu).relu(), [2, 3], [1, 0, 3, 0, 5, 0]],
  [(gpu) => x(gpu).abs().sqrt().slice([0, 1], [0, 1]), [1, 1], [1]],
  [(gpu) => x(gpu).neg(), [2, 3], [-1, 2, -3, 4, -5, 6]],
  [(gpu) => gpu.tensor(f32(0)).sigmoid(), [1], [0.5]],
  [(gpu) => gpu.tensor(f32(0, 1)).tanh(), [2], [0, Math.tanh(1)]],
  [(gpu) => gpu.tensor(f32(1)).silu(), [1], [1 / (1 + Math.exp(-1))]],
  [(gpu) => gpu.tensor(f32(1)).swish(), [1], [1 / (1 + Math.exp(-1))]],
  [(gpu) => gpu.tensor(f32(1)).gelu(), [1], [0.8413447]],
  [(gpu) => gpu.tensor(f32(1)).gelu({}), [1], [0.8413447]],
  [(gpu) => gpu.tensor(f32(1)).gelu({ approximate: "tanh" }), [1], [0.841192]],
  [(gpu) => gpu.tensor(f32(0, 1)).exp(), [2], [1, Math.E]],
  [(gpu) => gpu.tensor(f32(1, Math.E)).log(), [2], [0, 1]],
  // Of two, broadcast.
  [(gpu) => x(gpu).add(row(gpu)), [2, 3], [11, 18, 33, 6, 25, 24]],
  [(gpu) => row(gpu).add(x(gpu)), [2, 3], [11, 18, 33, 6, 25, 24]],
  [(gpu) => x(gpu).sub(column(gpu)), [2, 3], [0, -3, 2, -6, 3, -8]],
  [(gpu) => row(gpu).mul(column(gpu)), [2, 3], [10, 20, 30, 20, 40, 60]],
  [(gpu) => x(gpu).div(2), [2, 3], [0.5, -1, 1.5, -2, 2.5, -3]],
  [(gpu) => x(gpu).minimum(0), [2, 3], [0, -2, 0, -4, 0, -6]],
  [(gpu) => x(gpu).maximum(x(gpu).neg()), [2, 3], [1, 2, 3, 4, 5, 6]],
  [(gpu) => x(gpu).pow(2), [2, 3], [1, 4, 9, 16, 25, 36]],
  [(gpu) => x(gpu).scale(-2), [2, 3], [-2, 4, -6, 8, -10, 12]],
  [(gpu) => x(gpu).clamp(-3, 2), [2, 3], [1, -2, 2, -3, 2, -3]],
  [(gpu) => x(gpu).clamp(column(gpu), 3), [2, 3], [1, 1, 3, 2, 3, 2]],
  [
    (gpu) => x(gpu).relu().scale(2).add(row(gpu)),
    [2, 3],
    [12, 20, 36, 10, 30, 30],
  ],
  // Over axes.
  [(gpu) => x(gpu).sum(), [], [-3]],
  [(gpu) => x(gpu).sum(0), [3], [-3, 3, -3]],
  [(gpu) => x(gpu).sum(-1), [2], [2, -5]],
  [(gpu) => x(gpu).sum([0, -1]), [], [-3]],
  [(gpu) => x(gpu).sum([]), [2, 3], [1, -2, 3, -4, 5, -6]],
  [(gpu) => x(gpu).sum({ axis: 1, keepDims: true }), [2, 1], [2, -5]],
  [(gpu) => x(gpu).sum({ keepDims: true }), [1, 1], [-3]],
  [(gpu) => cube(gpu).sum([2, 0]), [3], [60, 92, 124]],
  [(gpu) => gpu.tensor([], [0, 2]).sum(0), [2], [0, 0]],
  [(gpu) => cube(gpu).mean(1).slice([1]), [1, 4], [16, 17, 18, 19]],
  [(gpu) => x(gpu).max(1), [2], [3, 5]],
  [(gpu) => x(gpu).min(0), [3], [-4, -2, -6]],
  [(gpu) => x(gpu).argmax(1), [2], [2, 1]],
  [(gpu) => x(gpu).argmax(), [], [4]],
  [(gpu) => gpu.tensor(f32(1, NaN, 3)).argmax(), [], [1]],
  [(gpu) => x(gpu).dot(row(gpu)), [2], [60, -120]],
  [(gpu) => row(gpu).dot(row(gpu)), [], [1400]],
  // Rows scaled.
  [
    (gpu) => gpu.tensor(f32(1, 1, 2, 2), [2, 2]).softmax(),
    [2, 2],
    [0.5, 0.5, 0.5, 0.5],
  ],
  [
    (gpu) => gpu.tensor(f32(0, 0, Math.log(3), 0), [2, 2]).softmax(0),
    [2, 2],
    [0.25, 0.5, 0.75, 0.5],
  ],
  [(gpu) => gpu.tensor(f32(0, 0)).softmax({ axis: 0 }), [2], [0.5, 0.5]],
  [(gpu) => gpu.tensor(f32(1, 3)).layerNorm({ epsilon: 0 }), [2], [-1, 1]],
  [(gpu) => gpu.tensor(f32(1, 3)).layerNorm({ epsilon: 3 }), [2], [-0.5, 0.5]],
  [(gpu) => gpu.tensor(f32(0, 0)).layerNorm(), [2], [0, 0]],
  [(gpu) => gpu.tensor(f32(2, 2, 2)).rmsNorm(), [3], [1, 1, 1]],
  [
    (gpu) => gpu.tensor(f32(5, 5, 5), [3, 1]).normalize(0),
    [3, 1],
    [third, third, third],
  ],
  [(gpu) => gpu.tensor(f32(3, 4)).normalize(), [2], [0.6, 0.8]],
  // Moved.
  [(gpu) => x(gpu).transpose(), [3, 2], [1, -4, -2, 5, 3, -6]],
  [
    (gpu) => cube(gpu).transpose([-1, 0, 1]).slice([0, 1]),
    [1, 2, 3],
    [0, 4, 8, 12, 16, 20],
  ],
  [(gpu) => x(gpu).slice([1]), [1, 3], [-4, 5, -6]],
  [(gpu) => x(gpu).slice([], [1, 3]), [2, 2], [-2, 3, 5, -6]],
  [
    (gpu) => x(gpu).slice(undefined, [-1, undefined, -1]),
    [2, 3],
    [3, -2, 1, -6, 5, -4],
  ],
  [
    (gpu) => x(gpu).slice([0, 99], [undefined, undefined, 2]),
    [2, 2],
    [1, 3, -4, -6],
  ],
  [(gpu) => x(gpu).slice([0, 1], [2, 0, -1]), [1, 2], [3, -2]],
  [(gpu) => x(gpu).slice([0, 1], [0, 3, 2 ** 40]), [1, 1], [1]],
  [
    (gpu) =>
      x(gpu)
        .slice([1, 2], [5])
        .concat(row(gpu).reshape([1, 3]), 1),
    [1, 3],
    [10, 20, 30],
  ],
  [(gpu) => x(gpu).reshape([3, -1]), [3, 2], [1, -2, 3, -4, 5, -6]],
  [(gpu) => x(gpu).reshape([-1]), [6], [1, -2, 3, -4, 5, -6]],
  [
    (gpu) => x(gpu).gather(u32(1, 0, 1)),
    [3, 3],
    [-4, 5, -6, 1, -2, 3, -4, 5, -6],
  ],
  [
    (gpu) => x(gpu).gather(gpu.tensor(u32(2, 0), [2, 1]), 1),
    [2, 2, 1],
    [3, 1, -6, -4],
  ],
  [(gpu) => row(gpu).gather(row(gpu).argmax()), [], [30]],
  [(gpu) => gpu.tensor(u32(7, 8, 9)).gather(new Int32Array([2])), [1], [9]],
  [
    (gpu) => x(gpu).concat(row(gpu).reshape([1, 3])),
    [3, 3],
    [1, -2, 3, -4, 5, -6, 10, 20, 30],
  ],
  [
    (gpu) => x(gpu).concat([column(gpu), column(gpu)], -1),
    [2, 5],
    [1, -2, 3, 1, 1, -4, 5, -6, 2, 2],
  ],
];

for (const [make, shape, expected] of RESULTS) {
  test(make.toString().replace(/\s+/g, " "), async () => {
    const { shape: got, result } = await read(make);
    assert.deepEqual(got, shape);
    assert.equal(result.length, expected.length);
    expected.forEach((value, i) => {
      const error = Math.abs(result[i] - value);
      assert.ok(
        error <= 2e-7 * Math.abs(value),
        `${result} is not ${expected}`,
      );
    });
  });
}

test("the words of a chain: what is shared stands there once", async () => {
  const { core } = await read((gpu) => {
    const a = gpu.tensor(f32(1, 2), [1, 2]);
    const twice = a.scale(2);
    return twice.add(twice).add(a).sum(1);
  });
  assert.deepEqual(
    [...core.structures[0].words],
    [
      ...[6, 1],
      ...[0 | (4 << 16), 0, 0, 1, 2], // 0: floats with the call, of shape [1, 2]
      1, // 1: a number
      ...[3 | (2 << 8) | (1 << 16), 0, 1, 2], // 2: 0 · 1
      ...[3 | (2 << 8) | (1 << 16), 2, 2, 0], // 3: 2 + 2
      ...[3 | (2 << 8) | (1 << 16), 3, 0, 0], // 4: 3 + 0
      ...[6 | (1 << 8) | (3 << 16), 4, 0, 0, 1], // 5: the sum over axis 1
      5,
    ],
  );
});

test("a tensor says what it is, whatever is done to its list of dimensions", async () => {
  const { gpu } = await manual();
  const dims = [2, 3];
  const a = gpu.tensor(new Float32Array(6), dims);
  dims[0] = 9;
  a.shape[0] = 9;
  assert.deepEqual(a.exp().shape, [2, 3]);
  assert.equal(a.dtype, "float32");
  assert.equal(a.argmax().transpose().dtype, "uint32");
});

test("a structure is asked for once; numbers and data are none of it", async () => {
  const { gpu, core } = await manual();
  const promises = [];
  for (let i = 1; i <= 4; i += 1) {
    promises.push(gpu.tensor(f32(i, i)).scale(i).read());
    promises.push(gpu.tensor(f32(i)).scale(i).read());
    promises.push(gpu.tensor(f32(i)).add(i).read());
  }
  assert.equal(core.structures.length, 3);
  gpu.flush();
  core.answer();
  const results = await Promise.all(promises);
  assert.deepEqual(
    results.map((result) => [...result]),
    [1, 2, 3, 4].flatMap((i) => [[i * i, i * i], [i * i], [i + i]]),
  );
});

test("axes in any order are one structure", async () => {
  const { gpu, core } = await manual();
  const orders = [
    [2, 0],
    [0, 2],
    [-1, -3],
  ];
  const sums = orders.map((axis) => cube(gpu).sum(axis).read());
  assert.equal(core.structures.length, 1);
  gpu.flush();
  core.answer();
  for (const sum of await Promise.all(sums)) {
    assert.deepEqual(sum, f32(60, 92, 124));
  }
});

test("words of one hash are kept apart", async () => {
  const { ChainStructures } = await module("tensor/structures");
  const held = new Map();
  let next = 0;
  const structures = new ChainStructures({
    chain: (words) => held.set(next, words.join()) && next++,
    forget: (numbers) => numbers.forEach((number) => held.delete(number)),
  });
  const words = new Uint32Array(2);
  // Enough for some to collide in 30 bits, though only the last thousand are kept.
  for (let i = 0; i < 200_000; i += 1) {
    words.set([Math.imul(i, 0x9e3779b1), i]);
    for (let again = 0; again < 2; again += 1) {
      const { number } = structures.find({ words, length: 2 }, []);
      if (held.get(number) !== words.join()) assert.fail(`${words}: ${number}`);
    }
  }
  assert.equal(next, 200_000);
  assert.ok(held.size <= 1024, `${held.size} are held`);
});

test("many structures are kept apart", async () => {
  const { gpu, core } = await manual();
  const promises = [];
  for (let round = 0; round < 2; round += 1) {
    for (let length = 1; length <= 300; length += 1) {
      promises.push(gpu.tensor(new Float32Array(length).fill(1)).sum().read());
    }
  }
  assert.equal(core.structures.length, 300);
  gpu.flush();
  core.answer();
  const sums = (await Promise.all(promises)).map(([sum]) => sum);
  assert.deepEqual(
    sums,
    sums.map((_, i) => (i % 300) + 1),
  );
});

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
  test(`results in pieces of ${words} words`, async () => {
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
    core.answerInPieces(words);
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
