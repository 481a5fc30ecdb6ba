// Chains of tensors in a real page: their answers on both engines, what they cost the
// GPU, and what becomes of resident ones when a device is lost.

import assert from "node:assert/strict";
import { lightTest as test, openSite, times } from "./site.mjs";

const site = openSite();

/** Chains by name: what is asked, and the same in float64. */
const CASES = {
  "relu, scale, add": {
    ask: (gpu, x, y) =>
      gpu
        .tensor(x, [60, 50])
        .relu()
        .scale(2)
        .add(gpu.tensor(y, [50])),
    right: (x, y) => x.map((v, i) => Math.max(v, 0) * 2 + y[i % 50]),
  },
  softmax: {
    ask: (gpu, x) => gpu.tensor(x, [60, 50]).softmax(),
    right: (x) =>
      rowsOf(x, 50).flatMap((row) => {
        const top = Math.max(...row);
        const all = row.reduce((sum, v) => sum + Math.exp(v - top), 0);
        return row.map((v) => Math.exp(v - top) / all);
      }),
  },
  "a mean over the first axis": {
    ask: (gpu, x) => gpu.tensor(x, [60, 50]).mean(0),
    right: (x) =>
      Array.from({ length: 50 }, (_, c) => {
        const column = rowsOf(x, 50).map((row) => row[c]);
        return column.reduce((sum, v) => sum + v, 0) / 60;
      }),
  },
  "the sum of everything": {
    ask: (gpu, x) => gpu.tensor(x).mul(gpu.tensor(x)).sum(),
    right: (x) => [x.reduce((sum, v) => sum + v * v, 0)],
  },
  "a transpose and a slice": {
    ask: (gpu, x) =>
      gpu
        .tensor(x, [60, 50])
        .transpose()
        .slice([10, 20], [undefined, undefined, -1])
        .neg(),
    right: (x) =>
      Array.from({ length: 600 }, (_, i) => {
        const [row, column] = [10 + Math.floor(i / 60), 59 - (i % 60)];
        return -x[column * 50 + row];
      }),
  },
  layerNorm: {
    ask: (gpu, x) => gpu.tensor(x, [60, 50]).layerNorm(),
    right: (x) =>
      rowsOf(x, 50).flatMap((row) => {
        const mean = row.reduce((sum, v) => sum + v, 0) / 50;
        const variance = row.reduce((sum, v) => sum + (v - mean) ** 2, 0) / 50;
        return row.map((v) => (v - mean) / Math.sqrt(variance + 1e-5));
      }),
  },
  "a buffer that its last reader writes over": {
    ask: (gpu, x) => {
      const flip = (t) => t.slice([undefined, undefined, -1]);
      const y = gpu.tensor(x).gelu();
      const a = flip(y).tanh();
      const b = y.exp();
      return a.sub(flip(a)).sub(b.div(flip(b)));
    },
    right: (x) => {
      const y = x.map(gelu);
      const a = y.toReversed().map(Math.tanh);
      const b = y.map(Math.exp);
      return x.map((_, i) => a[i] - a.at(-1 - i) - b[i] / b.at(-1 - i));
    },
  },
  "a step of bodies in a world without borders": {
    ask: (gpu, x, y) => {
      const [at, speed] = [gpu.tensor(x, [60, 50]), gpu.tensor(y, [50])];
      const moved = speed.mul(at.atan2(speed).cos()).add(at).mod(1.5);
      const isFast = speed.abs().greater(0.5);
      return gpu.where(isFast, moved.floor(), at.mul(2 ** 20).sin());
    },
    right: (x, y) =>
      x.map((at, i) => {
        const speed = y[i % 50];
        const moved = at + speed * Math.cos(Math.atan2(at, speed));
        if (Math.abs(speed) <= 0.5) return Math.sin(at * 2 ** 20);
        return Math.floor(moved - 1.5 * Math.floor(moved / 1.5));
      }),
  },
  "rows by index, joined to others": {
    ask: (gpu, x) => {
      const table = gpu.tensor(x, [60, 50]);
      return table
        .gather(new Uint32Array([5, 0, 59]), 0)
        .concat([table.slice([1, 2])], 0)
        .gelu();
    },
    right: (x) => [5, 0, 59, 1].flatMap((row) => rowsOf(x, 50)[row].map(gelu)),
  },
};

