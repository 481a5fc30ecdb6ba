// Arrays made before their results: for whom, how long, and that each is had once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual, module, settled } from "./face.mjs";
import { fakeEnvironment } from "./fake-environment.mjs";

const { Operands } = await module("calls/operands");
const { PendingCalls } = await module("queue/pending-calls");
const { Preallocator } = await module("results/preallocator");

const FLOATS = new Operands({ gives: "float32" });
const BYTES = new Operands({ gives: "uint8" });

/** A preallocator, a clock that moves by `look` whenever it is read, and calls to send. */
function prepared({ look = 0, ...page } = {}) {
  const world = fakeEnvironment(page);
  const { environment } = world;
  environment.now = () => (world.time += look);
  const pending = new PendingCalls();
  let flights = 0;
  let ticket = 2 ** 32 - 3;
  const preallocator = new Preallocator(environment, pending, () => flights);
  return {
    world,
    preallocator,
    /** Sends calls with results of so many floats, or as they are given. */
    send(...calls) {
      const sent = calls.map((call) => {
        ticket = (ticket + 1) >>> 0;
        const made = typeof call === "number" ? { elements: call } : call;
        return { ticket, operands: FLOATS, ...made };
      });
      for (const call of sent) pending.put(call);
      flights += 1;
      preallocator.sent();
      return sent;
    },
    /** The batch comes back, with these of its calls answered. */
    answer(calls) {
      flights -= 1;
      preallocator.returning();
      const arrays = calls.map(({ ticket }) => {
        const call = pending.take(ticket);
        preallocator.supply(call);
        return call.array;
      });
      preallocator.returned();
      return arrays;
    },
    abort: ({ ticket }) => pending.take(ticket),
    /** Runs every task; returns how many there were. */
    tasks() {
      let tasks = 0;
      for (; world.messages.length > 0; tasks += 1) {
        assert.ok(tasks < 10_000, "it never ends");
        world.task();
      }
      return tasks;
    },
  };
}

const lengths = (calls) => calls.map(({ array }) => array?.length);

test("what is on its way gets an array of its own; what is tiny, or has one, does not", () => {
  const { send, tasks } = prepared();
  const given = { into: new Float32Array(64) };
  const calls = send(
    64,
    16,
    17,
    0,
    { elements: 64, terms: given },
    { elements: 64, terms: { into: undefined } },
    { elements: 80, operands: BYTES },
    { elements: 64, operands: BYTES },
  );
  assert.equal(calls[0].array, undefined, "made in the task that sends");
  tasks();
  const none = undefined;
  assert.deepEqual(lengths(calls), [64, none, 17, none, none, 64, 80, none]);
  assert.ok(calls[0].array instanceof Float32Array);
  assert.ok(calls[6].array instanceof Uint8Array);
  const made = calls.flatMap(({ array }) => array?.buffer ?? []);
  assert.equal(new Set(made).size, 4);
});

test("what calls took along is made ahead for the next batch, before its results", () => {
  const { preallocator, send, answer, tasks } = prepared();
  const { pool } = preallocator;
  assert.equal(pool.takeAhead("float32", 400), undefined, "none yet");
  assert.equal(pool.takeAhead("float32", 400), undefined);
  answer(send(64));
  tasks();
  const [one, two, three] = [1, 2, 3].map(() => pool.takeAhead("float32", 400));
  assert.deepEqual([one.length, two.length, three], [100, 100, undefined]);
  assert.notEqual(one.buffer, two.buffer);
  // Three were needed, then none.
  answer(send(64));
  tasks();
  assert.equal(pool.takeAhead("float32", 400).length, 100);
  for (let batch = 0; batch < 2; batch += 1) {
    answer(send(64));
    tasks();
  }
  assert.equal(pool.takeAhead("float32", 400), undefined);
});

