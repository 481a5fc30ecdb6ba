// A core that traps: everything on it rejects, and the next session starts clean.
//
// In a file, and so a process, of its own: a trap ends every session there is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { face, fake, manual, module, settled, stateOf } from "./face.mjs";
import { folder } from "./folder.mjs";

await module("embeddings/index");
await module("search/index");

const f32 = (...values) => new Float32Array(values);

/** Who hears of what nobody catches, as in a page; Node has no such events. */
const heard = new Map();
globalThis.addEventListener = (type, listener) => heard.set(type, listener);
globalThis.removeEventListener = (type, listener) => {
  if (heard.get(type) === listener) heard.delete(type);
};

test("a core that traps ends the session: every call rejects, and none hangs", async () => {
  for (const method of ["submit", "flush", "reserve"]) {
    const { gpu, core } = await manual();
    const waiting = gpu.lerp(f32(1), f32(1), 0);
    core.failures[method] = new WebAssembly.RuntimeError("unreachable");
    const last = gpu.lerp(
      new Float32Array(1 << 20),
      new Float32Array(1 << 20),
      0,
    );
    gpu.stats();
    if (method === "flush") gpu.flush();
    for (const promise of [waiting, last, gpu.lerp(f32(1), f32(1), 0)]) {
      await assert.rejects(promise, (error) => {
        assert.equal(error.code, "fatal");
        assert.match(error.message, /unreachable/);
        return true;
      });
    }
    assert.equal(core.counts.disposed, 0, "what trapped is left alone");
    await assert.rejects(gpu.ready, { code: "fatal" });
  }
});

test("a core that traps while it is asked ends the session too", async () => {
  const { RuntimeError } = WebAssembly;
  const eager = await manual({ flush: "eager" });
  const asked = eager.gpu.lerp(f32(1), f32(1), 0);
  eager.core.failures.due = new RuntimeError("unreachable");
  await assert.rejects(asked, { code: "fatal" });

  const { gpu, core } = await manual();
  const controller = new AbortController();
  const { signal } = controller;
  const aborted = gpu.lerp(f32(1), f32(1), 0, { signal });
  const other = gpu.lerp(f32(1), f32(1), 0);
  core.abort = () => {
    throw new RuntimeError("unreachable");
  };
  controller.abort("enough");
  await assert.rejects(aborted, (reason) => reason === "enough");
  await assert.rejects(other, { code: "fatal" });
});

test("one trap ends every session on the instance, and the next gets another", async () => {
  const first = await manual();
  const second = await manual();
  const { instances } = fake;
  const bystander = second.gpu.lerp(f32(1), f32(1), 0);
  first.core.failures.submit = new WebAssembly.RuntimeError("unreachable");
  await assert.rejects(first.gpu.lerp(f32(1), f32(1), 0), { code: "fatal" });
  await assert.rejects(bystander, { code: "fatal" });
  const { gpu, core } = await manual();
  assert.equal(fake.instances, instances + 1);
  const sound = gpu.lerp(f32(1), f32(3), 0.5);
  gpu.flush();
  core.answer();
  assert.deepEqual(await sound, f32(2));
});

const BACKGROUND = [
  // A microtask or a timer, in which the core goes on by itself.
  ["error", (error) => ({ error })],
  ["unhandledrejection", (reason) => ({ reason })],
];
for (const [type, event] of BACKGROUND) {
  test(`a trap in the background, an ${type}, is heard`, async () => {
    const { gpu, core } = await manual();
    const waiting = gpu.lerp(f32(1), f32(1), 0);
    gpu.flush();
    let prevented = 0;
    const tell = (thrown) =>
      heard.get(type)?.({
        preventDefault: () => (prevented += 1),
        ...event(thrown),
      });
    tell(new Error("the page's own"));
    tell(new WebAssembly.RuntimeError("somebody else's"));
    assert.equal(await stateOf(waiting), "pending");
    assert.equal(prevented, 0);
    const trap = new WebAssembly.RuntimeError("unreachable");
    core.desired_size = () => {
      throw trap;
    };
    tell(trap);
    assert.equal((await stateOf(waiting)).reason?.code, "fatal");
    assert.deepEqual([prevented, heard.size], [1, 0]);
    assert.ok(fake.abandoned.has(fake.instances));
  });
}

test("a core that traps while it is disposed of leaves no call and no neighbor waiting", async () => {
  const first = await manual();
  const second = await manual();
  const { instances } = fake;
  const own = first.gpu.lerp(f32(1), f32(1), 0);
  const bystander = second.gpu.lerp(f32(1), f32(1), 0);
  first.core.failures.dispose = new WebAssembly.RuntimeError("unreachable");
  const disposed = first.gpu.dispose();
  const states = await Promise.all([stateOf(own), stateOf(bystander)]);
  const codes = states.map(({ reason }) => reason?.code);
  assert.deepEqual(codes, ["disposed", "fatal"]);
  await disposed;
  await manual();
  assert.equal(fake.instances, instances + 1);
});

