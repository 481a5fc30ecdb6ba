// From a right call to its answer: what the core is given, and what comes back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, fake, manual, settled, stateOf } from "./face.mjs";

const f32 = (...values) => new Float32Array(values);
const u8 = (length, value) => new Uint8Array(length).fill(value);
const { FramebatchError } = face;

async function one(promiseOf, answer) {
  const { gpu, core } = await manual();
  const promise = promiseOf(gpu);
  gpu.flush();
  core.answer(answer);
  return { gpu, core, result: await promise };
}

const RESULTS = [
  [
    "lerp, one t",
    (gpu) => gpu.lerp(f32(0, 10, 20), f32(10, 20, 30), 0.5),
    [5, 15, 25],
  ],
  [
    "lerp, a t an item",
    (gpu) => gpu.lerp(f32(0, 0), f32(8, 8), f32(0.25, 1)),
    [2, 8],
  ],
  [
    "lerp, a t an item of three",
    (gpu) =>
      gpu.lerp(f32(0, 0, 0, 0, 0, 0), f32(4, 4, 4, 4, 4, 4), f32(0.5, 1), {
        width: 3,
      }),
    [2, 2, 2, 4, 4, 4],
  ],
  [
    "lerp, a width and one t",
    (gpu) => gpu.lerp(f32(0, 0), f32(4, 8), 0.5, { width: 2 }),
    [2, 4],
  ],
  [
    "slerp, a t a quaternion",
    (gpu) =>
      gpu.slerp(
        f32(0, 0, 0, 0, 1, 1, 1, 1),
        f32(2, 2, 2, 2, 3, 3, 3, 3),
        f32(0.5, 1),
      ),
    [1, 1, 1, 1, 3, 3, 3, 3],
  ],
  [
    "nlerp, one t",
    (gpu) => gpu.nlerp(f32(0, 0, 0, 0), f32(2, 2, 2, 2), 0.5),
    [1, 1, 1, 1],
  ],
  [
    "states.gradients",
    (gpu) => gpu.states.gradients(u8(16, 3)),
    Array.from({ length: 32 }, (_, i) => (i % 2 ? -3 : 3)),
  ],
  [
    "states.lerp",
    (gpu) => gpu.states.lerp(u8(32, 0), u8(32, 200), f32(0.5, 1)),
    [...u8(16, 100), ...u8(16, 200)],
  ],
  [
    "states.slerp",
    (gpu) => gpu.states.slerp(u8(16, 0), u8(16, 8), 0.25),
    [...u8(16, 2)],
  ],
  [
    "bezier, one t",
    (gpu) => gpu.bezier([f32(1, 2), f32(10, 20), f32(0, 1), f32(0, 0)], 0.5),
    [21.5, 45.5],
  ],
  [
    "bezier, a t an item of two",
    (gpu) => {
      const zero = f32(0, 0, 0, 0);
      const points = [f32(1, 2, 3, 4), zero, zero, f32(1, 1, 1, 1)];
      return gpu.bezier(points, f32(0.5, 10), { width: 2 });
    },
    [5.5, 6.5, 17, 18],
  ],
  [
    "states.bezier, a t a state",
    (gpu) =>
      gpu.states.bezier(
        [u8(32, 1), u8(32, 10), u8(32, 0), u8(32, 2)],
        f32(1, 2),
      ),
    [...u8(16, 30), ...u8(16, 31)],
  ],
  [
    "states.sequence, two ways",
    (gpu) =>
      gpu.states.sequence(
        new Uint8Array([...u8(16, 0), ...u8(16, 100)]),
        new Uint8Array([...u8(16, 8), ...u8(16, 200)]),
        3,
        "slerp",
      ),
    [0, 4, 8, 100, 150, 200].flatMap((value) => [...u8(16, value)]),
  ],
  [
    "states.distance",
    (gpu) => gpu.states.distance(u8(32, 3), u8(32, 10)),
    [7, 7],
  ],
  [
    "states.geodesicDistance",
    (gpu) => gpu.states.geodesicDistance(u8(16, 3), u8(16, 5)),
    [2],
  ],
  [
    "states.descend, a rate a state",
    (gpu) => gpu.states.descend(u8(32, 9), f32(1, 5)),
    [...u8(16, 8), ...u8(16, 4)],
  ],
];

