// Where a tensor's data is: with its call, on the device, restored, and given back.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { face, fake, manual, settled } from "./face.mjs";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");

const LARGE = 16_384;
const f32 = (...values) => new Float32Array(values);
const large = (value, length = LARGE) => new Float32Array(length).fill(value);

afterEach(() => {
  fake.opening = Promise.resolve();
});

/** Sends what is queued, and answers it. */
function answer({ gpu, core }) {
  gpu.flush();
  core.answer();
}

/** Homes of the inputs of the last submitted chain: 0 with the call, 1 resident. */
function homes(core) {
  const { chain } = core.queued.at(-1).spec;
  const inputs = chain.nodes.filter(({ code }) => code === 0);
  return inputs.map(({ attributes }) => attributes[1]);
}

/** A session that opens when told. */
async function opening() {
  let open;
  fake.opening = new Promise((done) => (open = done));
  const gpu = face.shared({ flush: "manual" });
  await settled();
  return {
    gpu,
    async open() {
      open();
      await gpu.ready;
      return fake.core;
    },
  };
}

test("short data is copied, travels once, and stays from its second use on", async () => {
  const { gpu, core } = await manual();
  const data = f32(1, 2, 3);
  const a = gpu.tensor(data);
  data.fill(9);
  const reads = [];
  for (const home of [0, 1, 1]) {
    reads.push(a.add(1).read());
    assert.deepEqual(homes(core), [home]);
  }
  assert.equal(core.tensors.size, 1);
  assert.equal(core.counts.fills, 1);
  answer({ gpu, core });
  for (const result of await Promise.all(reads)) {
    assert.deepEqual(result, f32(2, 3, 4));
  }
});

test("a tensor used twice in one call is used once", async () => {
  const { gpu, core } = await manual();
  const a = gpu.tensor(f32(1));
  a.add(a).read();
  assert.deepEqual(homes(core), [0]);
  gpu.readAll([a.exp(), a.neg()]);
  assert.deepEqual(homes(core), [1]);
  gpu.readAll([gpu.tensor(f32(1)), a]);
  assert.deepEqual(homes(core), [0, 1]);
});

test("long data lies on the device at once, and is not copied", async () => {
  const { gpu, core } = await manual();
  const data = large(3);
  const a = gpu.tensor(data);
  assert.equal(core.counts.fills, 1);
  assert.equal(core.tensors.get(1).length, LARGE);
  assert.equal(core.tensors.get(1).buffer, data.buffer);
  const places = gpu.tensor(new Int32Array(LARGE));
  assert.equal(core.tensors.get(2).constructor, Uint32Array);
  const reads = [a.sum().read(), places.slice([0, 2]).read()];
  assert.deepEqual(homes(core), [1]);
  answer({ gpu, core });
  assert.deepEqual(await Promise.all(reads), [
    f32(3 * LARGE),
    new Int32Array(2),
  ]);
  assert.equal(core.counts.fills, 2);
});

test("one word less is short", async () => {
  const { gpu, core } = await manual();
  gpu.tensor(large(1, LARGE - 1));
  assert.equal(core.counts.fills, 0);
});

test("tensors before the session is open", async () => {
  const { gpu, open } = await opening();
  const short = gpu.tensor(f32(2));
  const long = gpu.tensor(large(3));
  const unused = gpu.tensor(large(4));
  const dropped = gpu.tensor(large(5));
  dropped.dispose();
  const given = short.mul(long).sum().read();
  const again = short.read({ flush: "now" });
  const aborted = short.exp().read({ signal: AbortSignal.abort("no") });
  const wrong = long.read({ into: f32(1) });
  await assert.rejects(wrong, { code: "invalid-input" });
  await assert.rejects(aborted, (reason) => reason === "no");
  short.dispose();
  long.dispose();
  await assert.rejects(long.read(), { code: "disposed" });
  assert.throws(() => unused.gpuBuffer(), {
    code: "invalid-input",
    message: "gpuBuffer: the session is still opening; await gpu.ready first",
  });
  const core = await open();
  assert.equal(core.counts.fills, 3, "two long ones, and the second use");
  assert.equal(core.lastTensor, 3, "and nothing for what was disposed of");
  core.answer();
  assert.deepEqual(await given, f32(6 * LARGE));
  assert.deepEqual(await again, f32(2));
  await settled();
  assert.equal(core.tensors.size, 1, "the one that is not disposed of");
  assert.equal(unused.gpuBuffer().offset, 0);
  await gpu.dispose();
});

test("what could not be uploaded when the session opened rejects its readings", async () => {
  const { gpu, open } = await opening();
  const long = gpu.tensor(large(3));
  const early = long.sum().read({ label: "e" });
  fake.failures = { hold: { code: "out-of-memory", message: "no room" } };
  await open();
  const error = { code: "out-of-memory", message: /no room/ };
  await assert.rejects(early, error);
  await assert.rejects(long.read(), error);
  assert.throws(() => long.gpuBuffer(), error);
  await gpu.dispose();
});