/** Calls whose answer gives something back to the core, by what was disposed of. */
const HOLDERS = {
  "a tensor": (gpu) => {
    const tensor = gpu.tensor(new Float32Array(1 << 14));
    const read = tensor.slice([0, 2]).read();
    tensor.dispose();
    return read;
  },
  "an index": (gpu) => {
    const index = gpu.index(f32(1, 0, 0, 1), { dim: 2 });
    const search = index.search(f32(1, 0), 2);
    index.dispose();
    return search;
  },
};
for (const [name, ask] of Object.entries(HOLDERS)) {
  for (const way of ["is answered", "is refused"]) {
    test(`a core that traps where it gives up ${name} whose call ${way}: no call hangs`, async () => {
      const { gpu, core } = await manual();
      const before = gpu.lerp(f32(1), f32(3), 0.5);
      const held = ask(gpu);
      const behind = gpu.lerp(f32(1), f32(3), 0.5);
      const next = gpu.lerp(f32(1), f32(3), 0.5);
      gpu.flush();
      core.failures.release = new WebAssembly.RuntimeError("unreachable");
      if (way === "is answered") core.answer();
      else core.answer({ failure: { code: "limit-exceeded", message: "" } });
      const calls = [before, held, behind, next];
      const states = await Promise.all(calls.map(stateOf));
      for (const state of states) assert.notEqual(state, "pending");
      assert.equal(states[3].reason.code, "fatal");
      await assert.rejects(gpu.ready, { code: "fatal" });
    });
  }
}

for (const [name, method, make] of [
  ["a tensor", "release", (gpu) => gpu.tensor(new Float32Array(1 << 14))],
  [
    "an index",
    "release",
    async (gpu, core) => {
      const index = gpu.index(f32(1, 0, 0, 1), { dim: 2 });
      const search = index.search(f32(1, 0), 2);
      gpu.flush();
      core.answer();
      await search;
      return index;
    },
  ],
  ["an embedder", "forget", (gpu) => gpu.embedder(folder())],
]) {
  test(`disposing of ${name} where the core traps ends the session, and throws nothing`, async () => {
    const { gpu, core } = await manual();
    const disposable = await make(gpu, core);
    const waiting = gpu.lerp(f32(1), f32(1), 0);
    core.failures[method] = new WebAssembly.RuntimeError("unreachable");
    disposable.dispose();
    assert.equal((await stateOf(waiting)).reason?.code, "fatal");
  });
}

test("a core that traps while answers are handed out ends the session", async () => {
  const { gpu, core } = await manual();
  const answered = gpu.lerp(f32(1), f32(3), 0.5);
  gpu.flush();
  const queued = gpu.lerp(f32(1), f32(3), 0.5);
  core.room = 0;
  void gpu.ready; // Who waits for room has the core asked again.
  core.desired_size = () => {
    throw new WebAssembly.RuntimeError("unreachable");
  };
  core.answer();
  assert.deepEqual(await answered, f32(2));
  assert.equal((await stateOf(queued)).reason?.code, "fatal");
});

test("a trap ends a session that is still opening, too", async () => {
  const first = await manual();
  let open;
  fake.opening = new Promise((done) => (open = done));
  const second = face.shared({ flush: "manual" });
  const waiting = second.lerp(f32(1), f32(1), 0);
  await settled();
  first.core.failures.submit = new WebAssembly.RuntimeError("unreachable");
  await assert.rejects(first.gpu.lerp(f32(1), f32(1), 0), { code: "fatal" });
  // What opens it is on the instance too, and comes to nothing.
  assert.equal((await stateOf(waiting)).reason?.code, "fatal");
  assert.equal((await stateOf(second.ready)).reason?.code, "fatal");
  fake.opening = Promise.resolve();
  const { gpu, core } = await manual();
  const sound = gpu.lerp(f32(1), f32(3), 0.5);
  open();
  await settled();
  gpu.flush();
  core.answer();
  assert.deepEqual(await sound, f32(2));
});

test("an opening that fails by a defect leaves the other sessions alone", async () => {
  const { gpu, core } = await manual();
  fake.opening = Promise.reject(new TypeError("a browser's own"));
  await assert.rejects(face.open({ flush: "manual" }), { code: "fatal" });
  fake.opening = Promise.resolve();
  const sound = gpu.lerp(f32(1), f32(3), 0.5);
  gpu.flush();
  core.answer();
  assert.deepEqual(await sound, f32(2));
});

test("a refusal is no trap: the session and its neighbors go on", async () => {
  const first = await manual();
  const second = await manual();
  const waiting = second.gpu.lerp(f32(1), f32(3), 0.5);
  first.core.failures.submit = { code: "queue-full", message: "full" };
  await assert.rejects(first.gpu.lerp(f32(1), f32(1), 0), {
    code: "queue-full",
  });
  second.gpu.flush();
  second.core.answer();
  assert.deepEqual(await waiting, f32(2));
  await settled();
});
