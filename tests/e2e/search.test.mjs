// Indexes of vectors in a real page: equal to a sort, what a frame costs, and what is
// there after a loss.

import assert from "node:assert/strict";
import {
  heavyTest as test,
  lightTest,
  openSite,
  testOn,
  times,
} from "./site.mjs";

const site = openSite();

for (const engine of ["gpu", "cpu"]) {
  testOn(engine)(
    `searches on the ${engine} are equal to a sort, alone and together`,
    () =>
      site.page(async (page) => {
        const problems = await page.evaluate(async (engine) => {
          const gpu = await framebatch.open({ engine });
          const problems = [];
          for (const [dim, count, metric, ...dtypes] of [
            [5, 300, "cosine", "f32", "f16"],
            [64, 1000, "dot", "f32", "int8"],
            [33, 700, "l2", "f32", "bf16"],
          ]) {
            const vectors = search.floats(count * dim, 1);
            const queries = search.floats(11 * dim, 2);
            for (const dtype of dtypes) {
              const index = gpu.index(vectors, { dim, metric, dtype });
              const query = (i) => queries.subarray(i * dim, (i + 1) * dim);
              const asked = Array.from({ length: 11 }, (_, i) =>
                index.search(query(i), 10),
              );
              const together = await Promise.all(asked);
              const many = await index.searchMany(queries, 10);
              const alone = await index.search(query(0), 10);
              const same = (a, b) =>
                a.ids.join() === b.ids.join() &&
                a.scores.join() === b.scores.join();
              if (!same(together[0], alone)) problems.push(`${dtype}: alone`);
              if (!together.every((found, i) => same(found, many[i])))
                problems.push(`${dtype}: in one call`);
              if (dtype !== "f32") continue;
              together.forEach((found, i) => {
                const problem = search.wrong(
                  vectors,
                  query(i),
                  metric,
                  found,
                  10,
                );
                if (problem) problems.push(`${metric}: ${problem}`);
              });
            }
          }
          return problems;
        }, engine);
        assert.deepEqual(problems, []);
      }),
  );
}

test("100,000 vectors of 384 floats are searched as a sort does", () =>
  site.page(async (page) => {
    const problem = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const vectors = search.floats(100_000 * 384, 3);
      const query = search.floats(384, 4);
      const index = gpu.index(vectors, { dim: 384 });
      const found = await index.search(query, 10);
      return search.wrong(vectors, query, "cosine", found, 10);
    });
    assert.equal(problem, undefined);
  }));

const LARGE = times(20_000, 200_000);

test(`${LARGE} vectors in parts: the core's memory does not hold them`, () =>
  site.page(async (page) => {
    const { problem, isSame, bytes, grown } = await page.evaluate(
      async (count) => {
        const dim = 384;
        const gpu = await framebatch.open({ engine: "gpu" });
        const index = gpu.index({ dim, dtype: "int8" });
        const part = (i) => search.floats(1000 * dim, i + 1);
        const query = search.floats(dim, 0);
        await gpu.index(part(0), { dim }).search(query, 10);
        const before = counting.wasmBytes();
        for (let i = 0; i < count / 1000; i++) index.add(part(i));
        const found = await index.search(query, 10);
        const bytes = index.save();
        index.dispose();
        // Where words do not begin, too.
        const moved = new Uint8Array(bytes.length + 1).subarray(1);
        moved.set(bytes);
        let isSame = true;
        for (const file of [bytes, moved]) {
          const loaded = gpu.loadIndex(file);
          const again = await loaded.search(query, 10);
          loaded.dispose();
          isSame &&=
            String(again.ids) === String(found.ids) &&
            String(again.scores) === String(found.scores);
        }
        const grown = counting.wasmBytes() - before;
        // What it should be, of the vectors that were found.
        let problem;
        found.ids.forEach((id, i) => {
          const at = (id % 1000) * dim;
          const vector = part(Math.floor(id / 1000)).subarray(at, at + dim);
          const dot = (a, b) => a.reduce((sum, x, k) => sum + x * b[k], 0);
          const cosine =
            dot(vector, query) /
            Math.sqrt(dot(vector, vector) * dot(query, query));
          if (Math.abs(cosine - found.scores[i]) > 0.01)
            problem = `${id}: ${found.scores[i]} for ${cosine}`;
        });
        return { problem, isSame, bytes: bytes.length, grown };
      },
      LARGE,
    );
    assert.equal(problem, undefined);
    assert.ok(isSame, "the index that was loaded finds others");
    assert.ok(grown < bytes / 4, `${grown} bytes for an index of ${bytes}`);
  }));

test("a frame's searches of an index are one submission, one read-back, two dispatches", () =>
  site.page(async (page) => {
    const frames = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "gpu" });
      const index = gpu.index(search.floats(2000 * 48, 5), { dim: 48 });
      const frames = [];
      for (let frame = 0; frame < 3; frame++) {
        const queries = Array.from({ length: 64 }, (_, i) =>
          search.floats(48, 64 * frame + i),
        );
        const { value, counts } = await counting.during(() =>
          Promise.all(queries.map((query) => index.search(query, 10))),
        );
        const found = value.every(({ ids }) => ids.length === 10);
        frames.push({ found, counts, made: counting.lasting(counts) });
      }
      return frames;
    });
    for (const { found, counts } of frames) {
      const { submits, readMaps, dispatches } = counts;
      assert.deepEqual([submits, readMaps, dispatches], [1, 1, 2]);
      assert.ok(found);
    }
    assert.deepEqual(frames[2].made, {});
  }));

