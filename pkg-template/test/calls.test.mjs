// From a right call to its answer: what the core is given, and what comes back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, fake, manual } from "./face.mjs";

const f32 = (...values) => new Float32Array(values);
const u8 = (length, value) => new Uint8Array(length).fill(value);

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
