// Indexes whose vectors come with tensors, in real browsers: what searches find, what reaches
// WebGPU, and what is there after a loss.

import assert from "node:assert/strict";
import { heavyTest as test, openSite, testOn } from "./site.mjs";

const site = openSite();

/** In the page: what all tests use. */
const tools = () => {
  /** The same results. */
  window.same = (a, b) =>
    a.ids.join() === b.ids.join() && a.scores.join() === b.scores.join();
  /** Destroys the device, and resolves when another one has taken over. */
  window.lose = (gpu) =>
    new Promise((resolve) => {
      const off = gpu.on("restored", ({ lostTensors }) => {
        off();
        resolve(lostTensors.map(({ label }) => label));
      });
      gpu.device.destroy();
    });
  /** Whether vectors are packed by devices to the same bits: a GPU's division may be off. */
  window.isExact = (metric, dtype) => metric !== "cosine" && dtype !== "int8";
  window.codeOf = (promise) =>
    promise.then(
      () => "answered",
      ({ code }) => code,
    );
};

const onPage = (use) => site.page(use, { prepare: tools });

for (const engine of ["gpu", "cpu"]) {
  testOn(engine)(
    `vectors of tensors are found as those of arrays are, on the ${engine}`,
    () =>
      onPage(async (page) => {
        const problems = await page.evaluate(async (engine) => {
          const gpu = await framebatch.open({ engine });
          const problems = [];
          for (const [dim, metric, ...dtypes] of [
            [1, "dot", "f32", "int8"],
            [5, "cosine", "f32", "f16", "bf16", "int8"],
            [64, "dot", "f32", "f16", "bf16", "int8"],
            [33, "l2", "f32", "bf16"],
            [700, "cosine", "f32", "int8"],
          ]) {
            const counts = [1, 63, 64, 65, 300];
            const vectors = search.floats(493 * dim, 1);
            const queries = search.floats(5 * dim, 2);
            for (const dtype of dtypes) {
              const of = `${dim} ${metric} ${dtype}`;
              const arrays = gpu.index(vectors, { dim, metric, dtype });
              const index = gpu.index({ dim, metric, dtype });
              let at = 0;
              for (const [k, count] of counts.entries()) {
                const part = vectors.slice(at * dim, (at + count) * dim);
                const shape = count === 1 ? [dim] : [count, dim];
                // Tensors, what is recorded of one, and an array among them.
                const tensor = gpu.tensor(part, shape);
                const given = [tensor, tensor.neg().neg(), part][k % 3];
                const ids = index.add(given);
                if (ids[0] !== at || ids.length !== count) problems.push(of);
                at += count;
              }
              const found = await index.searchMany(queries, 10);
              const expected = await arrays.searchMany(queries, 10);
              found.forEach((own, i) => {
                const query = queries.subarray(i * dim, (i + 1) * dim);
                if (dtype === "f32") {
                  const wrong = search.wrong(vectors, query, metric, own, 10);
                  if (wrong) problems.push(`${of}: ${wrong}`);
                } else if (isExact(metric, dtype) && !same(own, expected[i])) {
                  problems.push(`${of}: not as arrays`);
                } else if (own.ids[0] !== expected[i].ids[0]) {
                  problems.push(`${of}: ${own.ids[0]}`);
                }
              });
              index.dispose();
              arrays.dispose();
            }
          }
          return problems;
        }, engine);
        assert.deepEqual(problems, []);
      }),
  );
}

test("what is added and searched in one frame is one submission, and no vector goes through the page", () =>
  onPage(async (page) => {
    const { counts, ids } = await page.evaluate(async () => {
      const { during } = await import("/counting.js");
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const dim = 256;
      const rows = await (async () => {
        const made = gpu.tensor(search.floats(1000 * dim, 1), [1000, dim]);
        const computed = made.scale(2).compute();
        gpu.flush();
        return computed;
      })();
      const small = Array.from({ length: 200 }, (_, i) =>
        gpu.tensor(search.floats(dim, 10 + i)),
      );
      const query = search.floats(dim, 12);
      const run = async () => {
        const index = gpu.index({ dim, metric: "cosine" });
        index.add(rows);
        for (const tensor of small) index.add(tensor);
        const found = index.search(query, 3);
        gpu.flush();
        const { ids } = await found;
        index.dispose();
        return ids;
      };
      await run();
      const before = gpu.stats();
      const { value, counts } = await during(run);
      const after = gpu.stats();
      const of = (name) => after[name] - before[name];
      return {
        counts: {
          ...counts,
          up: of("bytesUp"),
          down: of("bytesDown"),
          dispatches: of("dispatches"),
        },
        ids: [...value],
      };
    });
    assert.equal(ids[0], 1002, "the vector that is the query");
    assert.equal(counts.submits, 1);
    assert.equal(counts.readMaps, 1);
    assert.ok(counts.down < 1000, `${counts.down} bytes came down`);
    // Three words a vector, the query and the tables; the vectors have a mebibyte.
    assert.ok(counts.up < 150_000, `${counts.up} bytes went up`);
    assert.ok(counts.dispatches <= 8, `${counts.dispatches} dispatches`);
  }));

