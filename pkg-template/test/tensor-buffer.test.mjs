// Tensors in a `GPUBuffer` of the page: what is checked at once, what the core is told, and
// what becomes of such a tensor after a loss and when it is disposed of.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { face, fake, manual, settled } from "./face.mjs";

const [COPY_SRC, COPY_DST, STORAGE] = [0x04, 0x08, 0x80];
const HOMES = { f32: 1, u32: 1, i32: 1, f16: 2, bf16: 3 };
const NAMES = { u32: "uint32", i32: "int32" };
const f32 = (...values) => new Float32Array(values);

afterEach(() => {
  fake.opening = Promise.resolve();
});

/** What tells a buffer from other objects, and the bytes that lie in it. */
function buffer(size = 64, given) {
  return {
    size,
    usage: STORAGE | COPY_SRC,
    mapState: "unmapped",
    bytes: new ArrayBuffer(size),
    destroyed: 0,
    destroy() {
      this.destroyed += 1;
    },
    [Symbol.toStringTag]: "GPUBuffer",
    ...given,
  };
}

function answer({ gpu, core }) {
  gpu.flush();
  core.answer();
}

/** What a function throws. */
function thrown(work) {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("it threw nothing");
}

test("a buffer is read where it lies, from its offset on", async () => {
  const { gpu, core } = await manual();
  const own = buffer();
  const x = gpu.tensor(own, [2, 2], { offset: 32 });
  assert.deepEqual(x.shape, [2, 2]);
  assert.equal(x.dtype, "float32");
  new Float32Array(own.bytes).set([1, 2, 3, 4], 8);
  const first = x.add(1).read();
  answer({ gpu, core });
  new Float32Array(own.bytes).set([5, 6, 7, 8], 8);
  const second = x.add(1).read();
  answer({ gpu, core });
  assert.deepEqual(await first, f32(2, 3, 4, 5));
  assert.deepEqual(await second, f32(6, 7, 8, 9));
  assert.deepEqual([core.counts.imports, core.counts.fills], [1, 0]);
});

test("the core is told where and how the elements lie", async () => {
  const { gpu, core } = await manual();
  for (const [dtype, count, bytes] of [
    ["f32", 3, 16],
    ["f32", 5, 32],
    ["u32", 4, 16],
    ["i32", 4, 16],
    ["f16", 8, 16],
    ["bf16", 9, 32],
  ]) {
    const own = buffer(16 + bytes);
    const x = gpu.tensor(own, [count], { offset: 16, dtype });
    assert.equal(x.dtype, NAMES[dtype] ?? "float32");
    const [number, words] = [...core.tensors].at(-1);
    assert.equal(words.byteOffset, 16);
    assert.equal(words.byteLength, bytes, `${count} of ${dtype}`);
    assert.equal(core.homes.get(number), HOMES[dtype]);
    const size = count * (HOMES[dtype] === 1 ? 4 : 2);
    const told = x.gpuBuffer();
    assert.equal(told.buffer, own);
    assert.deepEqual([told.offset, told.size], [16, Math.ceil(size / 4) * 4]);
  }
});

test("what cannot be read is refused at once, and the message says what to do", async () => {
  const { gpu, core } = await manual();
  for (const [given, shape, options, expected] of [
    [{ usage: STORAGE }, [4], {}, "GPUBufferUsage.COPY_SRC"],
    [{ usage: COPY_SRC | COPY_DST }, [4], {}, "GPUBufferUsage.STORAGE"],
    [{ mapState: "mapped" }, [4], {}, "is mapped; unmap it"],
    [{ mapState: "pending" }, [4], {}, "is pending; unmap it"],
    [{}, [17], {}, "make the buffer of 80 bytes or more"],
    [{}, [4], { offset: 64 }, "make the buffer of 80 bytes or more"],
    [{ size: 60 }, [15], {}, "make the buffer of 64 bytes or more"],
    [{}, [4], { offset: 8 }, "offset must be a multiple of 16"],
    [{}, [4], { offset: -16 }, "offset must be a multiple of 16"],
    [{}, [4], { offset: "16" }, "offset must be a multiple of 16"],
    [{}, undefined, {}, "give the shape"],
    [{}, [-1], {}, "dimensions must be whole numbers"],
    [{}, [4], { dtype: "int8" }, "'f32', 'f16', 'bf16', 'u32' or 'i32'"],
    [{}, [4], { keep: false }, "the options are offset, dtype, label"],
  ]) {
    const own = buffer(64, given);
    const error = thrown(() => gpu.tensor(own, shape, options));
    assert.equal(error.code, "invalid-input", error.message);
    assert.match(error.message, /^tensor: /);
    assert.ok(error.message.includes(expected), error.message);
  }
  const label = "mine";
  const error = thrown(() => gpu.tensor(buffer(4), [4], { label }));
  assert.match(error.message, /^tensor \(label 'mine'\): /);
  assert.equal(core.tensors.size, 0);
});

