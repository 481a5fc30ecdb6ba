// Embeddings in a real page: right, equal alone and among others, few passes, and what
// becomes of a model that is given up, kept in the cache, or wrong.

import assert from "node:assert/strict";
import { BROWSER } from "../../tools/browser.mjs";
import { encoder } from "./encoder.mjs";
import {
  heavyTest,
  lightTest as test,
  openSite,
  testOn,
  times,
} from "./site.mjs";

const site = openSite();
const MODEL = "tests/data/tiny-model";
const ADDRESS = "/data/tiny-model/";
const LAYERS = 2;

/** What browsers write of files that a folder need not have. */
const may = /404/;

/** Texts of so many tokens below 128: the same everywhere. */
function idsOf(seed, tokens) {
  return Array.from({ length: tokens }, (_, i) =>
    i === 0 ? 2 : i === tokens - 1 ? 3 : 5 + ((seed * 31 + i * 17) % 120),
  );
}
const TEXTS = Array.from({ length: 64 }, (_, i) => idsOf(i, 2 + (i % 37)));

/** In the page: opens a session and the model on it. */
async function opened(name, address, engine, options) {
  window.begin = async (engine, options) => {
    const gpu = await framebatch.open({ engine, flush: "manual" });
    const embedder = await gpu.embedder(address, options);
    const all = (texts) => {
      const vectors = texts.map((ids) => embedder.embedIds(ids));
      gpu.flush();
      return Promise.all(vectors);
    };
    return { gpu, embedder, all };
  };
  window[name] = await window.begin(engine, options);
}

const cosine = (a, b) => {
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
};

/** In the page: all texts together, some of them alone, and which of these differ. */
async function embedAll(texts, places) {
  const { all, gpu, embedder } = window.it;
  const bits = ({ buffer }) => new Uint32Array(buffer).join();
  const together = await all(texts);
  const others = [];
  for (const i of places) {
    const [alone] = await all([texts[i]]);
    if (bits(alone) !== bits(together[i])) others.push(i);
  }
  const { info } = embedder;
  await gpu.dispose();
  return { vectors: places.map((i) => [...together[i]]), others, info };
}

const PLACES = [0, 1, 2, 8, 31, 36, 63];
const EXPECTED = PLACES.map((i) => encoder(MODEL)(TEXTS[i]));
const LEAST = { f32: 1 - 1e-10, f16: 0.99999, bf16: 0.999, int8: 0.999 };
const DTYPES = Object.keys(LEAST);

for (const engine of ["gpu", "cpu"]) {
  for (const dtype of DTYPES) {
    if (engine === "gpu" && !times(["f32", "int8"], DTYPES).includes(dtype))
      continue;
    testOn(engine)(
      `vectors are right, and the same alone and among 63: ${engine}, ${dtype}`,
      () =>
        site.page(
          async (page) => {
            // The GPU in software compiles the kernels of 32 bits, too, for a second each.
            const verify = engine === "cpu";
            const options = { dtype, verify };
            await page.evaluate(opened, "it", ADDRESS, engine, options);
            const { vectors, others, info } = await page.evaluate(
              embedAll,
              TEXTS,
              PLACES,
            );
            assert.deepEqual([info.engine, info.dtype], [engine, dtype]);
            assert.equal(info.fidelity >= LEAST[dtype], verify, info.fidelity);
            assert.deepEqual(others, []);
            vectors.forEach((vector, i) => {
              const about = `${TEXTS[PLACES[i]].length} tokens`;
              const like = cosine(vector, EXPECTED[i]);
              assert.ok(like >= LEAST[dtype], `${about}: cosine ${like}`);
              if (dtype !== "f32") return;
              vector.forEach((x, k) => {
                const off = Math.abs(x - EXPECTED[i][k]);
                assert.ok(
                  off <= 2e-6,
                  `${about}: element ${k} is off by ${off}`,
                );
              });
            });
          },
          { may },
        ),
    );
  }
}