test("a session that cannot open rejects what was read", async () => {
  const { gpu, open } = await opening();
  const read = gpu.tensor(f32(1)).exp().read();
  const unused = gpu.tensor(large(1));
  await gpu.dispose();
  await assert.rejects(read, { code: "disposed" });
  await assert.rejects(unused.read(), { code: "disposed" });
  assert.throws(() => gpu.tensor(f32(1)), { code: "disposed" });
  assert.throws(() => unused.gpuBuffer(), { code: "disposed" });
  unused.dispose();
  open().catch(() => {});
  await settled();
});

test("disposing gives memory back once no pending call needs it", async () => {
  const { gpu, core } = await manual();
  const a = gpu.tensor(large(1));
  const b = gpu.tensor(large(2));
  a.dispose();
  a.dispose();
  assert.equal(core.counts.releases, 1);
  const computed = b.add(1);
  const pending = [computed.sum().read(), b.sum().read()];
  b.dispose();
  assert.equal(core.counts.releases, 1, "still needed");
  await assert.rejects(computed.read(), { code: "disposed" });
  answer({ gpu, core });
  assert.equal(core.counts.releases, 2);
  assert.deepEqual(await Promise.all(pending), [
    f32(3 * LARGE),
    f32(2 * LARGE),
  ]);
});

test("however a call ends, what was disposed of meanwhile is given back", async () => {
  const ENDS = [
    ({ core, gpu }) => {
      gpu.flush();
      core.answer({ failure: { code: "device-lost", message: "lost" } });
    },
    ({ controller }) => controller.abort(new Error("enough")),
    ({ core, gpu, controller }) => {
      gpu.flush();
      controller.abort(new Error("enough"));
      core.answer();
    },
    ({ core }) => core.supersede(core.queued[0].ticket),
  ];
  for (const end of ENDS) {
    const { gpu, core } = await manual();
    const controller = new AbortController();
    const a = gpu.tensor(large(1));
    const read = a.exp().read({ signal: controller.signal });
    a.dispose();
    assert.equal(core.counts.releases, 0);
    end({ gpu, core, controller });
    await assert.rejects(read);
    assert.equal(core.counts.releases, 1);
  }
});

test("refused by the core: nothing stays pinned", async () => {
  const { gpu, core } = await manual();
  const a = gpu.tensor(large(1));
  core.failures.submit = { code: "queue-full", message: "full" };
  await assert.rejects(a.exp().read(), { code: "queue-full" });
  a.dispose();
  assert.equal(core.counts.releases, 1);
});

test("using: disposed at the end of the block; what is computed goes on", async () => {
  const { gpu, core } = await manual();
  const of = (tensor) => {
    // The block of `using y = tensor.exp()` ends so.
    const y = tensor.exp();
    const result = y.add(1);
    y[Symbol.dispose]();
    assert.throws(() => y.neg(), { code: "disposed" });
    return result;
  };
  const result = of(gpu.tensor(f32(0))).read();
  answer({ gpu, core });
  assert.deepEqual(await result, f32(2));
});

test("a loss: everything is filled again before what waits is sent", async () => {
  for (const event of ["restored", "fallback"]) {
    const { gpu, core } = await manual();
    const long = gpu.tensor(large(2));
    const short = gpu.tensor(f32(5));
    const gone = gpu.tensor(large(1));
    short.read();
    const pending = long.mul(short).sum().read();
    gone.dispose();
    core.lose();
    const fills = core.counts.fills;
    const during = gpu.tensor(large(3));
    const after = during.sum().read();
    assert.equal(core.counts.fills, fills, "there is no device to fill");
    let heard = 0;
    gpu.on(event, () => {
      heard = core.counts.fills;
    });
    core.restore(event);
    assert.equal(heard, fills + 3, "filled before anyone hears of it");
    answer({ gpu, core });
    assert.deepEqual(await pending, f32(10 * LARGE));
    assert.deepEqual(await after, f32(3 * LARGE));
  }
});

test("a loss: keep false is gone, and says so", async () => {
  const { gpu, core } = await manual();
  const options = { keep: false, label: "w" };
  const long = gpu.tensor(large(2), undefined, options);
  const short = gpu.tensor(f32(2), undefined, options);
  short.read();
  const computed = long.add(short);
  const pending = computed.read();
  core.lose();
  // Made without a device, it is not lost with one.
  const during = gpu.tensor(large(3), undefined, options);
  core.restore();
  answer({ gpu, core });
  await assert.rejects(pending, { code: "device-lost" });
  const error = {
    code: "device-lost",
    message:
      "tensor (label 'w'): its data was lost with the device, and could not be restored (it was made with keep: false); make it anew",
  };
  await assert.rejects(computed.read(), error);
  await assert.rejects(short.read(), error);
  assert.throws(() => long.gpuBuffer(), error);
  assert.deepEqual([...core.tensors.keys()], [3]);
  const read = during.sum().read();
  answer({ gpu, core });
  assert.deepEqual(await read, f32(3 * LARGE));
  // From the next loss on, nobody has its data either.
  core.lose();
  core.restore();
  await assert.rejects(during.read(), error);
  for (const tensor of [long, short, during]) tensor.dispose();
  assert.equal(core.tensors.size, 0);
});