test("vectors of tensors are removed in the order of calls, and their places are used again", () =>
  onPage(async (page) => {
    const seen = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const seen = [];
      const index = gpu.index({ dim: 2, metric: "dot" });
      const look = async (k) => {
        const found = index.search(new Float32Array([1, 0]), k);
        gpu.flush();
        seen.push([...(await found).ids].join());
      };
      const rows = gpu.tensor([
        [5, 0],
        [4, 0],
        [3, 0],
      ]);
      // Removed before its insertion is sent.
      index.remove([index.add(rows)[1]]);
      await look(2);
      const [again] = index.add(gpu.tensor([4.5, 0]));
      index.remove([0]);
      seen.push(`${again} ${index.size}`);
      await look(2);
      const [own] = index.add(new Float32Array([6, 0]));
      index.remove([own, again]);
      await look(1);
      index.remove([2]);
      index.add(
        gpu.tensor([
          [1, 0],
          [NaN, 0],
          [7, 0],
        ]),
      );
      await look(3);
      return seen;
    });
    // What is no number is never found.
    assert.deepEqual(seen, ["0,2", "3 2", "3,2", "2", "7,5"]);
  }));

for (const engine of ["gpu", "cpu"]) {
  testOn(engine)(
    `what was downloaded is what arrays would have been, on the ${engine}`,
    () =>
      onPage(async (page) => {
        const told = await page.evaluate(async (engine) => {
          const gpu = await framebatch.open({ engine });
          const told = [];
          const [dim, count] = [40, 500];
          const vectors = search.floats(count * dim, 3);
          for (const dtype of ["f32", "f16", "bf16", "int8"]) {
            const kind = { dim, metric: "dot", dtype };
            const arrays = gpu.index(vectors, kind);
            const index = gpu.index(vectors.slice(0, 100 * dim), kind);
            index.add(gpu.tensor(vectors.slice(100 * dim), [count - 100, dim]));
            const gone = [7, 120, 121, 400];
            for (const one of [arrays, index]) one.remove(gone);
            const query = search.floats(dim, 4);
            const before = await index.search(query, 20);
            let code = "saved";
            try {
              index.save();
            } catch (error) {
              code = error.code;
            }
            // Searches that wait, and those behind it, find each vector once.
            const waiting = index.search(query, 20);
            const download = index.download();
            const during = index.search(query, 20);
            await download;
            const found = [waiting, during, index.search(query, 20)];
            const all = (await Promise.all(found)).every((one) =>
              same(one, before),
            );
            const isSame =
              index.save().join() === arrays.save().join() ||
              !isExact("dot", dtype);
            const [next] = index.add(gpu.tensor(vectors.slice(0, dim)));
            index.remove([next]);
            told.push([code, all, isSame, next, index.size]);
            index.dispose();
          }
          return told;
        }, engine);
        for (const one of told)
          assert.deepEqual(one, ["unsupported", true, true, 500, 496]);
      }),
  );
}

test("after a loss vectors come back as their tensors do, or are named", () =>
  onPage(async (page) => {
    const report = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const dim = 8;
      const data = search.floats(40 * dim, 5);
      const x = gpu.tensor(data, [40, dim]);
      const small = gpu.tensor(search.floats(dim, 6));
      const computed = await x.scale(3).compute();
      const written = await x.scale(4).compute({ label: "written" });
      await written.add(1).computeInto(written);
      const disposed = await x.scale(5).compute();
      const changed = await x.scale(6).compute({ label: "changed" });
      const index = gpu.index(data, { dim, metric: "dot" });
      for (const one of [x, small, computed, x.scale(2), written])
        index.add(one);
      index.add(disposed);
      index.add(changed);
      const query = search.floats(dim, 7);
      const before = await index.search(query, 200);
      disposed.dispose();
      // The index has what the tensor was when it was added.
      await changed.scale(2).computeInto(changed);
      const waiting = codeOf(index.search(query, 3));
      const named = await lose(gpu);
      const codes = [await waiting, await codeOf(index.search(query, 3))];
      const { lost } = index;
      const message = await index.search(query, 3).catch((e) => e.message);
      const gone = [...lost];
      index.remove(lost);
      const after = await index.search(query, index.size);
      const isGone = (id) => gone.includes(id);
      const left = [...before.ids].filter((id) => !isGone(id));
      const scores = new Map(
        [...before.ids].map((id, i) => [id, before.scores[i]]),
      );
      const wrong = [...after.ids].filter(
        (id, i) => scores.has(id) && scores.get(id) !== after.scores[i],
      );
      const order = [...after.ids].filter((id) => scores.has(id));
      // Once the vectors are the page's, a loss costs nothing.
      await index.download();
      await lose(gpu);
      const last = await index.search(query, index.size);
      return {
        named,
        codes,
        message,
        gone: [gone[0], gone.length],
        wrong,
        order: order.join() === left.join(),
        last: same(last, after),
      };
    });
    assert.deepEqual(report.named, ["written", "changed"]);
    // One that waits may have been answered before the device went.
    assert.ok(["answered", "device-lost"].includes(report.codes[0]));
    assert.equal(report.codes[1], "device-lost");
    assert.match(
      report.message,
      /^search: 120 vectors .* index\.remove\(index\.lost\)/,
    );
    assert.deepEqual(report.gone, [161, 120]);
    assert.deepEqual(report.wrong, []);
    assert.ok(report.order && report.last);
  }));

