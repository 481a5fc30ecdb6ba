// Indexes whose vectors come with tensors: what lies where, what a loss takes, and what is given
// back. That searches find these vectors is tested in real pages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manual, module, settled } from "./face.mjs";

await module("search/index");

const DIM = 5;
const KIND = { dim: DIM, metric: "dot" };

/** Vectors that tell themselves apart. */
const vectors = (first, count) =>
  Float32Array.from({ length: count * DIM }, (_, i) => first * DIM + i + 0.5);

/** Sends what is queued until nothing is, and gives what came of the promises. */
async function sent({ gpu, core }, ...promises) {
  const all = Promise.all(promises);
  // What is read is called once what was read before has come.
  for (let turn = 0; turn < 5; turn += 1) {
    gpu.flush();
    while (core.flights.length > 0) core.answer();
    await settled();
  }
  return all;
}

/** Loses the device, finds another, and computes what is computed again. */
async function replace(session) {
  session.core.lose();
  session.core.restore();
  await sent(session);
}

/** The bytes of an index of arrays of the same vectors, without these. */
function saved(gpu, all, removed = []) {
  const index = gpu.index(all, KIND);
  index.remove(removed);
  return index.save();
}

test("vectors of tensors and of arrays are one index, whatever the order", async () => {
  const session = await manual();
  const { gpu } = session;
  const index = gpu.index(KIND);
  const rows = (first, count) =>
    gpu.tensor(vectors(first, count), [count, DIM]);
  assert.deepEqual([...index.add(rows(0, 3))], [0, 1, 2]);
  assert.deepEqual([...index.add(vectors(3, 2))], [3, 4]);
  const recorded = rows(5, 70).neg().neg();
  assert.equal(index.add(recorded).length, 70);
  const [computed] = await sent(session, gpu.tensor(vectors(75, 1)).compute());
  assert.deepEqual([...index.add(computed)], [75]);
  assert.equal(index.add(rows(0, 1).slice([1])).length, 0);
  assert.equal(index.size, 76);
  assert.throws(() => index.save(), { code: "unsupported", message: /74 vec/ });
  await sent(session, index.download());
  assert.deepEqual(index.save(), saved(gpu, vectors(0, 76)));
  // From here on they are as all others, and others may come.
  index.add(rows(76, 1));
  await sent(session, index.download());
  assert.deepEqual(index.save(), saved(gpu, vectors(0, 77)));
});

test("removed vectors leave their places to others", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const index = gpu.index(KIND);
  const rows = gpu.tensor(vectors(0, 100), [100, DIM]);
  index.add(rows);
  const [page] = await sent(session).then(() => [...core.tensors.keys()]);
  index.remove([1, 50, 99]);
  await sent(session);
  const idAt = (place) => {
    const block = 128 + 64 * 4 * 2;
    const at = Math.floor(place / 64) * block + 64 + (place % 64);
    return core.tensors.get(page)[at];
  };
  assert.deepEqual([0, 1, 2, 50, 98, 99].map(idAt), [1, 0, 3, 0, 99, 0]);
  index.add(gpu.tensor(vectors(100, 2), [2, DIM]));
  await sent(session);
  assert.deepEqual([1, 50, 99, 100].map(idAt), [0, 102, 101, 0]);
  await sent(session, index.download());
  assert.deepEqual(index.save(), saved(gpu, vectors(0, 102), [1, 50, 99]));
});

test("after a loss vectors come back of their tensors, and others are named", async () => {
  const session = await manual();
  const { gpu } = session;
  const index = gpu.index(KIND);
  const data = gpu.tensor(vectors(0, 2), [2, DIM]);
  const [computed, written, disposed] = await sent(
    session,
    gpu.tensor(vectors(2, 1)).neg().neg().compute(),
    gpu.tensor(vectors(3, 1)).compute(),
    gpu.tensor(vectors(4, 2), [2, DIM]).compute(),
  );
  for (const tensor of [data, computed, written, disposed]) index.add(tensor);
  await sent(session, written.add(1).computeInto(written));
  disposed.dispose();
  assert.deepEqual([...index.lost], []);
  await replace(session);
  assert.deepEqual([...index.lost], [3, 4, 5]);
  const refused = { code: "device-lost", message: /3 vectors/ };
  await assert.rejects(index.search(vectors(0, 1), 1), refused);
  await assert.rejects(index.download(), refused);
  index.remove(index.lost);
  const search = index.search(vectors(0, 1), 1);
  await sent(session, search, index.download());
  assert.deepEqual(index.save(), saved(gpu, vectors(0, 6), [3, 4, 5]));
  // What the page has, no loss takes.
  await replace(session);
  assert.deepEqual([...index.lost], []);
  assert.equal(index.size, 3);
});