test("a loss: short data that never was on the device is not lost", async () => {
  const { gpu, core } = await manual();
  const short = gpu.tensor(f32(7), undefined, { keep: false });
  core.lose();
  core.restore();
  const read = short.read();
  answer({ gpu, core });
  assert.deepEqual(await read, f32(7));
});

test("a loss: a source that was detached, or does not fit any more", async () => {
  const { gpu, core } = await manual();
  const data = large(1);
  const detached = gpu.tensor(data);
  const refused = gpu.tensor(large(2));
  const well = gpu.tensor(large(3));
  structuredClone(data.buffer, { transfer: [data.buffer] });
  core.lose();
  core.failures.fill = { code: "out-of-memory", message: "no room" };
  core.restore();
  await assert.rejects(detached.read(), {
    code: "device-lost",
    message: /\(its array was detached\)/,
  });
  await assert.rejects(refused.read(), {
    code: "device-lost",
    message: /no room/,
  });
  const read = well.sum().read();
  answer({ gpu, core });
  assert.deepEqual(await read, f32(3 * LARGE));
});

test("gpuBuffer: makes short data resident, and follows the core", async () => {
  const { gpu, core } = await manual();
  const a = gpu.tensor(f32(1));
  assert.deepEqual(a.gpuBuffer(), {
    buffer: "buffer 1",
    offset: 256,
    size: 4,
  });
  assert.equal(core.counts.fills, 1);
  const halves = gpu.tensor(f32(1), [1], { dtype: "f16" });
  assert.equal(halves.gpuBuffer().offset, 0, "packed tensors lie alone");
  core.locate = () => undefined;
  assert.equal(a.gpuBuffer(), undefined);
  a.read();
  assert.deepEqual(homes(core), [1]);
});

test("100,000 tensors made and dropped: disposed of, or collected, all are released", async () => {
  const { gpu, core } = await manual();
  const data = large(0);
  const make = (end) => {
    for (let i = 0; i < 100_000; i += 1) end(gpu.tensor(data).exp(), i);
  };
  for (let i = 0; i < 100_000; i += 1) gpu.tensor(data).dispose();
  assert.equal(core.counts.releases, 100_000);
  assert.equal(core.tensors.size, 0);
  const kept = gpu.tensor(data);
  let computed;
  make((tensor, i) => {
    if (i === 50_000) computed = tensor;
  });
  for (let i = 0; i < 50 && core.tensors.size > 2; i += 1) {
    collect();
    await settled();
  }
  assert.equal(core.tensors.size, 2, "what is held, and what is computed from");
  const reads = [kept.sum().read(), computed.sum().read()];
  answer({ gpu, core });
  assert.deepEqual(await Promise.all(reads), [f32(0), f32(LARGE)]);
});

test("a pending reading keeps what nobody holds any more", async () => {
  const { gpu, core } = await manual();
  const read = gpu.tensor(large(1)).sum().read();
  for (let i = 0; i < 5; i += 1) {
    collect();
    await settled();
  }
  answer({ gpu, core });
  assert.deepEqual(await read, f32(LARGE));
  for (let i = 0; i < 50 && core.tensors.size > 0; i += 1) {
    collect();
    await settled();
  }
  assert.equal(core.tensors.size, 0, "and then lets go of it");
});

test("a disposed session: tensors are let go of, and disposing of them is fine", async () => {
  const { gpu, core } = await manual();
  const a = gpu.tensor(large(1));
  await gpu.dispose();
  a.dispose();
  assert.equal(core.counts.releases, 0, "the session has released everything");
  const b = a;
  assert.throws(() => b.exp(), { code: "disposed" });
});

test("a buffer of its own, where asked for: of data, and of results", async () => {
  const { gpu, core } = await manual();
  const wordsOf = () => [...core.asked.values()].map(({ words }) => words);
  const own = { ownBuffer: true };
  const tensors = [
    gpu.tensor([1, 2], [2], own),
    gpu.tensor([1, 2], [2], { ownBuffer: false }),
    gpu.tensor([1, 2]),
  ];
  const places = tensors.map((tensor) => tensor.gpuBuffer());
  assert.deepEqual(wordsOf(), [undefined, 2, 2]);
  assert.deepEqual(
    places.map(({ offset, size }) => [offset, size]),
    [
      [0, 8],
      [512, 8],
      [768, 8],
    ],
  );
  const asked = [
    tensors[0].neg().compute(own),
    gpu.computeAll([tensors[1].neg(), tensors[2].exp()], own),
    tensors[2].neg().compute(),
  ];
  gpu.flush();
  core.answer();
  await Promise.all(asked);
  assert.deepEqual(wordsOf().slice(3), [undefined, undefined, undefined, 2]);
});
