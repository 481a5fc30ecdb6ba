// Tokenizers beyond WordPiece in a real page: the ids and offsets of Hugging Face's tokenizers,
// from a WebAssembly file that is fetched only then.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { lightTest as test, openSite } from "./site.mjs";

const site = openSite();
const ROWS = JSON.parse(
  readFileSync(new URL("../data/tokenizers.json", import.meta.url), "utf8"),
);
/** What browsers write of files that a folder need not have. */
const may = /404/;

/** In the page: what the model's folder with this tokenizer makes of texts. */
async function split(tokenizer, texts) {
  const address = "/data/tiny-model/";
  const files = ["config.json", "model.safetensors", "modules.json"];
  files.push("1_Pooling/config.json", "sentence_bert_config.json");
  const folder = {};
  for (const name of files) {
    const response = await fetch(address + name);
    if (response.ok) folder[name] = await response.arrayBuffer();
  }
  if (tokenizer === undefined) {
    const response = await fetch(`${address}vocab.txt`);
    folder["vocab.txt"] = await response.arrayBuffer();
  } else {
    const { buffer } = new TextEncoder().encode(JSON.stringify(tokenizer));
    folder["tokenizer.json"] = buffer;
  }
  const gpu = await framebatch.open({ engine: "cpu", flush: "manual" });
  const embedder = await gpu.embedder(folder);
  const found = texts.map((text) => {
    const { ids, offsets } = embedder.tokenize(text);
    const same = String([...embedder.ids(text)]) === String([...ids]);
    return { text, ids: [...ids], offsets: [...offsets], same };
  });
  const vectors = texts.map((text) => embedder.embed(text));
  gpu.flush();
  const lengths = (await Promise.all(vectors)).map(({ length }) => length);
  await gpu.dispose();
  const loaded = performance
    .getEntriesByType("resource")
    .some(({ name }) => name.endsWith("tokenizers_bg.wasm"));
  return { found, lengths, loaded };
}

for (const { name, file, texts } of ROWS) {
  test(`a folder's ${name} splits texts as Hugging Face's tokenizers do`, () =>
    site.page(
      async (page) => {
        const given = texts.map(({ text }) => text);
        const { found, lengths, loaded } = await page.evaluate(
          split,
          file,
          given,
        );
        for (const [i, { ids, offsets, same }] of found.entries()) {
          assert.deepEqual(ids, texts[i].ids, given[i]);
          assert.deepEqual(offsets, texts[i].offsets, given[i]);
          assert.ok(same, given[i]);
        }
        assert.deepEqual(new Set(lengths), new Set([64]));
        assert.ok(loaded);
      },
      { may },
    ));
}

test("WordPiece needs no other file, and tells its tokens with their places", () =>
  site.page(
    async (page) => {
      const text = "the ☃ 😀 Cat";
      const { found, loaded } = await page.evaluate(split, undefined, [text]);
      const [{ ids, offsets, same }] = found;
      assert.ok(same);
      const words = ids.map((_, i) =>
        text.slice(offsets[2 * i], offsets[2 * i + 1]),
      );
      assert.deepEqual(words, ["", "the", "☃", "😀", "Cat", ""]);
      assert.equal(loaded, false);
    },
    { may },
  ));