test("an insertion that fails loses its vectors alone", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const index = gpu.index(KIND);
  const [first, second] = [0, 1].map((i) => gpu.tensor(vectors(i, 1)));
  core.failures.submit = { code: "queue-full", message: "full" };
  index.add(first);
  await settled();
  index.add(second);
  await sent(session);
  assert.deepEqual([...index.lost], [0]);
  index.remove([0]);
  await sent(session, index.download());
  assert.deepEqual(index.save(), saved(gpu, vectors(0, 2), [0]));
});

test("a removal that fails is called again by the next search", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const index = gpu.index(KIND);
  index.add(gpu.tensor(vectors(0, 3), [3, DIM]));
  await sent(session);
  core.failures.submit = { code: "queue-full", message: "full" };
  index.remove([1]);
  await settled();
  const submits = core.counts.submits;
  await sent(session, index.search(vectors(0, 1), 1));
  assert.equal(core.counts.submits - submits, 2, "the removal, and the search");
  await sent(session, index.search(vectors(0, 1), 1));
  assert.equal(core.counts.submits - submits, 3);
});

test("calls that are only planned add nothing and remove what they say", async () => {
  const session = await manual();
  const { gpu } = session;
  const index = gpu.index(KIND);
  const tensor = gpu.tensor(vectors(0, 2), [2, DIM]);
  assert.match(
    gpu.explain(() => void index.add(tensor)),
    /insertion 2/,
  );
  await settled();
  assert.deepEqual([index.size, [...index.lost]], [0, []]);
  const ids = index.add(tensor);
  await sent(session);
  await gpu.explain(() => index.add(tensor.neg()));
  await sent(session, index.download());
  assert.equal(index.size, 2);
  await replace(session);
  assert.deepEqual([...index.lost], []);
  assert.equal(ids.length, 2);
});

test("all memory comes back once calls are answered", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const tensor = gpu.tensor(vectors(0, 9), [9, DIM]);
  const index = gpu.index(KIND);
  index.add(tensor.scale(2));
  index.add(tensor);
  index.dispose();
  assert.ok(core.tensors.size > 1, "pending calls need the page");
  await sent(session);
  tensor.dispose();
  assert.equal(core.tensors.size, 0);
  assert.throws(() => index.add(tensor), { code: "disposed" });
});

test("there is no page where there is no room, and nothing is lost but what came", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const index = gpu.index(KIND);
  const tensor = gpu.tensor(vectors(0, 2), [2, DIM]);
  core.failures.clear = { code: "out-of-memory", message: "none" };
  index.add(tensor);
  await sent(session);
  assert.deepEqual([...index.lost], [0, 1]);
  index.remove(index.lost);
  await sent(session);
  index.add(tensor);
  await sent(session, index.download());
  assert.deepEqual([index.size, [...index.lost]], [2, []]);
});

test("a download reads a page again that a loss spoiled, unless vectors are lost", async () => {
  const session = await manual();
  const { gpu, core } = session;
  const index = gpu.index(KIND);
  const tensor = gpu.tensor(vectors(0, 2), [2, DIM]);
  index.add(tensor);
  await sent(session);
  const refused = {
    code: "device-lost",
    message: "a call that wrote it failed",
  };
  const download = index.download();
  for (let time = 0; time < 3; time += 1) {
    gpu.flush();
    core.answer({ failure: refused });
    await settled();
  }
  await sent(session, download);
  assert.deepEqual(index.save(), saved(gpu, vectors(0, 2)));
  // What always fails ends, and so does what fails otherwise.
  for (const code of ["device-lost", "out-of-memory"]) {
    index.add(tensor);
    await sent(session);
    const failing = assert.rejects(index.download(), { code });
    for (let time = 0; time < 9; time += 1) {
      gpu.flush();
      if (core.flights.length === 0) break;
      core.answer({ failure: { code, message: "again" } });
      await settled();
    }
    await failing;
    await sent(session, index.download());
  }
});
