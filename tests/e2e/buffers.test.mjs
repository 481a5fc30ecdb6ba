// Tensors in buffers that the page made on `gpu.device`: read where they lie, whoever wrote
// them, and what becomes of the calls that read them where the buffer is no good.

import assert from "node:assert/strict";
import { heavyTest, lightTest as test, openSite } from "./site.mjs";

const site = openSite();

/** In the page: makes buffers, and tells what a call came to. */
const tools = () => {
  const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
  /** A buffer of these words, with room up to a multiple of 16 bytes. */
  window.bufferOf = (device, words, offset = 0) => {
    const bytes = Math.ceil(words.byteLength / 16) * 16;
    const buffer = device.createBuffer({
      size: offset + bytes,
      usage: STORAGE | COPY_SRC | COPY_DST,
    });
    // Whatever is read beside the tensor shows.
    device.queue.writeBuffer(
      buffer,
      0,
      new Float32Array(offset / 4).fill(1e30),
    );
    const padded = new Uint8Array(bytes);
    padded.set(
      new Uint8Array(words.buffer, words.byteOffset, words.byteLength),
    );
    device.queue.writeBuffer(buffer, offset, padded);
    return buffer;
  };
  window.codeOf = async (work) => {
    try {
      await work();
      return "answered";
    } catch ({ code, message }) {
      return `${code}: ${message}`;
    }
  };
  /** Sends what is asked for until all of that is answered. */
  window.settle = async (gpu, asked) => {
    let isOver = false;
    const over = asked.finally(() => (isOver = true));
    while (!isOver) {
      gpu.flush();
      await new Promise((run) => setTimeout(run, 5));
    }
    return over;
  };
  window.bits = (array) => new Uint32Array(array.buffer).join();
};

const onPage = (use) => site.page(use, { prepare: tools });

heavyTest(
  "every operation reads a buffer as it reads data, at any offset and in every format",
  () =>
    onPage(async (page) => {
      const { wrong, count } = await page.evaluate(async () => {
        const gpu = await framebatch.open({ engine: "gpu" });
        const [rows, columns] = [40, 24];
        const floats = Float32Array.from(
          { length: rows * columns },
          (_, i) => Math.sin(i * 12.9898) * 2,
        );
        // Sixteen bits: as bf16 all of them are floats of moderate size.
        const halves = Uint16Array.from(
          floats,
          (x) => new Uint32Array(new Float32Array([x]).buffer)[0] >>> 16,
        );
        const f16 = Uint16Array.from(
          floats,
          (_, i) => 0x3800 + ((i * 37) % 2048),
        );
        const x = gpu.tensor(
          Float32Array.from({ length: columns }, (_, i) => Math.cos(i)),
          [1, columns],
        );
        const asked = (own) => [
          own,
          own.relu(),
          own.mul(x).add(0.5).tanh(),
          own.transpose().sum(1),
          own.sum(),
          own.softmax(),
          own.softmax(0),
          own.argmax(1),
          own.gather(new Uint32Array([3, 0, 3])),
          own.slice([1, undefined, 3], [5, 9]),
          own.slice([-1, undefined, -1]),
          own.concat(own.neg(), 1),
          x.matmul(own.transpose()),
          own.transpose().matmul(own).relu(),
          own.matmul(own.transpose()),
          own.attention(own.scale(0.5), own, { heads: 3 }),
          own.attention(own, own, { heads: 1, causal: true }),
          own.layerNorm().dot(x),
        ];
        const wrong = [];
        let count = 0;
        for (const [dtype, data] of [
          ["f32", floats],
          ["bf16", halves],
          ["f16", f16],
        ]) {
          const plain = gpu.tensor(data, [rows, columns], { dtype });
          const expected = await gpu.readAll(asked(plain));
          for (const offset of [0, 16, 240, 256, 4096 + 32]) {
            const buffer = bufferOf(gpu.device, data, offset);
            const own = gpu.tensor(buffer, [rows, columns], { dtype, offset });
            const results = await gpu.readAll(asked(own));
            results.forEach((result, i) => {
              count += 1;
              if (bits(result) !== bits(expected[i])) {
                wrong.push(`${dtype}, offset ${offset}, op ${i}`);
              }
            });
            own.dispose();
          }
        }
        return { wrong, count };
      });
      assert.deepEqual(wrong, []);
      assert.equal(count, 3 * 5 * 18);
    }),
);