for (const [name, call, expected] of RESULTS) {
  for (const mapped of [true, false]) {
    test(`${name}: the result, ${mapped ? "from a mapped range" : "from wasm memory"}`, async () => {
      const { result } = await one(call, { mapped });
      assert.deepEqual([...result], expected);
      assert.equal(
        result.buffer.byteLength,
        result.byteLength,
        "an array of its own",
      );
    });
  }
}

test("structures: one number for each, and the spec the core expects", async () => {
  const { gpu, core } = await manual();
  for (let i = 0; i < 2; i += 1) {
    gpu.lerp(f32(1, 1), f32(1, 1), 0);
    gpu.lerp(f32(1, 1), f32(1, 1), 0, { width: 2 });
    gpu.lerp(f32(1, 1), f32(1, 1), f32(0, 0));
    gpu.lerp(f32(1, 1), f32(1, 1), f32(0), { width: 2 });
    gpu.slerp(f32(1, 1, 1, 1), f32(1, 1, 1, 1), 0);
    gpu.states.gradients(u8(16, 0));
    gpu.states.slerp(u8(16, 0), u8(16, 0), f32(0));
  }
  assert.deepEqual(
    core.structures.map(({ op, width, each }) => `${op} ${width} ${each}`),
    [
      "lerp 1 false",
      "lerp 1 true",
      "lerp 2 true",
      "slerp 4 false",
      "states.gradients 16 false",
      "states.slerp 16 true",
    ],
  );
  assert.deepEqual(
    core.queued.slice(0, 7).map(({ rows }) => rows),
    [2, 2, 2, 1, 1, 1, 1],
  );
});

test("inputs are copied: the caller may change them at once", async () => {
  const { gpu, core } = await manual();
  const lengths = [1, 3, 47, 48, 49, 500];
  const a = lengths.map((length) => new Float32Array(length).fill(length));
  const promises = a.map((array) => gpu.lerp(array, array, 0.5));
  for (const array of a) array.fill(-1);
  gpu.flush();
  core.answer();
  for (const [i, promise] of promises.entries()) {
    assert.deepEqual(
      await promise,
      new Float32Array(lengths[i]).fill(lengths[i]),
    );
  }
});

test("wasm memory may grow between calls and under one", async () => {
  const { gpu, core } = await manual();
  const large = new Float32Array(200_000).fill(4);
  const promises = [
    gpu.lerp(f32(1), f32(1), 0),
    gpu.lerp(large, large, 0),
    gpu.lerp(f32(2), f32(2), 0),
  ];
  assert.ok(core.counts.reserves > 0);
  gpu.flush();
  core.answer({ mapped: false });
  const results = await Promise.all(promises);
  assert.deepEqual(
    results.map((result) => [result.length, result[0]]),
    [
      [1, 1],
      [200_000, 4],
      [1, 2],
    ],
  );
});

test("promises settle in submission order, each with its own value", async () => {
  const { gpu, core } = await manual();
  const order = [];
  for (let i = 0; i < 300; i += 1) {
    gpu.lerp(f32(i), f32(i), 0).then(([value]) => order.push(value));
  }
  gpu.flush();
  core.answer();
  await settled();
  assert.deepEqual(
    order,
    Array.from({ length: 300 }, (_, i) => i),
  );
});

test("a core that answers inside flush, and inside submit", async () => {
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  core.full = 3;
  const promises = [1, 2, 3, 4, 5].map((i) => gpu.lerp(f32(i), f32(i), 0));
  assert.equal(core.queued.length, 2);
  gpu.flush();
  assert.deepEqual(
    (await Promise.all(promises)).map(([value]) => value),
    [1, 2, 3, 4, 5],
  );
});