const rowsOf = (x, width) =>
  Array.from({ length: x.length / width }, (_, r) =>
    x.slice(r * width, (r + 1) * width),
  );

// The error function's Taylor series, which float64 carries far enough for what is asked.
function gelu(x) {
  const z = x / Math.SQRT2;
  let term = z;
  let sum = z;
  for (let n = 1; n < 80; n++) {
    term *= (-z * z) / n;
    sum += term / (2 * n + 1);
  }
  return (x / 2) * (1 + (2 / Math.sqrt(Math.PI)) * sum);
}

for (const engine of ["gpu", "cpu"]) {
  test(`what chains compute, on the ${engine}`, () =>
    site.page(async (page) => {
      for (const [name, { ask, right }] of Object.entries(CASES)) {
        const { x, y, result } = await page.evaluate(
          async (engine, ask) => {
            const gpu = await framebatch.open({ engine });
            const [x, y] = [workload.floats(3000, 1), workload.floats(50, 2)];
            const chain = new Function(`return ${ask}`)()(gpu, x, y);
            const result = [...(await chain.read())];
            await gpu.dispose();
            return { x: [...x], y: [...y], result };
          },
          engine,
          ask.toString(),
        );
        const expected = right(x, y);
        assert.equal(result.length, expected.length, name);
        const far = expected.map(
          (v, i) => Math.abs(v - result[i]) / Math.max(1, Math.abs(v)),
        );
        assert.ok(Math.max(...far) < 2e-5, `${name}: ${Math.max(...far)}`);
      }
    }));
}

test("the last reader of an intermediate takes no memory of its own", () =>
  site.page(async (page) => {
    const plan = await page.evaluate(async (ask) => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const chain = new Function(`return ${ask}`)();
      return gpu.explain(() => void chain(gpu, new Float32Array(64)).read());
    }, CASES["a buffer that its last reader writes over"].ask.toString());
    const dispatches = plan
      .split("\n")
      .filter((line) => /^dispatch/.test(line));
    assert.deepEqual(
      dispatches.map((line) => /\(([^()]*)\) -> (.*?),/.exec(line).slice(1)),
      [
        ["s0", "s2"],
        ["s2", "s3"],
        ["", "s2 in place"],
        ["s3, s2", "s1"],
      ],
      plan,
    );
  }));

test("a frame's equal chains, whatever their lengths: one upload, dispatch and read-back", () =>
  site.page(async (page) => {
    const { counts, stats, wrong, compiled } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const ask = async (lengths) => {
        const data = lengths.map((length, i) => workload.floats(length, i));
        const asked = data.map((x, i) =>
          gpu
            .tensor(x)
            .relu()
            .scale(i / 7)
            .add(0.5)
            .read(),
        );
        gpu.flush();
        const results = await Promise.all(asked);
        return results.filter((result, i) =>
          result.some(
            (v, k) =>
              Math.abs(v - (Math.max(data[i][k], 0) * i) / 7 - 0.5) > 1e-5,
          ),
        ).length;
      };
      const lengths = Array.from({ length: 200 }, (_, i) => 1 + i * 3);
      let wrong = await ask(lengths);
      const before = gpu.stats();
      const { counts } = await counting.during(async () => {
        wrong += await ask(lengths.map((length) => length + 1));
      });
      const after = gpu.stats();
      return {
        counts,
        wrong,
        compiled: after.pipelines.compiled - before.pipelines.compiled,
        stats: ["submits", "uploads", "readbacks", "dispatches"].map(
          (name) => after[name] - before[name],
        ),
      };
    });
    assert.equal(wrong, 0);
    assert.equal(compiled, 0);
    assert.deepEqual(stats, [1, 1, 1, 1]);
    assert.equal(counts.submits, 1);
    assert.equal(counts.dispatches, 1);
    assert.equal(counts.readMaps, 1);
  }));