test("two tensors in one buffer, and places that pick elements", () =>
  onPage(async (page) => {
    const { results, told, submits } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const buffer = bufferOf(
        gpu.device,
        Float32Array.from({ length: 96 }, (_, i) => i),
      );
      const a = gpu.tensor(buffer, [4]);
      const b = gpu.tensor(buffer, [2, 3], { offset: 320 });
      const c = gpu.tensor(buffer, [4], { offset: 16 });
      const indexes = bufferOf(gpu.device, new Uint32Array([5, 0, 9]), 16);
      const places = gpu.tensor(indexes, [3], { offset: 16, dtype: "u32" });
      const six = gpu.tensor([10, 11, 12, 13, 14, 15]);
      const ask = () =>
        Promise.all([
          a.add(c).read(),
          b.sum(1).read(),
          b.reshape([6]).slice([2, 6]).mul(a).read(),
          six.gather(places).read(),
          places.read(),
        ]);
      await ask(); // Kernels are compiled, each call on its own.
      const before = gpu.stats().submits;
      const results = await ask();
      const { submits } = gpu.stats();
      const { offset, size, buffer: own } = b.gpuBuffer();
      const told = [own === buffer, offset, size];
      return {
        results: results.map((result) => Array.from(result, String).join()),
        told,
        submits: submits - before,
      };
    });
    assert.deepEqual(results, [
      "4,6,8,10",
      "243,252",
      "0,83,168,255",
      "15,10,NaN",
      "5,0,9",
    ]);
    assert.deepEqual(told, [true, 320, 24]);
    assert.equal(submits, 1);
  }));

test("an index takes its vectors from a buffer at any offset", () =>
  onPage(async (page) => {
    const problems = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const [rows, dim] = [40, 24];
      const data = Float32Array.from(
        { length: rows * dim },
        (_, i) => Math.sin(i * 12.9898) * 2,
      );
      const query = data.slice(7 * dim, 8 * dim);
      const problems = [];
      for (const dtype of ["f32", "f16", "int8"]) {
        const answers = [];
        const offsets = [undefined, 0, 16, 240, 256, 4096 + 32];
        for (const offset of offsets) {
          const index = gpu.index({ dim, metric: "dot", dtype });
          const vectors =
            offset === undefined
              ? data
              : gpu.tensor(bufferOf(gpu.device, data, offset), [rows, dim], {
                  offset,
                });
          await index.add(vectors);
          const { ids, scores } = await index.search(query, 5);
          answers.push(`${ids.join()} ${scores.join()}`);
          index.dispose();
        }
        answers.forEach((answer, i) => {
          if (answer !== answers[0]) {
            problems.push(`${dtype}, offset ${offsets[i]}: ${answer}`);
          }
        });
      }
      return problems;
    });
    assert.deepEqual(problems, []);
  }));

test("clips write no buffer of the page", () =>
  onPage(async (page) => {
    const { codes, words } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const clip = gpu.clip({
        tracks: [{ times: [0, 1], values: [1, 2, 3, 4, 5, 6, 7, 8] }],
      });
      const codes = [];
      const words = [];
      for (const offset of [0, 16, 256]) {
        const buffer = bufferOf(gpu.device, new Float32Array(4), offset);
        const own = gpu.tensor(buffer, [4], { offset });
        codes.push(await codeOf(() => clip.sampleTo(own, 0.5)));
        codes.push(
          await codeOf(() =>
            gpu.blendTo(own, [{ clip, times: 0.5, weight: 1 }]),
          ),
        );
        const all = gpu.tensor(buffer, [offset / 4 + 4]);
        words.push(...new Set(await all.read()));
      }
      return { codes: [...new Set(codes)], words: [...new Set(words)] };
    });
    assert.deepEqual(codes, [
      "invalid-input: sampleTo: a GPUBuffer of the page is read only; write to a tensor of gpu.tensor, and use its gpuBuffer()",
      "invalid-input: blendTo: a GPUBuffer of the page is read only; write to a tensor of gpu.tensor, and use its gpuBuffer()",
    ]);
    assert.deepEqual(words, [0, Math.fround(1e30)]);
  }));

test("a pass of the page's own writes the buffer between two reads", () =>
  onPage(async (page) => {
    const results = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const { device } = gpu;
      const buffer = bufferOf(device, new Float32Array([1, 2, 3, 4]));
      const code = `@group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { x[i] *= 10; }`;
      const module = device.createShaderModule({ code });
      const pipeline = device.createComputePipeline({
        layout: "auto",
        compute: { module },
      });
      const group = device.createBindGroup({
        layout: pipeline.getBindGroupLayout(0),
        entries: [{ binding: 0, resource: { buffer } }],
      });
      const step = () => {
        const encoder = device.createCommandEncoder();
        const pass = encoder.beginComputePass();
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(1);
        pass.end();
        device.queue.submit([encoder.finish()]);
      };
      const x = gpu.tensor(buffer, [4]);
      await gpu.warmup(() => x.add(1).read());
      const reads = [];
      for (let i = 0; i < 3; i += 1) {
        reads.push(x.add(1).read());
        gpu.flush();
        step();
      }
      const results = await Promise.all(reads);
      return results.map((result) => [...result]);
    });
    assert.deepEqual(results, [
      [2, 3, 4, 5],
      [11, 21, 31, 41],
      [101, 201, 301, 401],
    ]);
  }));