test("what is made ahead is nobody's while its pages are written", () => {
  const { preallocator, send, answer, tasks, world } = prepared({ look: 0.2 });
  const { pool } = preallocator;
  const [each, most] = [40 * 4096, 4];
  for (let i = 0; i < most; i += 1) pool.takeAhead("float32", each);
  answer(send(64));
  const had = [];
  for (let n = 0; world.messages.length > 0; n += 1) {
    assert.ok(n < 100, "it never ends");
    world.task();
    const array = pool.takeAhead("float32", each);
    if (array !== undefined) had.push(array.fill(0.1));
  }
  assert.equal(had.length, most);
  tasks();
  const isWhole = (array) => array.every((float) => float === Math.fround(0.1));
  assert.deepEqual(had.map(isWhole), [true, true, true, true]);
  // A batch that comes back takes what is half written as it is.
  for (let i = 0; i < most; i += 1) pool.takeAhead("float32", each);
  answer(send(64));
  world.task();
  preallocator.returning();
  const taken = pool.takeAhead("float32", each).fill(0.1);
  tasks();
  assert.ok(isWhole(taken));
});

test("tiny results take no task, however many there are", () => {
  const { send, answer, tasks, world } = prepared({ look: 0.2 });
  const tiny = send(...new Array(10_000).fill(16));
  assert.equal(world.messages.length, 0);
  // Among them only those are looked at that want one.
  const mixed = send(...new Array(10_000).fill(16), 64, 64);
  tasks();
  assert.deepEqual(lengths(mixed.slice(-2)), [64, 64]);
  assert.ok(world.time < 10, `${world.time} ms of looks at the clock`);
  answer(tiny);
  answer(mixed);
  const [late] = send(64);
  tasks();
  assert.equal(late.array.length, 64);
});

test("what a flush sent has arrays of 16 MiB at most", () => {
  const { send, tasks } = prepared();
  const calls = send(3 * 2 ** 20, 2 ** 20, 2 ** 20, 64);
  tasks();
  assert.deepEqual(
    calls.map(({ array }) => array !== undefined),
    [true, true, false, false],
  );
  const more = send(64);
  tasks();
  assert.equal(more[0].array.length, 64);
});

test("a task is short, and what follows the answers is for the next batch", () => {
  const { send, answer, tasks, world } = prepared({ look: 0.2 });
  const calls = send(...new Array(1000).fill(64));
  world.task();
  const made = () => calls.filter(({ array }) => array !== undefined).length;
  const once = made();
  assert.ok(once > 0 && once < 100, `${once} in one task`);
  world.task();
  assert.equal(made(), 2 * once);
  answer(calls);
  assert.equal(
    spy(() => tasks()),
    1000,
  );
  assert.equal(made(), 2 * once, "arrays for what is answered");
});

test("no page is written once results are filled", () => {
  const { send, answer, tasks, world } = prepared({ look: 0.2 });
  const [call] = send(2 ** 20);
  world.task();
  const array = call.array;
  const [same] = answer([call]);
  assert.equal(same, array);
  array.fill(0.1);
  tasks();
  assert.ok(array.every((value) => value === Math.fround(0.1)));
});

test("given up or answered before its turn: no array", () => {
  const { send, abort, answer, tasks } = prepared();
  const calls = send(64, 64, 64);
  abort(calls[0]);
  tasks();
  assert.deepEqual(lengths(calls), [undefined, 64, 64]);
  answer(calls.slice(1));
  const late = send(100);
  answer(late);
  tasks();
  assert.equal(late[0].array, undefined);
});

test("the next batch of the same kind finds its arrays, each once", () => {
  const { send, answer, tasks, world } = prepared();
  const kinds = [64, 100, 64, { elements: 256, operands: BYTES }];
  const seen = new Set();
  for (let batch = 0; batch < 5; batch += 1) {
    const calls = send(...kinds);
    const spent = spy(() => tasks());
    if (batch > 0) assert.equal(spent, 0, "arrays are made anew");
    const arrays = answer(calls);
    assert.deepEqual(lengths(calls), [64, 100, 64, 256]);
    for (const { buffer } of arrays) seen.add(buffer);
    assert.equal(
      spy(() => tasks()),
      4,
    );
  }
  assert.equal(seen.size, 20);
  assert.equal(world.timers.length, 1);
});