// Chains that the command builder and the bench have too.
const CHAINS = {
  "relu scale add": (x, y) => x.relu().scale(2).add(y),
  "relu scale add mul relu": (x, y) => x.relu().scale(2).add(y).mul(y).relu(),
};

for (const [name, chain] of Object.entries(CHAINS)) {
  test(`${name} of 10,000 floats: one upload, dispatch and read-back`, () =>
    site.page(async (page) => {
      const { counts, stats, wrong } = await page.evaluate(async (chain) => {
        const record = new Function(`return ${chain}`)();
        const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
        const [a, b] = [1, 2].map((seed) => workload.floats(10_000, seed));
        const ask = async () => {
          const asked = record(gpu.tensor(a), gpu.tensor(b)).read();
          gpu.flush();
          return asked;
        };
        await ask();
        const before = gpu.stats();
        const { value, counts } = await counting.during(ask);
        const after = gpu.stats();
        const isLong = chain.includes("mul");
        const right = (x, y) => {
          const sum = Math.max(x, 0) * 2 + y;
          return isLong ? Math.max(sum * y, 0) : sum;
        };
        return {
          counts,
          wrong: value.findIndex(
            (v, k) => !(Math.abs(v - right(a[k], b[k])) <= 1e-5),
          ),
          stats: ["submits", "uploads", "readbacks", "dispatches"].map(
            (name) => after[name] - before[name],
          ),
        };
      }, chain.toString());
      assert.equal(wrong, -1);
      assert.deepEqual(stats, [1, 1, 1, 1]);
      const { submits, dispatches, readMaps } = counts;
      assert.deepEqual([submits, dispatches, readMaps], [1, 1, 1]);
    }));
}

test("1,000 constants and 200 lengths: nothing is compiled after the first", () =>
  site.page(async (page) => {
    const { compiled, created, wrong } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const ask = async (length, constants) => {
        const x = workload.floats(length, length);
        const asked = constants.map((c) =>
          gpu.tensor(x).sub(c).maximum(-1).mul(gpu.tensor(x)).read(),
        );
        gpu.flush();
        const results = await Promise.all(asked);
        return results.filter((result, i) =>
          result.some((v, k) => {
            const right = Math.max(x[k] - constants[i], -1) * x[k];
            return !(Math.abs(v - right) <= 1e-6);
          }),
        ).length;
      };
      let wrong = await ask(200, [1, 2, 3, 4, 5]);
      const before = [gpu.stats(), counting.count()];
      for (let length = 1; length <= 200; length++) {
        const constants = [0, 1, 2, 3, 4].map((k) => (length * 5 + k) / 500);
        wrong += await ask(length, constants);
      }
      const { createComputePipelineAsync: created } = counting.since(
        before[1],
      ).created;
      const { compiled } = gpu.stats().pipelines;
      return {
        compiled: compiled - before[0].pipelines.compiled,
        created,
        wrong,
      };
    });
    assert.deepEqual([compiled, created, wrong], [0, 0, 0]);
  }));

test("nothing else comes to lie in a tensor's own buffer that was handed out", () =>
  site.page(async (page) => {
    const same = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "eager" });
      const buffers = [];
      const use = async (shows) => {
        const tensor = gpu.tensor(new Float32Array(20_000).fill(2));
        for (let times = 0; times < 2; times++) await tensor.mul(2).read();
        if (shows) buffers.push(tensor.gpuBuffer().buffer);
        tensor.dispose();
      };
      for (const shows of [true, false, true]) await use(shows);
      return buffers[0] === buffers[1];
    });
    assert.equal(same, false);
  }));