test("searches that wait for another device find all vectors, or are refused", () =>
  onPage(async (page) => {
    const told = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu", flush: "manual" });
      const dim = 8;
      const told = [];
      for (const keep of [true, false]) {
        const index = gpu.index({ dim, metric: "dot" });
        const parts = [1, 2].map((scale) =>
          gpu
            .tensor(search.floats(3 * dim, 5), [3, dim])
            .scale(scale)
            .compute({ keep: keep || scale === 1 }),
        );
        gpu.flush();
        for (const part of await Promise.all(parts)) index.add(part);
        const query = search.floats(dim, 5);
        const first = index.search(query, 6);
        gpu.flush();
        const { ids } = await first;
        const waiting = index.search(query, 6).then(
          (found) => `${found.ids.length} vectors, ${found.ids[0] === ids[0]}`,
          ({ code }) => code,
        );
        await lose(gpu);
        gpu.flush();
        told.push(await waiting, String([...index.lost]));
        index.remove([...index.lost]);
        const last = index.search(query, index.size);
        gpu.flush();
        told.push(`${(await last).ids.length} vectors`);
        index.dispose();
      }
      return told;
    });
    assert.deepEqual(told, [
      ...["6 vectors, true", "", "6 vectors"],
      ...["device-lost", "3,4,5", "3 vectors"],
    ]);
  }));

test("what is added while there is no device is on the next one", () =>
  onPage(async (page) => {
    const { ids, lost } = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const index = gpu.index({ dim: 2, metric: "dot" });
      const rows = gpu.tensor([
        [1, 0],
        [2, 0],
      ]);
      index.add(rows);
      await index.search(new Float32Array([1, 0]), 1);
      const gone = new Promise((resolve) => gpu.on("lost", resolve));
      const told = lose(gpu);
      await gone;
      index.add(rows.scale(3));
      const found = index.search(new Float32Array([1, 0]), 4);
      await told;
      return { ids: [...(await found).ids], lost: index.lost.length };
    });
    assert.deepEqual(ids, [3, 2, 1, 0]);
    assert.equal(lost, 0);
  }));

test("what is no vector is refused, and nothing is added", () =>
  onPage(async (page) => {
    const told = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "cpu" });
      const other = await framebatch.open({ engine: "cpu" });
      const index = gpu.index({ dim: 3 });
      const gone = gpu.tensor([1, 2, 3]);
      gone.dispose();
      const told = [];
      for (const given of [
        gpu.tensor([1, 2]),
        gpu.tensor([
          [1, 2],
          [3, 4],
          [5, 6],
        ]),
        gpu.tensor(new Float32Array(6), [2, 1, 3]),
        gpu.tensor(new Uint32Array(3)),
        other.tensor([1, 2, 3]),
        gone,
        [1, 2, 3],
        undefined,
      ]) {
        try {
          index.add(given);
          told.push("added");
        } catch ({ code, message }) {
          told.push(`${code} ${message}`);
        }
      }
      const none = index.add(gpu.tensor(new Float32Array(0), [0, 3]));
      return { told, size: index.size + none.length };
    });
    const expected = [
      /^invalid-input index\.add: .*shape \[2\].*reshape it to \[3\] or \[n, 3\]/,
      /^invalid-input index\.add: .*shape \[3, 2\]/,
      /^invalid-input index\.add: .*shape \[2, 1, 3\]/,
      /^invalid-input index\.add: the tensor holds whole numbers/,
      /^invalid-input index\.add/,
      /^disposed index\.add/,
      /^invalid-input index\.add/,
      /^invalid-input index\.add/,
    ];
    expected.forEach((pattern, i) => assert.match(told.told[i], pattern));
    assert.equal(told.size, 0);
  }));