test("answers that leave no time find what was made after those before", () => {
  const { send, answer, tasks } = prepared();
  const given = { elements: 64, terms: { into: new Float32Array(64) } };
  const seen = new Set();
  const batch = () => {
    const arrays = answer(send(64, 16, 100, given));
    assert.equal(
      spy(() => tasks()),
      2,
    );
    for (const array of arrays) if (array) seen.add(array.buffer);
    return arrays.map((array) => array?.length);
  };
  const none = undefined;
  assert.deepEqual(batch(), [none, none, none, none]);
  assert.deepEqual(batch(), [64, none, 100, none]);
  assert.deepEqual(batch(), [64, none, 100, none]);
  assert.equal(seen.size, 4);
});

test("arrays of other lengths make room for those of the last batch", () => {
  const { send, answer, tasks } = prepared();
  const batch = (...kinds) => {
    const calls = send(...kinds);
    const made = spy(() => tasks());
    answer(calls);
    tasks();
    return made;
  };
  assert.deepEqual(
    [[64, 64], [64, 64, 64], [100], [64], [64]].map((kinds) => batch(...kinds)),
    [2, 1, 1, 1, 0],
  );
});

test("the reserve has bounds: 4,096 arrays, a mebibyte", () => {
  for (const [calls, length, expected] of [
    [5000, 17, 4096],
    [100, 2 ** 14, 16],
    [2, 2 ** 18 + 1, 0],
  ]) {
    const { send, answer, tasks } = prepared();
    const sent = send(...new Array(calls).fill(length));
    tasks();
    answer(sent);
    assert.equal(
      spy(() => tasks()),
      expected,
    );
  }
});

test("of a batch as large as the one before it is kept, up to 16 MiB", () => {
  for (const [calls, length, expected] of [
    [1, 2 ** 20, [0, 1, 1]],
    [2, 2 ** 20, [0, 2, 2]],
    [5, 2 ** 20, [0, 4, 4]],
    [1, 2 ** 22 + 1, [0, 0, 0]],
  ]) {
    const { send, answer, tasks, world } = prepared();
    const after = () => {
      const sent = send(...new Array(calls).fill(length));
      tasks();
      answer(sent);
      return spy(() => tasks());
    };
    assert.deepEqual([after(), after(), after()], expected);
    world.pass(1100);
    assert.equal(after(), 0, "nobody called for a second");
  }
});

test("the reserve is let go after a second without a batch", () => {
  const { send, answer, tasks, world } = prepared();
  const batch = () => {
    const calls = send(64, 64);
    const made = spy(() => tasks());
    answer(calls);
    tasks();
    return made;
  };
  assert.equal(batch(), 2);
  world.pass(900);
  assert.equal(batch(), 0);
  world.pass(900);
  assert.equal(batch(), 0, "a batch came in between");
  world.pass(1100);
  assert.equal(batch(), 2, "nobody called for a second");
  world.pass(3000);
  assert.equal(world.timers.length, 0);
});

test("a hidden page keeps none, a disposed one makes none", () => {
  for (const stop of [
    ({ world }) => world.show(false),
    ({ preallocator }) => preallocator.dispose(),
  ]) {
    const all = prepared();
    const calls = all.send(64, 64);
    all.tasks();
    all.answer(calls);
    stop(all);
    assert.equal(
      spy(() => all.tasks()),
      0,
    );
    assert.equal(all.world.timers.length, 0);
  }
});

test("without memory nothing is made, and nothing is thrown", () => {
  const { send, answer, tasks } = prepared();
  const calls = send({ elements: 64, operands: FLOATS }, 64);
  const { Float32Array } = globalThis;
  globalThis.Float32Array = function () {
    throw new RangeError("Array buffer allocation failed");
  };
  try {
    tasks();
    assert.deepEqual(lengths(calls), [undefined, undefined]);
    answer(calls);
    tasks();
  } finally {
    globalThis.Float32Array = Float32Array;
  }
  const later = send(64);
  tasks();
  assert.deepEqual(lengths(later), [64]);
});