test("a short tensor that is new each frame, and shared by its calls, makes nothing", () =>
  site.page(async (page) => {
    const { lasting, live, wrong } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const xs = Array.from({ length: 20 }, (_, i) => workload.floats(100, i));
      let wrong = 0;
      const frame = async (n) => {
        // Two lengths, which take turns on one number.
        const shared = workload.floats(n % 10 === 9 ? 1 : 100, n);
        const addend = gpu.tensor(shared);
        const asked = xs.map((x) => gpu.tensor(x).add(addend).read());
        gpu.flush();
        addend.dispose();
        (await Promise.all(asked)).forEach((sum, i) => {
          const right = (v, k) =>
            v === Math.fround(xs[i][k] + shared[k % shared.length]);
          if (!sum.every(right)) wrong++;
        });
      };
      for (let n = 0; n < 20; n++) await frame(n);
      const live = [counting.count().liveBuffers];
      const { counts } = await counting.during(async () => {
        for (let n = 20; n < 29; n++) await frame(n);
      });
      await frame(29);
      live.push(counting.count().liveBuffers);
      return { lasting: counting.lasting(counts), live, wrong };
    });
    assert.equal(wrong, 0);
    assert.deepEqual(lasting, {}, "its slab is there, whatever its length");
    assert.equal(live[1], live[0]);
  }));

test("a chain beside neighbors gives the bits that it gives alone", () =>
  site.page(async (page) => {
    const same = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const chain = (rows, seed) =>
        gpu
          .tensor(workload.floats(rows * 48, seed), [rows, 48])
          .mul(3)
          .softmax()
          .log()
          .sum(1);
      const alone = [];
      for (let i = 0; i < 8; i++) {
        const asked = chain(1 + i * 5, i).read();
        gpu.flush();
        alone.push([...new Uint32Array((await asked).buffer)]);
      }
      const asked = alone.map((_, i) => chain(1 + i * 5, i).read());
      gpu.flush();
      const together = (await Promise.all(asked)).map((floats) => [
        ...new Uint32Array(floats.buffer),
      ]);
      return JSON.stringify(alone) === JSON.stringify(together);
    });
    assert.ok(same);
  }));

test("large tensors stay on the device, are shared with a renderer, and come back after a loss", () =>
  site.page(async (page) => {
    const { first, again, kinds, second, uploads } = await page.evaluate(
      async () => {
        const gpu = await framebatch.open({ engine: "gpu" });
        const size = 100_000;
        const x = gpu.tensor(new Float32Array(size).fill(3));
        const gone = gpu.tensor(new Float32Array(size).fill(1), [size], {
          keep: false,
        });
        const sum = (tensor) =>
          tensor
            .add(1)
            .sum()
            .read()
            .then(([v]) => v);
        const first = await sum(x);
        const before = gpu.stats().bytesUp;
        const again = await sum(x);
        const uploads = gpu.stats().bytesUp - before;
        const { buffer, size: bytes } = x.gpuBuffer();
        const kinds = [buffer instanceof GPUBuffer, bytes];
        const restored = new Promise((resolve) => gpu.on("restored", resolve));
        gpu.device.destroy();
        await restored;
        const second = await sum(x);
        const lost = await sum(gone).catch(({ code }) => code);
        return { first, again, kinds, second: [second, lost], uploads };
      },
    );
    assert.deepEqual([first, again], [400_000, 400_000]);
    assert.ok(uploads < 10_000, `${uploads} bytes went up again`);
    assert.deepEqual(kinds, [true, 400_000]);
    assert.deepEqual(second, [400_000, "device-lost"]);
  }));

test("readAll: several results of one call, also the same one twice", () =>
  site.page(async (page) => {
    const { results, stats } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const x = gpu.tensor([1, -2, 3]);
      const y = x.relu();
      const results = await gpu.readAll([y, y.sum(), y, x.argmax()]);
      return { results: results.map((r) => [...r]), stats: gpu.stats() };
    });
    assert.deepEqual(results, [[1, 0, 3], [4], [1, 0, 3], [2]]);
    assert.equal(stats.submits, 1);
  }));