test("a buffer that does not do is refused at once", () =>
  onPage(async (page) => {
    const refused = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const { STORAGE, COPY_SRC } = GPUBufferUsage;
      const make = (given) =>
        gpu.device.createBuffer({
          size: 64,
          usage: STORAGE | COPY_SRC,
          ...given,
        });
      const cases = [
        [make({ usage: STORAGE }), {}],
        [make({ size: 28 }), {}],
        [make({ mappedAtCreation: true }), {}],
        [make(), { offset: 4 }],
        [make(), { offset: 48 }],
      ];
      const refused = [];
      for (const [buffer, options] of cases) {
        refused.push(await codeOf(() => gpu.tensor(buffer, [8], options)));
      }
      const cpu = await framebatch.open({ engine: "cpu" });
      refused.push(await codeOf(() => cpu.tensor(make(), [8])));
      return refused;
    });
    const expected = [
      /GPUBufferUsage.STORAGE \| GPUBufferUsage.COPY_SRC/,
      /buffer of 32 bytes or more/,
      /is mapped; unmap it/,
      /offset must be a multiple of 16/,
      /buffer of 80 bytes or more/,
      /calls run on the CPU/,
    ];
    refused.forEach((text, i) => {
      assert.match(text, /^invalid-input: tensor: /);
      assert.match(text, expected[i]);
    });
  }));

test("the buffer takes none of the budget, outlives its tensor, and pending calls still read it", () =>
  onPage(async (page) => {
    const { bytes, pending, after, left, known } = await page.evaluate(
      async () => {
        const gpu = await framebatch.open({
          engine: "gpu",
          memoryBudget: 1 << 20,
        });
        const floats = new Float32Array(1 << 19).fill(1);
        const buffer = bufferOf(gpu.device, floats);
        const before = gpu.stats();
        const x = gpu.tensor(buffer, [1024, 512]);
        const { tensors, pool } = gpu.stats();
        const bytes = [
          tensors.bytes - before.tensors.bytes,
          pool.bytes - before.pool.bytes,
        ];
        const sum = x.sum().read();
        x.dispose();
        const pending = [...(await sum)];
        const after = await codeOf(() => x.sum().read());
        const again = gpu.tensor(buffer, [4]);
        const left = [...(await again.read())];
        // On the CPU beside the GPU nothing is copied behind the page's back.
        const known = await codeOf(() => again.exp().read({ engine: "cpu" }));
        await gpu.dispose();
        return { bytes, pending, after, left, known };
      },
    );
    assert.deepEqual(bytes, [0, 0]);
    assert.deepEqual(pending, [1 << 19]);
    assert.match(after, /^disposed/);
    assert.deepEqual(left, [1, 1, 1, 1]);
    assert.match(known, /^(invalid-input|no-adapter)/);
  }));

test("a buffer that is no good any more rejects the calls that read it, and no others", () =>
  onPage(async (page) => {
    const { told, later, compiled } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const adapter = await navigator.gpu.requestAdapter();
      const other = await adapter.requestDevice();
      const floats = (value) => new Float32Array(4).fill(value);
      const buffers = {
        good: bufferOf(gpu.device, floats(1)),
        destroyed: bufferOf(gpu.device, floats(2)),
        foreign: bufferOf(other, floats(3)),
      };
      const kept = gpu.tensor(new Float32Array(20_000).fill(1));
      const ask = (tensors) => {
        const calls = Object.entries(tensors).flatMap(([name, tensor]) =>
          [0, 1].map((more) => [name, () => tensor.add(more).sum().read()]),
        );
        calls.push(["kept", () => kept.sum().read()]);
        calls.push(["lerp", () => gpu.lerp(floats(0), floats(2), 0.5)]);
        calls.push(["both", () => tensors.good.add(tensors.destroyed).read()]);
        const told = calls.map(async ([name, read]) => {
          const told = await read().then(
            (result) => [...result].join(),
            ({ code }) => code,
          );
          return `${name}: ${told}`;
        });
        return Promise.all(told);
      };
      const make = () =>
        Object.fromEntries(
          Object.entries(buffers).map(([name, buffer]) => [
            name,
            gpu.tensor(buffer, [4]),
          ]),
        );
      const { good, destroyed, foreign } = make();
      await settle(gpu, ask({ good, destroyed }));
      const { compiled } = gpu.stats().pipelines;
      buffers.destroyed.destroy();
      const told = await settle(gpu, ask({ good, destroyed, foreign }));
      const later = await settle(gpu, ask({ good, destroyed, foreign }));
      return {
        told,
        later,
        compiled: gpu.stats().pipelines.compiled - compiled,
      };
    });
    const expected = [
      "good: 4",
      "good: 8",
      "destroyed: invalid-input",
      "destroyed: invalid-input",
      "foreign: invalid-input",
      "foreign: invalid-input",
      "kept: 20000",
      "lerp: 1,1,1,1",
      "both: invalid-input",
    ];
    assert.deepEqual(told, expected);
    assert.deepEqual(later, expected);
    assert.equal(compiled, 0);
  }));