/** In the page: what a session on `engine` gives in each arithmetic, in one batch and one by one. */
async function inArithmetics(address, gemma, engine, texts) {
  const gpu = await framebatch.open({ engine, flush: "manual" });
  const load = async (arithmetic, from = address) => {
    try {
      return await gpu.embedder(from, { dtype: "f32", arithmetic });
    } catch ({ code, message }) {
      return { refused: `${code}: ${message}` };
    }
  };
  const all = (embedder, texts) => {
    const vectors = texts.map((ids) => embedder.embedIds(ids));
    gpu.flush();
    return Promise.all(vectors);
  };
  const found = {
    has: gpu.info.features.includes("shader-f16"),
    wrong: (await load("f64")).refused,
    asked: await load("f16"),
    gemma: (await load("f16", gemma)).refused,
    vectors: [],
    others: 0,
  };
  if (found.asked.info !== undefined) {
    for (const embedder of [await load(undefined), found.asked]) {
      const together = await all(embedder, texts);
      for (const [i, ids] of texts.entries()) {
        const [alone] = await all(embedder, [ids]);
        found.others += String(alone) === String(together[i]) ? 0 : 1;
      }
      found.vectors.push(together.map((vector) => [...vector]));
    }
    found.auto = (await load("auto")).info.arithmetic;
    found.asked = found.asked.info.arithmetic;
  } else found.asked = found.asked.refused;
  if (engine === "cpu") {
    found.auto = [await load("auto"), await load("auto", gemma)];
    found.auto = found.auto.map(({ info }) => info.arithmetic).join();
  }
  await gpu.dispose();
  return found;
}

for (const engine of ["gpu", "cpu"]) {
  test(`products in 16 bits where the device has them: ${engine}`, () =>
    site.page(
      async (page) => {
        const gemma = "/data/models/gemma3/";
        const texts = TEXTS.slice(0, 5);
        const found = await page.evaluate(
          inArithmetics,
          ...[ADDRESS, gemma, engine, texts],
        );
        const { has, asked, vectors } = found;
        assert.match(found.wrong, /^invalid-input: .*'f32', 'f16' or 'auto'/);
        assert.match(found.gemma, /^unsupported: embedder: in the layers of G/);
        // Mesa's GPU in software has 16-bit floats, and that of Chromium has none.
        assert.equal(has, engine === "gpu" && BROWSER === "firefox");
        if (!has) {
          assert.match(
            asked,
            /^unsupported: .* needs a GPU with .* shader-f16/,
          );
          if (engine === "cpu") assert.equal(found.auto, "f32,f32");
          return;
        }
        assert.deepEqual([asked, found.auto, found.others], ["f16", "f16", 0]);
        const [full, half] = vectors;
        assert.notDeepEqual(full, half);
        texts.forEach((ids, i) => {
          const like = cosine(half[i], encoder(MODEL)(ids));
          assert.ok(like >= 0.9999, `${ids.length} tokens: cosine ${like}`);
        });
      },
      { may },
    ));
}

