// A real model in a real page: texts of `tests/data/minilm-reference.jsonl`, whose tokens
// and float64 vectors another implementation computed. All 35 of them on the CPU; on
// a GPU, which is one in software here, a few, since `tests/embed` has all of them there.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { heavyTest, lightTest, openSite, times } from "./site.mjs";

const site = openSite();
const FOLDER = "models/minilm";

const REFERENCE = readFileSync("tests/data/minilm-reference.jsonl", "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));

/** Short ones, and one of 70 tokens: a GPU in software takes about a second for each 10. */
const FEW = [0, 1, 2, 3, 32];

/** Engine and dtype; the largest difference, or the least cosine. */
const CASES = [
  ["gpu", "f32", { off: 2e-6 }],
  ...times([], [["gpu", "f16", { like: 0.99999 }]]),
  ["gpu", "int8", { like: 0.999 }],
  ["cpu", "f32", { off: 2e-6 }],
  ...times([], [["cpu", "f16", { like: 0.99999 }]]),
  ["cpu", "int8", { like: 0.999 }],
];

/**
 * In the page: loads the model. What the self-test compiles besides would hide how few kernels the
 * model needs; on the CPU it is there.
 */
async function load(engine, dtype) {
  const verify = engine === "cpu";
  // A device in software may take longer over a long text than one in hardware may be silent.
  window.gpu = await framebatch.open({ engine, stallMs: 120_000 });
  window.embedder = await gpu.embedder("/minilm/", { dtype, verify });
}

/** In the page: some texts at once, as text or as tokens. */
async function embed(texts) {
  const vectors = await Promise.all(
    texts.map((text) =>
      typeof text === "string" ? embedder.embed(text) : embedder.embedIds(text),
    ),
  );
  return vectors.map((vector) => [...vector]);
}

for (const [engine, dtype, { off = Infinity, like = 0.999 }] of CASES) {
  const add = engine === "gpu" ? heavyTest : lightTest;
  add(`MiniLM is what it is elsewhere: ${engine}, ${dtype}`, () => {
    assert.ok(existsSync(FOLDER), `${FOLDER} is missing; make model`);
    return site.page(
      async (page) => {
        await page.evaluate(load, engine, dtype);
        const asked =
          engine === "gpu" ? FEW.map((at) => REFERENCE[at]) : REFERENCE;
        const texts = asked.map(({ text }) => text);
        const vectors = await page.evaluate(embed, texts);
        if (engine === "cpu" && dtype === "f32") {
          // Equal tokens give equal bits: the tokenizer finds the tokens of the reference.
          const tokens = asked.map(({ ids }) => ids);
          assert.deepEqual(await page.evaluate(embed, tokens), vectors);
        }
        // No other device took over from a lost one.
        const { engine: used } = await page.evaluate(() => embedder.info);
        assert.equal(used, engine);
        // All layers share their kernels, of which those of four products have two sizes.
        const { compiled } = await page.evaluate(() => gpu.stats().pipelines);
        assert.ok(compiled <= 7 + 4 + 3, `${compiled} kernels`);
        await page.evaluate(() => gpu.dispose());
        const worst = { off: 0, like: 1 };
        vectors.forEach((vector, i) => {
          const { embedding } = asked[i];
          assert.equal(vector.length, embedding.length);
          vector.forEach((x, k) => {
            worst.off = Math.max(worst.off, Math.abs(x - embedding[k]));
          });
          worst.like = Math.min(worst.like, cosine(vector, embedding));
        });
        console.log(`${engine} ${dtype}:`, worst);
        assert.ok(worst.off <= off, `off by ${worst.off}`);
        assert.ok(worst.like >= like, `cosine ${worst.like}`);
      },
      { may: /404/ },
    );
  });
}

function cosine(a, b) {
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