test("after a loss the buffer is gone, and a new one is read", () =>
  onPage(async (page) => {
    const report = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const floats = new Float32Array([1, 2, 3, 4]);
      const x = gpu.tensor(bufferOf(gpu.device, floats), [4]);
      const kept = gpu.tensor(new Float32Array(20_000).fill(1));
      const first = [...(await x.sum().read())];
      const restored = new Promise((resolve) => gpu.on("restored", resolve));
      const old = bufferOf(gpu.device, floats);
      gpu.device.destroy();
      const waiting = codeOf(() => x.sum().read());
      await restored;
      const codes = [await waiting, await codeOf(() => x.sum().read())];
      const next = gpu.tensor(bufferOf(gpu.device, floats), [4]);
      const again = [...(await next.sum().read())];
      const others = [...(await kept.sum().read())];
      // The old buffer is of another device now.
      const foreign = gpu.tensor(old, [4]);
      codes.push(await codeOf(() => foreign.sum().read()));
      return { first, codes, again, others };
    });
    assert.deepEqual([report.first, report.again], [[10], [10]]);
    assert.deepEqual(report.others, [20_000]);
    assert.match(report.codes[0], /^device-lost/);
    assert.match(report.codes[1], /^device-lost: .*GPUBuffer/);
    assert.match(report.codes[2], /^invalid-input/);
  }));

test("small tensors share a buffer, and calls on all of them one dispatch", () =>
  onPage(async (page) => {
    const { shown, dispatches, wrong, kept } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const count = 300;
      const dataOf = (i) =>
        Float32Array.from({ length: 64 }, (_, j) => 1000 * i + j);
      const states = Array.from({ length: count }, (_, i) =>
        gpu.tensor(dataOf(i)),
      );
      const step = () =>
        Promise.all(states.map((s) => s.scale(2).add(1).computeInto(s)));
      const places = () => states.map((s) => s.gpuBuffer());
      const before = places();
      await settle(gpu, step()); // Kernels are compiled.
      const known = gpu.stats().dispatches;
      await settle(gpu, step());
      const dispatches = gpu.stats().dispatches - known;
      // What a pass of the page's own finds there.
      const { COPY_DST, MAP_READ } = GPUBufferUsage;
      const copy = gpu.device.createBuffer({
        size: 256 * count,
        usage: COPY_DST | MAP_READ,
      });
      const encoder = gpu.device.createCommandEncoder();
      before.forEach(({ buffer, offset, size }, i) => {
        encoder.copyBufferToBuffer(buffer, offset, copy, 256 * i, size);
      });
      gpu.device.queue.submit([encoder.finish()]);
      await copy.mapAsync(GPUMapMode.READ);
      const found = new Float32Array(copy.getMappedRange());
      const reading = Promise.all(states.map((s) => s.read()));
      const read = await settle(gpu, reading);
      let wrong = 0;
      for (let i = 0; i < count; i++) {
        dataOf(i).forEach((x, j) => {
          const right = 4 * x + 3;
          wrong += Number(found[64 * i + j] !== right || read[i][j] !== right);
        });
      }
      const others = Array.from({ length: 3 }, (_, i) => gpu.tensor(dataOf(i)));
      const offsets = () => others.map((x) => x.gpuBuffer().offset).join();
      const kept = [offsets()];
      const restored = new Promise((resolve) => gpu.on("restored", resolve));
      gpu.device.destroy();
      await restored;
      kept.push(offsets());
      const [sum] = await settle(gpu, others[2].sum().read());
      return {
        shown: [
          new Set(before.map(({ buffer }) => buffer)).size,
          new Set(before.map(({ offset }) => offset)).size,
          before.every(
            ({ offset, size }) => offset % 256 === 0 && size === 256,
          ),
        ],
        dispatches,
        wrong,
        kept: [kept[0] === kept[1], sum],
      };
    });
    assert.deepEqual(shown, [1, 300, true]);
    assert.equal(dispatches, 1);
    assert.equal(wrong, 0);
    assert.deepEqual(kept, [true, 64 * 2000 + (63 * 64) / 2]);
  }));