test("an index goes through changes, a file and a lost device", () =>
  site.page(
    async (page) => {
      const found = await page.evaluate(async () => {
        const gpu = await framebatch.open({ engine: "gpu" });
        const index = gpu.index({ dim: 2, metric: "l2" });
        const ids = [...index.add(Float32Array.of(0, 0, 1, 0, 2, 0, 3, 0))];
        const near = async (index, k, options) => {
          const query = Float32Array.of(0.1, 0);
          return [...(await index.search(query, k, options)).ids];
        };
        const found = { ids, first: await near(index, 2) };
        index.remove([0]);
        found.removed = await near(index, 2);
        found.filtered = await near(index, 3, { filter: (id) => id !== 2 });
        found.masked = await near(index, 3, {
          filter: { mask: Uint32Array.of(0b1001) },
        });
        found.listed = await near(index, 1, { filter: Uint32Array.of(3) });
        found.added = [...index.add(Float32Array.of(0.2, 0))];
        found.again = await near(index, 2);
        const loaded = gpu.loadIndex(index.save());
        found.loaded = await near(loaded, 4);
        const restored = new Promise((done) => gpu.on("restored", done));
        const waiting = near(index, 3);
        gpu.device.destroy();
        found.waiting = await waiting;
        await restored;
        found.after = await near(loaded, 3);
        index.dispose();
        found.disposed = await near(index, 1).catch((error) => error.code);
        return found;
      });
      assert.deepEqual(found, {
        ids: [0, 1, 2, 3],
        first: [0, 1],
        removed: [1, 2],
        filtered: [1, 3],
        masked: [3],
        listed: [3],
        added: [4],
        again: [4, 1],
        loaded: [4, 1, 2, 3],
        waiting: [4, 1, 2],
        after: [4, 1, 2],
        disposed: "disposed",
      });
    },
    { may: /./ },
  ));

lightTest("what is wrong is said by name", () =>
  site.page(async (page) => {
    const messages = await page.evaluate(async () => {
      const gpu = await framebatch.open({ engine: "cpu" });
      const index = gpu.index(Float32Array.of(1, 0, 0, 1), { dim: 2 });
      const bytes = index.save();
      bytes[4] = 2;
      const wrong = [
        () => index.search(Float32Array.of(1, 2, 3), 1),
        () => index.search(Float32Array.of(1, NaN), 1),
        () => index.search([1, 2], 1),
        () => index.search(Float32Array.of(1, 2), 3),
        () => index.search(Float32Array.of(1, 2), 0.5),
        () => index.search(Float32Array.of(1, 2), 257),
        () => index.search(Float32Array.of(1, 2), 1, { filter: "all" }),
        () => index.search(Float32Array.of(1, 2), 1, { into: [] }),
        () => index.searchMany(Float32Array.of(1, 2, 3), 1),
        () => index.add(Float32Array.of(1, 2, 3)),
        () => index.add(Float32Array.of(1, 2, 3, Infinity)),
        () => index.remove([1, 5]),
        () => gpu.index({ dim: 0 }),
        () => gpu.index({ dim: 2, metric: "angle" }),
        () => gpu.index({ dim: 2, dtype: "int4" }),
        () => gpu.index({ dim: 2, width: 3 }),
        () => gpu.loadIndex(new Uint8Array(100)),
        () => gpu.loadIndex(bytes),
      ];
      const messages = [];
      for (const ask of wrong) {
        try {
          await ask();
          messages.push("nothing");
        } catch (error) {
          const { code, message } = error;
          messages.push(code === "invalid-input" ? message : code);
        }
      }
      return messages;
    });
    assert.deepEqual(messages, [
      "search: the query has 3 floats, but the index's vectors have 2",
      "search: query 0 has NaN at 1; give numbers from -100000000000000000 to 100000000000000000",
      "search: the query must be a Float32Array, got Array; give Float32Array.from(query)",
      "search: k is 3, but the index has 2 vectors",
      "search: k must be a whole number from 1, got 0.5",
      "search: k is 257, but a search gives at most 256 results",
      "search: filter must be a Uint32Array of ids, { mask } with a Uint32Array of bits, or a function, got string",
      "search: there is no option 'into'; results are new arrays",
      "search: 3 floats are not a multiple of 2, the width of the index's vectors",
      "index.add: 3 floats are not a multiple of 2, the width of the index's vectors",
      "index.add: vector 1 has Infinity at 1; give numbers from -100000000000000000 to 100000000000000000",
      "index.remove: no vector has the id 5",
      "index: dim is 0, but vectors have 1 to 4096 floats",
      "index: metric must be one of cosine, dot, l2, got 'angle'",
      "index: dtype must be one of f32, f16, bf16, int8, got 'int4'",
      "index: there is no option 'width'; the options are dim, metric, dtype, label",
      "index: the bytes: they are no index that was saved",
      "index: the bytes: they are of version 2, but this release reads version 1",
    ]);
  }),
);