test("tickets wrap around", async () => {
  const { gpu, core } = await manual();
  core.nextTicket = 0xffffffff - 50;
  const promises = Array.from({ length: 200 }, (_, i) =>
    gpu.lerp(f32(i), f32(i), 0),
  );
  gpu.flush();
  core.answer();
  assert.deepEqual(
    (await Promise.all(promises)).map(([value]) => value),
    Array.from({ length: 200 }, (_, i) => i),
  );
});

test("a failure is the failure of its own call", async () => {
  const { gpu, core } = await manual();
  const first = gpu.lerp(f32(1), f32(1), 0);
  const second = gpu.lerp(f32(2), f32(2), 0, { label: "hero" });
  gpu.flush();
  const failed = core.flights[0][1].ticket;
  core.answer({
    failure: { code: "device-lost", message: "gone" },
    only: ({ ticket }) => ticket === failed,
  });
  assert.deepEqual([...(await first)], [1]);
  await assert.rejects(second, {
    code: "device-lost",
    message: "lerp (label 'hero'): gone",
  });
});

test("every status is its code", async () => {
  const { gpu, core } = await manual();
  for (const code of face.CODES) {
    const promise = gpu.slerp(f32(0, 0, 0, 1), f32(0, 0, 0, 1), 0);
    gpu.flush();
    core.answer({ failure: { code, message: "so it is" } });
    await assert.rejects(promise, { code, message: "slerp: so it is" });
  }
});

test("an older call may be superseded while a newer one is submitted", async () => {
  const { gpu, core } = await manual({ overflow: "latest" });
  const older = gpu.lerp(f32(1), f32(1), 0, { key: "k" });
  const { submit } = core;
  core.submit = function (...args) {
    this.supersede(this.queued[0].ticket);
    return submit.apply(this, args);
  };
  const newer = gpu.lerp(f32(2), f32(2), 0, { key: "k" });
  await assert.rejects(older, { code: "superseded" });
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await newer)], [2]);
});

test("a call says where it runs", async () => {
  const { gpu, core } = await manual();
  const tensor = gpu.tensor([1, 2]);
  for (const engine of [undefined, "gpu", "cpu"]) {
    gpu.lerp(f32(1), f32(1), 0, { engine });
    tensor.exp().read({ engine });
  }
  gpu.lerp(f32(1), f32(1), 0);
  assert.deepEqual(
    core.queued.map(({ engine }) => engine),
    [0, 0, 1, 1, 2, 2, 0],
  );
});

test("keys are numbers only under 'latest', and live as long as their calls", async () => {
  const plain = await manual();
  plain.gpu.lerp(f32(1), f32(1), 0, { key: "k" });
  assert.deepEqual(
    plain.core.queued.map(({ key }) => key),
    [0],
  );

  const { gpu, core } = await manual({ overflow: "latest" });
  const call = (key) => gpu.lerp(f32(1), f32(1), 0, { key });
  for (const key of ["x", "y", "x", undefined]) call(key);
  assert.deepEqual(
    core.queued.map(({ key }) => key),
    [1, 2, 1, 0],
  );
  gpu.flush();
  core.answer();
  call("x");
  assert.equal(core.queued[0].key, 3, "forgotten with its last call");
});

test("flush: 'now' sends the batch with this call in it", async () => {
  const { gpu, core } = await manual();
  gpu.lerp(f32(1), f32(1), 0);
  gpu.lerp(f32(1), f32(1), 0, { flush: "now" });
  assert.deepEqual([core.flights[0].length, core.queued.length], [2, 0]);
});

test("the queue is full: the call rejects, and others are untouched", async () => {
  const { gpu, core } = await manual();
  const good = gpu.lerp(f32(1), f32(1), 0);
  core.failures.submit = { code: "queue-full", message: "the queue is full" };
  const bad = gpu.lerp(f32(2), f32(2), 0);
  await assert.rejects(bad, {
    code: "queue-full",
    message: "lerp: the queue is full",
  });
  await assert.rejects(bad, FramebatchError);
  gpu.flush();
  core.answer();
  assert.deepEqual([...(await good)], [1]);
});