for (const engine of ["gpu", "cpu"]) {
  const add = engine === "gpu" ? heavyTest : test;
  add(
    `a converted folder gives the bits of the whole as int8, on the ${engine}`,
    () =>
      site.page(
        async (page) => {
          const found = await page.evaluate(async (engine) => {
            const gpu = await framebatch.open({ engine, flush: "eager" });
            const load = (name, options) =>
              gpu.embedder(`/data/${name}/`, options);
            const int8 = { dtype: "int8", verify: false };
            const whole = await load("tiny-model", int8);
            const converted = await load("tiny-model-int8");
            const texts = ["the cat sat on the mat", "a dog ran"];
            const all = ({ buffer }) => new Uint32Array(buffer).join();
            const bits = async (embedder) =>
              (
                await Promise.all(texts.map((text) => embedder.embed(text)))
              ).map(all);
            const vectors = [await bits(whole), await bits(converted)];
            const { dtype, fidelity } = converted.info;
            const { bytes } = gpu.stats().tensors;
            const { info: four } = await load("tiny-model-int4");
            const { int4, int8: eight } = gpu.stats().tensors;
            await gpu.dispose();
            return { vectors, dtype, fidelity, bytes, four, int4, eight };
          }, engine);
          assert.deepEqual(found.vectors[1], found.vectors[0]);
          assert.equal(found.dtype, "int8");
          assert.ok(found.fidelity > 0.999 && found.fidelity < 1);
          // A folder of int4 has tables of positions as int8.
          assert.equal(found.four.dtype, "mixed");
          const { fidelity } = found.four;
          assert.ok(fidelity >= 0.99 && fidelity < 0.9999, String(fidelity));
          assert.ok(found.int4 > 0 && found.eight > 0);
        },
        { may },
      ),
  );
}

for (const engine of ["gpu", "cpu"]) {
  const add = engine === "gpu" ? heavyTest : test;
  add(
    `an index finds texts whose vectors the page has never seen, on the ${engine}`,
    () =>
      site.page(
        async (page) => {
          await page.evaluate(opened, "it", ADDRESS, engine, {});
          const seen = await page.evaluate(
            async (texts) => {
              const { gpu, embedder, all } = window.it;
              const told = (gpu) =>
                new Promise((resolve) => {
                  const off = gpu.on("restored", (news) => {
                    off();
                    resolve(news.lostTensors.length);
                  });
                });
              const bits = ({ buffer }) => new Uint32Array(buffer).join();
              const index = gpu.index({ dim: embedder.info.dimensions });
              const before = gpu.stats();
              const calls = texts.map((ids) => embedder.computeIds(ids));
              gpu.flush();
              const tensors = await Promise.all(calls);
              for (const tensor of tensors) index.add(tensor);
              gpu.flush();
              const [batches, down] = ["batches", "bytesDown"].map(
                (name) => gpu.stats()[name] - before[name],
              );
              const vectors = await all(texts);
              // Whose nearest text is not itself, or whose bits are others.
              const wrong = async () => {
                const found = vectors.map((vector) => index.search(vector, 1));
                const read = tensors.map((tensor) => tensor.read());
                gpu.flush();
                const ids = (await Promise.all(found)).map(({ ids }) => ids[0]);
                const own = await Promise.all(read);
                return texts.flatMap((_, i) =>
                  ids[i] === i && bits(own[i]) === bits(vectors[i]) ? [] : [i],
                );
              };
              const atFirst = await wrong();
              let lost = 0;
              if (gpu.device !== undefined) {
                const over = told(gpu);
                gpu.device.destroy();
                lost = await over;
              }
              const afterLoss = await wrong();
              await gpu.dispose();
              return { batches, down, atFirst, lost, afterLoss };
            },
            TEXTS.slice(0, 24),
          );
          assert.deepEqual(seen, {
            ...{ batches: 2, down: 0, lost: 0 },
            ...{ atFirst: [], afterLoss: [] },
          });
        },
        { may },
      ),
  );
}