test("what the core refuses leaves nothing behind", async () => {
  const { gpu, core } = await manual();
  const message = "calls run on the CPU";
  core.failures.import = { code: "invalid-input", message };
  const error = thrown(() => gpu.tensor(buffer(), [4]));
  assert.deepEqual(
    [error.code, error.message],
    ["invalid-input", `tensor: ${message}`],
  );
  assert.equal(core.tensors.size, 0);
});

test("there is no device to make a buffer on while the session opens", async () => {
  let open;
  fake.opening = new Promise((done) => (open = done));
  const gpu = face.shared({ flush: "manual" });
  await settled();
  const error = thrown(() => gpu.tensor(buffer(), [4]));
  assert.equal(error.code, "invalid-input");
  assert.match(error.message, /await gpu.ready/);
  open();
  await gpu.ready;
  gpu.tensor(buffer(), [4]);
  assert.equal(fake.core.counts.imports, 1);
});

test("a tensor of no elements takes nothing of its buffer", async () => {
  const { gpu, core } = await manual();
  const x = gpu.tensor(buffer(0), [0, 4]);
  assert.deepEqual(await x.read(), f32());
  assert.equal(core.counts.imports, 0);
});

for (const event of ["restored", "fallback"]) {
  test(`after a loss a buffer is lost with its device (${event})`, async () => {
    const { gpu, core } = await manual();
    const x = gpu.tensor(buffer(), [4], { label: "mine" });
    const sum = x.sum();
    core.lose();
    const early = thrown(() => gpu.tensor(buffer(), [4]));
    assert.equal(early.code, "device-lost");
    assert.match(early.message, /await 'restored'/);
    core.restore(event);
    for (const work of [() => x.read(), () => sum.read()]) {
      await assert.rejects(work, {
        code: "device-lost",
        message: /label 'mine'.*GPUBuffer is of the lost device.*make it anew/,
      });
    }
    assert.equal(thrown(() => x.gpuBuffer()).code, "device-lost");
    assert.deepEqual([core.counts.imports, core.counts.fills], [1, 0]);
    assert.equal(core.tensors.size, 0);
    const next = buffer();
    new Float32Array(next.bytes).fill(2);
    const again = gpu.tensor(next, [4]).sum().read();
    answer({ gpu, core });
    assert.deepEqual(await again, f32(8));
  });
}

test("disposal lets go of the buffer once pending calls are answered", async () => {
  const { gpu, core } = await manual();
  const own = buffer();
  new Float32Array(own.bytes).fill(1);
  const x = gpu.tensor(own, [4]);
  const pending = x.sum().read();
  x.dispose();
  assert.equal(core.tensors.size, 1);
  answer({ gpu, core });
  assert.deepEqual(await pending, f32(4));
  assert.equal(core.tensors.size, 0);
  assert.equal(own.destroyed, 0);
  assert.equal(thrown(() => x.gpuBuffer()).code, "disposed");
  assert.equal(thrown(() => x.add(1)).code, "disposed");
});

test("places in a buffer pick elements, and their values are known to nobody before", async () => {
  const { gpu, core } = await manual();
  const own = buffer();
  new Uint32Array(own.bytes).set([2, 0]);
  const places = gpu.tensor(own, [2], { dtype: "u32" });
  const picked = gpu.tensor([5, 6, 7]).gather(places).read();
  answer({ gpu, core });
  assert.deepEqual(await picked, f32(7, 5));
});