test("the clock hears of answers: an eager session sends what was collected", async () => {
  const { gpu, core } = await manual({ flush: "eager" });
  const now = (at) => (core.queued.length > 0 ? at : NaN);
  core.dueAt = now;
  const first = gpu.lerp(f32(1), f32(1), 0);
  await settled();
  core.dueAt = NaN; // busy
  const second = gpu.lerp(f32(2), f32(2), 0);
  await settled();
  assert.equal(core.queued.length, 1);
  core.dueAt = now;
  core.answer();
  await settled();
  core.answer();
  assert.deepEqual([(await first)[0], (await second)[0]], [1, 2]);
});

for (const event of ["restored", "fallback", "returned"]) {
  test(`an eager session sends what waited for calls that were given up: ${event}`, async () => {
    const { gpu, core } = await manual({ flush: "eager" });
    const given = new AbortController();
    const { signal } = given;
    core.dueAt = (at) => (core.flights.length === 0 ? at : NaN);
    const first = gpu.lerp(f32(1), f32(1), 0, { signal });
    await settled();
    assert.equal(core.flights.length, 1);
    given.abort("enough");
    await assert.rejects(first, (reason) => reason === "enough");
    const second = gpu.lerp(f32(2), f32(2), 0); // It waits for the first.
    await settled();
    assert.equal(core.counts.flushes, 1);
    // The first goes back to the queue, where nobody wants it.
    core.flights = [];
    core.tell("lost", "the device was lost");
    core.tell(event, "nobody is answered");
    await settled();
    assert.equal(core.counts.flushes, 2);
    core.answer();
    assert.deepEqual([...(await second)], [2]);
  });
}

test("only gpu.flush passes the limit of batches on their way", async () => {
  const asked = [];
  for (const flush of ["manual", "eager", (run) => asked.push(run)]) {
    const { gpu, core } = await manual({ flush });
    core.dueAt = (at) => at;
    gpu.lerp(f32(1), f32(1), 0);
    asked.pop()?.();
    await settled();
    gpu.lerp(f32(1), f32(1), 0, { flush: "now" });
    assert.equal(core.counts.atOnce, 0);
    assert.ok(core.counts.flushes > 0);
    const before = core.counts.flushes;
    gpu.flush();
    const { flushes, atOnce } = core.counts;
    assert.deepEqual([flushes, atOnce], [before + 1, 1]);
  }
});

test("a scheduler hears only of calls that wait", async () => {
  let asked = 0;
  const { gpu, core } = await manual({ flush: () => (asked += 1) });
  core.failures.submit = { code: "queue-full", message: "full" };
  await assert.rejects(gpu.lerp(f32(1), f32(1), 0), { code: "queue-full" });
  core.answersAtOnce = true;
  core.full = 1;
  assert.deepEqual([...(await gpu.lerp(f32(1), f32(1), 0))], [1]);
  assert.equal(asked, 0);
  core.full = Infinity;
  gpu.lerp(f32(1), f32(1), 0);
  assert.equal(asked, 1);
});

test("into: filled, and what the promise resolves to", async () => {
  const { gpu, core } = await manual();
  const backing = new Float32Array(10).fill(7);
  const into = backing.subarray(2, 5);
  const bytes = new Uint8Array(16);
  const floats = gpu.lerp(f32(1, 2, 3), f32(3, 4, 5), 0.5, { into });
  const states = gpu.states.lerp(u8(16, 2), u8(16, 4), 0.5, { into: bytes });
  gpu.flush();
  core.answer();
  assert.equal(await floats, into);
  assert.deepEqual([...backing], [7, 7, 2, 3, 4, 7, 7, 7, 7, 7]);
  assert.equal(await states, bytes);
  assert.deepEqual([...bytes], [...u8(16, 3)]);
});