heavyTest(
  "a plain folder with another tokenizer embeds ids, as a mean of some length",
  () =>
    site.page(
      async (page) => {
        const { vector, said, info } = await page.evaluate(
          async (address, ids) => {
            const file = async (name) => {
              const response = await fetch(address + name);
              return [name, await response.blob()];
            };
            const files = new Map([
              await file("config.json"),
              await file("model.safetensors"),
              ["tokenizer.json", new Blob(['{"model":{"type":"WordLevel"}}'])],
            ]);
            const gpu = await framebatch.open({ engine: "gpu" });
            const embedder = await gpu.embedder(files, { dtype: "f32" });
            const said = [];
            for (const call of [
              () => embedder.embed("the cat"),
              () => embedder.embedMany(["the cat"]),
            ]) {
              await call().then(
                () => said.push("nothing"),
                ({ code, message }) => said.push(`${code} ${message}`),
              );
            }
            const vector = [...(await embedder.embedIds(ids))];
            const { info } = embedder;
            embedder.dispose();
            await gpu.dispose();
            return { vector, said, info };
          },
          ADDRESS,
          TEXTS[8],
        );
        for (const text of said) {
          assert.match(
            text,
            /^unsupported embedder: tokenizer.json: model 'WordLevel' is not/,
          );
          assert.match(text, /embedIds$/);
        }
        assert.equal(said.length, 2);
        assert.equal(info.normalized, false);
        const exact = encoder(MODEL, false)(TEXTS[8]);
        const length = Math.hypot(...exact);
        assert.ok(
          Math.abs(length - 1) > 0.1,
          `a length of ${length} says nothing`,
        );
        vector.forEach((x, k) => {
          const off = Math.abs(x - exact[k]);
          assert.ok(off <= 1e-5, `element ${k} is off by ${off}`);
        });
      },
      { may },
    ),
);

heavyTest(
  "64 texts of a frame are one submission, and a new length makes nothing",
  () =>
    site.page(
      async (page) => {
        await page.evaluate(opened, "it", ADDRESS, "gpu", { dtype: "f32" });
        const { warm, fresh, texts } = await page.evaluate(async (texts) => {
          const { all, embedder, gpu } = window.it;
          const short = texts.filter((ids) => ids.length < 30);
          const sixtyFour = [...short, ...short].slice(0, 64);
          await all(sixtyFour);
          await all(sixtyFour);
          const warm = await counting.during(() => all(sixtyFour));
          // Texts of a new length, and as many tokens in all as fit before.
          const fresh = await counting.during(() =>
            all(texts.filter((ids) => ids.length >= 30).slice(0, 8)),
          );
          const said = ["a cat sat", "the dog", "a cat sat", ""];
          const vectors = said.map((text) => embedder.embed(text));
          gpu.flush();
          const [first, , third] = await Promise.all(vectors);
          return {
            warm: { ...warm.counts, lasting: counting.lasting(warm.counts) },
            fresh: { ...fresh.counts, lasting: counting.lasting(fresh.counts) },
            texts: {
              same: first.join() === third.join(),
              apart: first !== third,
            },
          };
        }, TEXTS);
        for (const counts of [warm, fresh]) {
          assert.equal(counts.submits, 1);
          assert.equal(counts.readMaps, 1);
          assert.ok(
            counts.dispatches <= 7 * LAYERS + 3,
            `${counts.dispatches} dispatches`,
          );
          assert.deepEqual(counts.lasting, {});
        }
        assert.deepEqual(texts, { same: true, apart: true });
      },
      { may },
    ),
);

test("a model is kept in the cache, and a wrong one is not", () =>
  site.page(
    async (page) => {
      const asked = [];
      page.on("request", (request) => {
        if (request.url().includes("/data/")) asked.push(request.url());
      });
      const load = (address, options) =>
        page.evaluate(
          async (address, options) => {
            const gpu = await framebatch.open({ engine: "cpu" });
            try {
              const heard = [];
              const embedder = await gpu.embedder(address, {
                ...options,
                onProgress: (progress) => heard.push(progress),
              });
              const { length } = await embedder.embed("the cat sat on the mat");
              return { length, last: heard.at(-1) };
            } catch ({ code, message }) {
              return { code, message };
            } finally {
              await gpu.dispose();
            }
          },
          address,
          options,
        );
      await page.evaluate(() => caches.delete("framebatch-models"));
      const weights = () => asked.filter((url) => url.endsWith("safetensors"));
      const first = await load(ADDRESS);
      assert.equal(first.length, 64);
      assert.equal(first.last.loaded, first.last.total);
      await page.waitForFunction(async () => {
        const cache = await caches.open("framebatch-models");
        const keys = await cache.keys();
        // The list of what is kept is written last.
        return keys.some(({ url }) => url.endsWith("?framebatch-files"));
      });
      assert.equal(weights().length, 1);
      assert.deepEqual(await load(ADDRESS), first);
      assert.equal(weights().length, 1);
      await load(ADDRESS, { cache: false });
      assert.equal(weights().length, 2);
      const wrong = await load("/data/");
      assert.equal(wrong.code, "invalid-input");
      assert.match(wrong.message, /config.json is missing/);
    },
    { may },
  ));

