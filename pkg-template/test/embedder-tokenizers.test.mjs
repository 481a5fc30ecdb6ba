// Folders whose tokenizer is not BERT's: the tokenizers' own file is loaded, fed the folder's
// tokenizer.json in slices, and splits texts from then on.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chunk, manual, module, tokenizersFile } from "./face.mjs";
import { folder, json, TOKENIZER } from "./folder.mjs";

await module("embeddings/index");

const vocab = ["a", "b", "c", "d", "e"].map((word) => [word, -1]);
const UNIGRAM = {
  normalizer: { type: "NFC" },
  pre_tokenizer: { type: "Metaspace" },
  model: { type: "Unigram", unk_id: 0, vocab },
};

const unigram = (change = {}) => ({
  "tokenizer.json": json({ ...UNIGRAM, ...change }),
});

test("the file of tokenizers is loaded where a folder needs it, once", async () => {
  const { gpu, core } = await manual();
  const { instances } = tokenizersFile;
  (await gpu.embedder(folder({}))).dispose();
  assert.equal(tokenizersFile.instances, instances);
  const { held } = tokenizersFile;
  const { freed } = chunk;
  const embedders = [
    await gpu.embedder(folder(unigram())),
    await gpu.embedder(folder(unigram())),
  ];
  assert.equal(tokenizersFile.instances, instances + 1);
  assert.equal(tokenizersFile.held, held + 2);
  const answer = embedders[0].embed("b c");
  gpu.flush();
  core.answer();
  assert.equal((await answer).length, embedders[0].info.dimensions);
  assert.deepEqual([...embedders[0].ids("b c")], [1, 2]);
  embedders.forEach((embedder) => embedder.dispose());
  assert.equal(tokenizersFile.held, held);
  // An encoder each, and what read its folder.
  assert.equal(chunk.freed, freed + 4);
  assert.equal(core.tensors.size, 0);
});

test("pairs are split by the file of tokenizers, too", async () => {
  const { gpu, core } = await manual();
  const { held } = tokenizersFile;
  const reranker = await gpu.reranker(folder(unigram()));
  const pairs = reranker.score([["b", "c d"]]);
  gpu.flush();
  core.answer();
  // A row is its number and 3/8 more, of a token as of a type; there are no tokens around texts.
  const [score] = await pairs;
  assert.equal(score, Math.fround((1 + 2 + 3 + 2) / 3 + 0.75));
  reranker.dispose();
  reranker.dispose();
  assert.equal(tokenizersFile.held, held);
});

test("templates other than BERT's are followed by the file of tokenizers", async () => {
  const { gpu } = await manual();
  const special = (id, type_id = 0) => ({ SpecialToken: { id, type_id } });
  const text = (id, type_id = 0) => ({ Sequence: { id, type_id } });
  const [cls, sep] = ["[CLS]", "[SEP]"].map((id) => special(id));
  const one = [cls, text("A"), sep];
  const cases = [
    // The template of one text, that of a pair, and whether the file is needed.
    [one, undefined, false],
    [one, [], false],
    [one, [...one, text("B", 1), special("[SEP]", 1)], false],
    [one, [...one, text("B"), sep], true],
    [one, [...one, sep, text("B", 1), special("[SEP]", 1)], true],
    [[cls, text("A", 1), sep], undefined, true],
    [[cls, text("A"), sep, sep], undefined, true],
    [[special("<s>"), text("A"), sep], undefined, true],
  ];
  for (const [single, pair, isNeeded] of cases) {
    const post_processor = { type: "TemplateProcessing", single, pair };
    const added_tokens = [{ content: "<s>", id: 7 }];
    const file = json({ ...TOKENIZER, post_processor, added_tokens });
    const { length } = tokenizersFile.finished;
    const embedder = await gpu.embedder(folder({ "tokenizer.json": file }));
    const about = JSON.stringify([single, pair]);
    assert.equal(tokenizersFile.finished.length > length, isNeeded, about);
    embedder.dispose();
  }
});

test("a text without tokens is refused at its place", async () => {
  const { gpu, core } = await manual();
  core.answersAtOnce = true;
  const embedder = await gpu.embedder(folder(unigram()));
  const none = {
    code: "invalid-input",
    message: /: the text has no tokens; leave it out$/,
  };
  await assert.rejects(embedder.embed(""), none);
  assert.throws(() => embedder.ids(""), none);
  await assert.rejects(embedder.embedMany(["", ""]).then(), {
    ...none,
    message: /text 0: the text has no tokens/,
  });
  const vectors = embedder.embedMany(["b", "", "c"])[Symbol.asyncIterator]();
  assert.equal((await vectors.next()).done, false);
  await assert.rejects(vectors.next(), /text 1: the text has no tokens/);
  embedder.dispose();
});