const f32 = (length) => Float32Array.from({ length }, (_, i) => i);
const states = (count) => Uint8Array.from({ length: count * 16 }, (_, i) => i);
const points = [f32(32), f32(32), f32(32), f32(32)];
const curves = [states(8), states(8), states(8), states(8)];
const CALLS = {
  lerp: (gpu) => gpu.lerp(f32(20), f32(20), 0.5),
  "lerp, one t an item": (gpu) =>
    gpu.lerp(f32(40), f32(40), f32(20), { width: 2 }),
  slerp: (gpu) => gpu.slerp(f32(20), f32(20), 0.5),
  nlerp: (gpu) => gpu.nlerp(f32(20), f32(20), 0.5),
  bezier: (gpu) => gpu.bezier(points, 0.5),
  gradients: (gpu) => gpu.states.gradients(states(8)),
  "gradients of a field": (gpu) =>
    gpu.states.gradients(states(8), { field: "rho" }),
  "states.lerp": (gpu) => gpu.states.lerp(states(8), states(8), 0.5),
  "states.slerp": (gpu) => gpu.states.slerp(states(8), states(8), 0.5),
  "states.bezier": (gpu) => gpu.states.bezier(curves, 0.5),
  "states.sequence": (gpu) =>
    gpu.states.sequence(states(8), states(8), 5, "slerp"),
  "states.distance": (gpu) => gpu.states.distance(states(20), states(20)),
  "states.geodesicDistance": (gpu) =>
    gpu.states.geodesicDistance(states(20), states(20)),
  "states.descend": (gpu) => gpu.states.descend(states(8), 0.1),
  "tensor.read": (gpu) => gpu.tensor(f32(20)).scale(2).read(),
};
for (const [name, call] of Object.entries(CALLS)) {
  test(`${name}: the answer is the array that was made for it`, async () => {
    const { gpu, core } = await manual();
    const expected = call(gpu);
    gpu.flush();
    core.answer();
    core.words[core.header() + 2] = 1;
    const promise = call(gpu);
    const made = [];
    await watched(made, async () => {
      gpu.flush();
      await settled();
    });
    core.words[core.header() + 2] = 0;
    core.answer();
    const result = await promise;
    assert.ok(made.includes(result), `none of the ${made.length} that were`);
    assert.deepEqual(result, await expected);
    await gpu.dispose();
  });
}

for (const name of ["lerp", "gradients", "tensor.read"]) {
  test(`${name}: an answer without a wait is an array made after the one before`, async () => {
    const { gpu, core } = await manual();
    const made = [];
    const answered = async () => {
      const promise = CALLS[name](gpu);
      core.words[core.header() + 2] = 1;
      gpu.flush();
      core.words[core.header() + 2] = 0;
      core.answer(); // In the same task.
      return promise;
    };
    const first = await answered();
    await watched(made, () => settled());
    const second = await answered();
    assert.ok(made.includes(second), `none of the ${made.length} that were`);
    assert.deepEqual(second, first);
    await gpu.dispose();
  });
}

test("readAll, and reading integers, are answered without", async () => {
  const { gpu, core } = await manual();
  const call = () => {
    const tensor = gpu.tensor(f32(20));
    return gpu.readAll([tensor, tensor.scale(2), tensor.argmax()]);
  };
  core.words[core.header() + 2] = 1;
  const promise = call();
  const made = [];
  await watched(made, async () => {
    gpu.flush();
    await settled();
  });
  assert.deepEqual(made, []);
  core.words[core.header() + 2] = 0;
  core.answer();
  assert.deepEqual(
    (await promise).map(({ length }) => length),
    [20, 20, 1],
  );
  await gpu.dispose();
});

/** How many arrays `run` makes by their length. */
function spy(run) {
  const made = [];
  const undo = watch(made);
  try {
    run();
  } finally {
    undo();
  }
  return made.length;
}

async function watched(made, run) {
  const undo = watch(made);
  try {
    await run();
  } finally {
    undo();
  }
}

/** Keeps every array that is made by its length from now on. */
function watch(made) {
  const { Float32Array, Uint8Array } = globalThis;
  const construct = (target, args, type) => {
    const array = Reflect.construct(
      target,
      args,
      typeof args[0] === "number" ? target : type,
    );
    if (typeof args[0] === "number") made.push(array);
    return array;
  };
  globalThis.Float32Array = new Proxy(Float32Array, { construct });
  globalThis.Uint8Array = new Proxy(Uint8Array, { construct });
  return () => Object.assign(globalThis, { Float32Array, Uint8Array });
}