test("a model that is given up leaves nothing behind", () =>
  site.page(
    async (page) => {
      const { reason, bytes } = await page.evaluate(async (address) => {
        const gpu = await framebatch.open({ engine: "gpu" });
        const controller = new AbortController();
        const { signal } = controller;
        const onProgress = ({ loaded, total }) => {
          if (loaded > total / 2) controller.abort("enough");
        };
        const cache = false;
        const loading = gpu.embedder(address, { signal, onProgress, cache });
        const reason = await loading.catch((reason) => reason);
        const bytes = gpu.stats().tensors;
        await gpu.dispose();
        return { reason, bytes };
      }, ADDRESS);
      assert.equal(reason, "enough");
      assert.deepEqual(
        Object.values(bytes).filter((bytes) => bytes > 0),
        [],
      );
    },
    { may },
  ));

heavyTest("many texts are embedded in slices, beside calls that go first", () =>
  site.page(
    async (page) => {
      const { same, heard, between } = await page.evaluate(async (address) => {
        const gpu = await framebatch.open({ engine: "gpu" });
        const embedder = await gpu.embedder(address);
        const words = ["cat", "dog", "fog", "mat", "hello", "world"];
        const texts = Array.from({ length: 500 }, (_, i) =>
          [words[i % 6], words[(i * 7 + 1) % 6], "and", i].join(" "),
        );
        const heard = [];
        const vectors = embedder.embedMany(texts, {
          priority: "low",
          onProgress: (progress) => heard.push(progress),
        });
        const many = vectors.then();
        // While it is under way, and answered before its end.
        let isOver = false;
        many.then(() => (isOver = true));
        const query = await embedder.embed("the fog", { priority: "high" });
        const between = !isOver && query.length === 64;
        const all = await many;
        let same = all.length === 500;
        for (let i = 0; i < 500; i += 99) {
          const alone = await embedder.embed(texts[i]);
          same &&= alone.join() === all[i].join();
        }
        await gpu.dispose();
        return { same, heard, between };
      }, ADDRESS);
      assert.ok(same);
      assert.ok(between);
      assert.ok(heard.length > 1);
      assert.deepEqual(heard.at(-1).done, 500);
      assert.deepEqual(heard.at(-1).total, 500);
    },
    { may },
  ),
);

test("between slices the page has its turn, on the CPU too", () =>
  site.page(
    async (page) => {
      const turns = await page.evaluate(async (address) => {
        const gpu = await framebatch.open({ engine: "cpu" });
        const embedder = await gpu.embedder(address);
        const texts = Array.from(
          { length: 2000 },
          (_, i) => `the cat ran ${i}`,
        );
        // A task that asks for itself again: what a page does beside.
        let turn = 0;
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => {
          turn += 1;
          port2.postMessage(null);
        };
        port2.postMessage(null);
        const turns = [];
        await embedder.embedMany(texts, {
          priority: "low",
          onProgress: () => turns.push(turn),
        });
        port1.close();
        await gpu.dispose();
        return turns;
      }, ADDRESS);
      assert.ok(turns.length >= 4, `${turns.length} slices`);
      // Two slices are on their way at a time.
      const apart = new Set(turns).size;
      assert.ok(apart >= turns.length / 2, `${apart} turns: ${turns}`);
    },
    { may },
  ));