test("tokens are told with their places", async () => {
  const { gpu } = await manual();
  const embedder = await gpu.embedder(folder(unigram()));
  const { ids, offsets } = embedder.tokenize("a  cd b");
  assert.deepEqual([...ids], [0, 0, 1]);
  assert.deepEqual([...offsets], [0, 1, 3, 5, 6, 7]);
  assert.throws(
    () => embedder.tokenize(5),
    /^embedder|a text must be a string/,
  );
  assert.throws(() => embedder.tokenize("\ud800"), /toWellFormed/);
  embedder.dispose();
  assert.throws(() => embedder.tokenize("a"), { code: "disposed" });
});

test("the table's rows are told, beyond which added tokens are none", async () => {
  const { gpu } = await manual();
  (await gpu.embedder(folder(unigram()))).dispose();
  assert.equal(tokenizersFile.finished.at(-1).rows, 8);
  const added_tokens = [7, 8].map((id) => ({ content: `<${id}>`, id }));
  const bert = json({ ...TOKENIZER, added_tokens });
  (await gpu.embedder(folder({ "tokenizer.json": bert }))).dispose();
  const { added } = chunk.tokenizers.at(-1);
  assert.deepEqual(
    added.map(({ content }) => content),
    ["<7>"],
  );
});

test("where the file does not load no model does, and the next load asks again", async () => {
  const { gpu, core } = await manual();
  (await gpu.embedder(folder(unigram()))).dispose();
  tokenizersFile.failures.feed = new Error("unreachable");
  await assert.rejects(gpu.embedder(folder(unigram())), { code: "fatal" });
  tokenizersFile.loading = Promise.reject(new Error("blocked"));
  tokenizersFile.loading.catch(() => {});
  for (const load of ["embedder", "reranker"]) {
    await assert.rejects(gpu[load](folder(unigram())), {
      code: "unsupported",
      message: /: the WebAssembly file of tokenizers .*blocked/,
    });
  }
  tokenizersFile.loading = Promise.resolve();
  (await gpu.embedder(folder(unigram()))).dispose();
  assert.equal(core.tensors.size, 0);
});

test("a reranker whose tokenizer is not known is refused before anything is uploaded", async () => {
  const { gpu, core } = await manual();
  const { fills } = core.counts;
  const unknown = unigram({ normalizer: { type: "Nmt" } });
  await assert.rejects(gpu.reranker(folder(unknown)), { code: "unsupported" });
  assert.equal(core.counts.fills, fills);
});

test("large files are fed in slices, and BERT's with other parts once more", async () => {
  const { gpu } = await manual();
  const { length } = tokenizersFile.slices;
  const padding = " ".repeat(200_000);
  const file = JSON.stringify({ padding, ...UNIGRAM });
  const large = { "tokenizer.json": new TextEncoder().encode(file) };
  (await gpu.embedder(folder(large))).dispose();
  const slices = tokenizersFile.slices.slice(length);
  assert.equal(
    slices.reduce((sum, slice) => sum + slice),
    file.length,
  );
  assert.ok(slices.length > 3 && Math.max(...slices) <= 65_536);
  const other = json({ ...TOKENIZER, normalizer: { type: "NFC" } });
  const embedder = await gpu.embedder(folder({ "tokenizer.json": other }));
  assert.equal(tokenizersFile.finished.at(-1).json.normalizer.type, "NFC");
  embedder.dispose();
});

test("what the file refuses leaves ids, or nothing", async () => {
  const { gpu, core } = await manual();
  const { held } = tokenizersFile;
  const unknown = unigram({ normalizer: { type: "Nmt" } });
  const embedder = await gpu.embedder(folder(unknown));
  await assert.rejects(embedder.embed("a"), {
    code: "unsupported",
    message: /tokenizer.json: normalizer .*Nmt.*embedIds/,
  });
  assert.throws(() => embedder.tokenize("a"), { code: "unsupported" });
  embedder.dispose();
  tokenizersFile.failures.feed = { code: "invalid-input", message: "vocab" };
  await assert.rejects(gpu.embedder(folder(unigram())), {
    code: "invalid-input",
    message: "embedder: tokenizer.json: vocab",
  });
  const many = Object.fromEntries([["a", 500]]);
  const model = { type: "BPE", vocab: many, merges: [] };
  await assert.rejects(gpu.embedder(folder(unigram({ model }))), {
    code: "invalid-input",
    message: /has 501 tokens, but vocab_size/,
  });
  assert.equal(tokenizersFile.held, held);
  assert.equal(core.tensors.size, 0);
});

test("after a trap texts fail, and the next folder gets another instance", async () => {
  const { gpu } = await manual();
  const embedder = await gpu.embedder(folder(unigram()));
  const { instances } = tokenizersFile;
  tokenizersFile.failures.encode = new Error("unreachable");
  await assert.rejects(embedder.embed("a"), { code: "fatal" });
  assert.ok(tokenizersFile.abandoned.has(instances));
  await assert.rejects(embedder.embed("a"), { code: "fatal" });
  embedder.dispose();
  (await gpu.embedder(folder(unigram()))).dispose();
  assert.equal(tokenizersFile.instances, instances + 1);
});