test("into that is detached meanwhile rejects its own call only", async () => {
  const { gpu, core } = await manual();
  const into = new Float32Array(2);
  const lost = gpu.lerp(f32(1, 1), f32(1, 1), 0, { into, label: "lost" });
  const kept = gpu.lerp(f32(2), f32(2), 0);
  gpu.flush();
  structuredClone(into.buffer, { transfer: [into.buffer] });
  core.answer();
  await assert.rejects(lost, {
    code: "invalid-input",
    message: /^lerp \(label 'lost'\): into was detached/,
  });
  assert.deepEqual([...(await kept)], [2]);
});

test("options are read once: changing the object later changes nothing", async () => {
  const { gpu, core } = await manual();
  const options = { into: new Float32Array(1), label: "first" };
  const { into } = options;
  const promise = gpu.lerp(f32(1), f32(1), 0, options);
  options.into = new Float32Array(9);
  gpu.flush();
  core.answer();
  assert.equal(await promise, into);
});

test("ready and desiredSize follow the queue", async () => {
  const { gpu, core } = await manual();
  core.room = 2;
  assert.equal(gpu.desiredSize, 2);
  await gpu.ready;
  gpu.lerp(f32(1), f32(1), 0);
  gpu.lerp(f32(1), f32(1), 0);
  assert.equal(gpu.desiredSize, 0);
  const { ready } = gpu;
  assert.equal(await stateOf(ready), "pending");
  gpu.flush();
  await ready;
  core.answer();
});

test("calls on four arrays made while the session opens are entered with copies", async () => {
  const opening = face.shared();
  const points = [f32(1), f32(0), f32(0), f32(1)];
  const promise = opening.bezier(points, 0.5);
  for (const point of points) point.fill(99);
  await opening.ready;
  opening.flush();
  fake.core.answer();
  assert.deepEqual([...(await promise)], [5.5]);
  await opening.dispose();
});

test("sequences of any number of steps have one structure each, asked for once", async () => {
  const { gpu, core } = await manual();
  const state = u8(16, 0);
  const lengths = [3, 16, 5, 3, 16].map((steps) => {
    const calls = ["lerp", "slerp"].map((mode) =>
      gpu.states.sequence(state, state, steps, mode),
    );
    return { steps, calls };
  });
  gpu.flush();
  core.answer();
  for (const { steps, calls } of lengths) {
    for (const call of calls) assert.equal((await call).length, steps * 16);
  }
  const asked = core.structures.map(({ op, width }) => `${op} ${width}`);
  assert.deepEqual(
    asked.sort(),
    [3, 5, 16]
      .flatMap((steps) => [
        `states.sequence lerp ${steps}`,
        `states.sequence slerp ${steps}`,
      ])
      .sort(),
  );
});

test("gradients of a field have a structure of their own, asked for once a formula", async () => {
  const { gpu, core } = await manual();
  const ask = (options) => gpu.states.gradients(u8(16, 3), options);
  const [field, other] = ["rho * theta", "rho"];
  const calls = [ask({ field }), ask(), ask({ field }), ask({ field: other })];
  gpu.flush();
  core.answer();
  for (const call of calls) assert.equal((await call).length, 32);
  const formulas = core.structures.map(({ formula }) => formula);
  assert.deepEqual(formulas, [field, undefined, other]);
});

test("a wrong formula rejects its own call", async () => {
  const { gpu, core } = await manual();
  core.failures.field_gradients = {
    code: "invalid-input",
    message: "field: no",
  };
  const wrong = gpu.states.gradients(u8(16, 3), { field: "?", label: "x" });
  const right = gpu.states.gradients(u8(16, 3));
  await assert.rejects(wrong, {
    code: "invalid-input",
    message: "states.gradients (label 'x'): field: no",
  });
  gpu.flush();
  core.answer();
  assert.equal((await right).length, 32);
});
