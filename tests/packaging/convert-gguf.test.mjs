// Converting from GGUF: the folder is what safetensors with the same numbers give.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { convert } from "../../pkg/bin/convert.mjs";
import "../../pkg/dist/embeddings.js";
import { open } from "../../pkg/dist/index.js";
import {
  architecture,
  encoded,
  ggufFile,
  safetensorsFile,
  tensorsOf,
} from "./gguf-writer.mjs";

const { models } = JSON.parse(readFileSync("tests/data/gguf.json", "utf8"));

const root = mkdtempSync(join(tmpdir(), "convert-gguf-"));
after(() => rmSync(root, { recursive: true }));

const configOf = (folder) =>
  JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));

/** The tensors of a folder as llama.cpp's converter has them, in formats of choice. */
function converted(folder, formatOf = () => "F32") {
  const { model_type, pad_token_id } = configOf(folder);
  const names = Object.entries(models[model_type].tensors);
  const ours = new Map(names.map(([name, ours]) => [ours, name]));
  return tensorsOf(join(folder, "model.safetensors")).flatMap((tensor) => {
    const name = tensor.name.replace(/^(bert|roberta|distilbert|model)\./, "");
    const [, number] = /\.(\d+)\./.exec(name) ?? [];
    const theirs = ours.get(name.replace(/\.\d+\./, ".N."));
    if (theirs === undefined) return [];
    let [{ shape, floats }, padding] = [tensor, pad_token_id + 1];
    if (theirs === "position_embd.weight" && /roberta/.test(model_type)) {
      floats = floats.slice(padding * shape[1]);
      shape = [shape[0] - padding, shape[1]];
    }
    const as = theirs.replace(".N.", `.${number}.`);
    return { name: as, shape, ...encoded(formatOf(as, shape), floats) };
  });
}

const fileOf = (folder, tensors) => {
  const { model_type } = configOf(folder);
  const metadata = [architecture(models[model_type].architecture)];
  return ggufFile({ metadata, tensors });
};

/** A folder with the same files and other weights. */
function folderWith(name, like, weights) {
  const folder = join(root, name);
  cpSync(like, folder, { recursive: true });
  rmSync(join(folder, "model.safetensors"));
  for (const [name, bytes] of Object.entries(weights)) {
    writeFileSync(join(folder, name), bytes);
  }
  return folder;
}

const quietly = (from, to, options) => {
  const said = [];
  return convert(from, to, { say: (line) => said.push(line), ...options }).then(
    (found) => ({ ...found, said }),
  );
};

const referencesOf = (folder) =>
  JSON.parse(readFileSync(join(folder, "framebatch.json"))).references;

async function withGpu(use) {
  const gpu = await open({ engine: "cpu", flush: "eager" });
  try {
    return await use(gpu);
  } finally {
    await gpu.dispose();
  }
}

const vectorOf = (folder, ids) =>
  withGpu(async (gpu) => [
    ...(await (await gpu.embedder(folder)).embedIds(ids)),
  ]);

const cosine = (a, b) => {
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
};

/** A model that is wide enough for blocks of 256, with random weights. */
function wideModel() {
  const folder = join(root, "wide");
  cpSync("tests/data/tiny-model", folder, { recursive: true });
  const sizes = {
    hidden_size: 256,
    intermediate_size: 256,
    num_hidden_layers: 1,
  };
  const config = { ...configOf(folder), ...sizes, num_attention_heads: 4 };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  const pooling = join(folder, "1_Pooling/config.json");
  const { word_embedding_dimension: _, ...rest } = JSON.parse(
    readFileSync(pooling),
  );
  writeFileSync(
    pooling,
    JSON.stringify({ word_embedding_dimension: 256, ...rest }),
  );
  let seed = 3;
  const random = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32 - 0.5;
  };
  const weights = tensorsOf("tests/data/tiny-model/model.safetensors");
  const tensors = weights
    .filter(({ name }) => !/layer\.1\./.test(name))
    .map(({ name, shape: [rows, columns] }) => {
      const wide = rows === 64 || rows === 96 ? 256 : rows;
      const shape = columns === undefined ? [wide] : [wide, 256];
      const count = shape.reduce((a, b) => a * b, 1);
      const isNorm = /LayerNorm\.weight/.test(name);
      const floats = Float32Array.from(
        { length: count },
        () => isNorm + random() / 5,
      );
      return { name, shape, floats };
    });
  writeFileSync(join(folder, "model.safetensors"), safetensorsFile(tensors));
  return folder;
}

test("32-bit floats of GGUF give the vectors of safetensors, bit for bit", async () => {
  for (const name of [
    ...["bert-dense", "roberta", "distilbert", "nomic-bert", "jina-v3"],
    "modernbert",
  ]) {
    const like = `tests/data/models/${name}`;
    const weights = fileOf(like, converted(like));
    const from = folderWith(name, like, { "any-name.gguf": weights });
    const [ours, theirs] = [join(root, `${name}-a`), join(root, `${name}-b`)];
    const { said, bytes, fidelity } = await quietly(from, theirs);
    assert.equal(bytes[0], weights.length);
    assert.ok(fidelity > 0.999, `${name}: ${fidelity}`);
    assert.match(said[0], /MB of weights instead of/);
    await quietly(like, ours);
    assert.deepEqual(referencesOf(theirs), referencesOf(ours), name);
    const [{ ids }] = referencesOf(ours);
    const vectors = [ours, theirs].map((folder) => vectorOf(folder, ids));
    assert.deepEqual(await vectors[0], await vectors[1], name);
    assert.ok(!existsSync(join(theirs, "any-name.gguf")));
  }
});

test("rerankers are converted where llama.cpp keeps their heads", async () => {
  for (const name of ["reranker-xlm-roberta", "reranker-modernbert"]) {
    const like = `tests/data/models/${name}`;
    const from = folderWith(name, like, {
      "a.gguf": fileOf(like, converted(like)),
    });
    const folders = [join(root, `${name}-a`), join(root, `${name}-b`)];
    await quietly(like, folders[0]);
    await quietly(from, folders[1]);
    const scores = folders.map((folder) =>
      withGpu(async (gpu) => {
        const reranker = await gpu.reranker(folder);
        return [...(await reranker.score([["w1 w2", "w3 w4 w5"]]))];
      }),
    );
    assert.deepEqual(await scores[0], await scores[1], name);
  }
  const like = "tests/data/models/reranker-bert";
  const weights = fileOf(like, converted(like));
  const from = folderWith("reranker-bert", like, { "a.gguf": weights });
  const to = join(root, "reranker-bert-b");
  await assert.rejects(quietly(from, to), /pooler\.dense\.weight/);
  assert.ok(!existsSync(to));
});

test("blocks keep the model, and are compared with the numbers that they stand for", async () => {
  const like = wideModel();
  const all = join(root, "wide-f32");
  await quietly(like, all);
  const exact = referencesOf(all);
  const { tensors: names } = models.bert;
  for (const [format, least] of [
    ["F16", 0.99999],
    ["BF16", 0.9999],
    ["Q8_0", 0.9999],
    ["Q6_K", 0.999],
    ["Q4_K", 0.98],
    ["Q4_0", 0.97],
  ]) {
    // Vectors, and tables that llama.cpp keeps, are 32-bit floats.
    const formatOf = (name, shape) =>
      shape.length === 2 && !/^(position|token_types)/.test(name)
        ? format
        : "F32";
    const tensors = converted(like, formatOf);
    const weights = { "a.gguf": fileOf(like, tensors) };
    const from = folderWith(`wide-${format}`, like, weights);
    const to = join(root, `wide-${format}-b`);
    const { fidelity } = await quietly(from, to);
    assert.ok(fidelity > 0.999, `${format}: ${fidelity}`);
    const references = referencesOf(to);
    references.forEach(({ vector }, i) => {
      const found = cosine(vector, exact[i].vector);
      assert.ok(found > least, `${format}: ${found}`);
    });
    // The vectors to compare with are those of the file's own numbers.
    const stood = tensors.map(({ name, shape, numbers }) => {
      const [, number] = /^blk\.(\d+)/.exec(name) ?? [];
      const ours = names[name.replace(/^blk\.\d+/, "blk.N")];
      return {
        name: ours.replace(".N.", `.${number}.`),
        shape,
        floats: numbers,
      };
    });
    const plain = { "model.safetensors": safetensorsFile(stood) };
    const widened = join(root, `wide-${format}-c`);
    await quietly(folderWith(`wide-${format}-a`, like, plain), widened);
    assert.deepEqual(references, referencesOf(widened), format);
    if (format !== "Q8_0" && format !== "Q4_0") continue;
    // Their whole numbers and scales are those of the file.
    const written = tensorsOf(join(to, "model.safetensors"));
    const matrices = stood.filter((_, i) => tensors[i].type !== 0);
    for (const { name, floats } of matrices) {
      const { bytes } = written.find((tensor) => tensor.name === name);
      const view = new DataView(bytes.buffer);
      floats.forEach((x, i) => {
        const [block, half] = [Math.floor(i / 64) * 68, (i >> 5) & 1];
        const bits = view.getUint16(block + 64 + 2 * half, true);
        const scale = (1024 + (bits & 1023)) * 2 ** ((bits >> 10) - 32);
        assert.equal(view.getInt8(block + (i % 64)) * scale + 0, x + 0, name);
      });
    }
  }
});

test("a GGUF file is found in the folder, or named", () => {
  const run = (...words) => {
    const command = ["pkg/bin/framebatch.mjs", "convert", ...words];
    return spawnSync("node", command, { encoding: "utf8" });
  };
  const like = "tests/data/tiny-model";
  const weights = fileOf(like, [
    ...converted(like),
    {
      name: "output.weight",
      shape: [1, 32],
      ...encoded("Q8_0", Array(32).fill(1)),
    },
  ]);
  const from = folderWith("named", like, {
    "a.gguf": weights,
    "b.GGUF": weights,
  });
  const to = join(root, "named-out");
  const several = run(from, to);
  assert.equal(several.status, 1);
  assert.match(
    several.stderr,
    /has several GGUF files: a\.gguf, b\.GGUF; name one with --gguf/,
  );
  const named = run(from, to, "--gguf", join(from, "b.GGUF"));
  assert.equal(named.status, 0, named.stderr);
  assert.match(named.stdout, /^\S+: 0\.1 MB of weights instead of 0\.3$/m);
  assert.match(
    named.stdout,
    /^left out, because nothing reads them: output\.weight$/m,
  );
  assert.match(
    named.stdout,
    /^the least cosine with the vectors of \S+: 0\.9999\d\d$/m,
  );
  // Weights elsewhere, for a folder with safetensors of its own.
  const elsewhere = join(root, "elsewhere.gguf");
  renameSync(join(from, "b.GGUF"), elsewhere);
  const [outside, inside] = [join(root, "outside"), join(root, "inside")];
  assert.equal(run("--gguf", elsewhere, like, outside).status, 0);
  assert.equal(run(from, inside).status, 0);
  for (const folder of [outside, inside]) {
    assert.deepEqual(referencesOf(folder), referencesOf(to));
  }
  for (const [words, status, said] of [
    [[from, join(root, "x"), "--gguf"], 2, /--gguf names a file/],
    [[from, join(root, "x"), "--gguf", "none.gguf"], 1, /none\.gguf/],
    [
      ["tests/data/models/mpnet", join(root, "x"), "--gguf", elsewhere],
      1,
      /model_type is 'mpnet'; of GGUF only bert/,
    ],
    [
      ["tests/data/models/modernbert", join(root, "x"), "--gguf", elsewhere],
      1,
      /general\.architecture is 'bert', but config\.json is of 'modern-bert'/,
    ],
  ]) {
    const found = run(...words);
    assert.equal(found.status, status, words.join(" "));
    assert.match(found.stderr, said, words.join(" "));
    assert.ok(!existsSync(join(root, "x")));
  }
});

test("nothing is left of a conversion that failed, whatever bytes are wrong", async () => {
  const like = "tests/data/tiny-model";
  const tensors = converted(like, (name, shape) =>
    shape.length === 2 && !/^(position|token_types)/.test(name)
      ? "Q8_0"
      : "F32",
  );
  const lacking = tensors.filter(({ name }) => name !== "blk.1.ffn_up.bias");
  const whole = fileOf(like, tensors);
  const from = folderWith("broken", like, {});
  const [file, to] = [join(from, "a.gguf"), join(root, "broken-out")];
  const refused = async (bytes, message) => {
    writeFileSync(file, bytes);
    await assert.rejects(quietly(from, to), message);
    assert.ok(!existsSync(to));
  };
  await refused(
    fileOf(like, lacking),
    /encoder\.layer\.1\.intermediate\.dense\.bias/,
  );
  const wide = tensors.map((tensor) =>
    tensor.name === "blk.0.attn_q.weight"
      ? { ...tensor, shape: [32, 128] }
      : tensor,
  );
  await refused(
    fileOf(like, wide),
    /encoder\.layer\.0\.attention\.self\.query\.weight/,
  );
  // The largest bytes of a 32-bit float and of a scale: NaN, or more than int8 holds.
  for (const [name, message] of [
    [
      "token_embd.weight",
      /tensor 'embeddings\.word_embeddings\.weight': int8 holds/,
    ],
    ["token_embd_norm.weight", /weights give vectors that are no numbers/],
  ]) {
    const endless = tensors.map((tensor) => {
      const bytes = Buffer.alloc(tensor.bytes.length, 0x7f);
      return tensor.name === name
        ? { ...tensor, bytes: bytes.fill(0xff, 2) }
        : tensor;
    });
    await refused(fileOf(like, endless), message);
  }
  let seed = 11;
  const below = (count) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * count);
  };
  const seen = { written: 0, refused: 0 };
  for (let round = 0; round < 24; round += 1) {
    const bytes = Buffer.from(whole);
    const at = below(round % 2 === 0 ? 4000 : bytes.length);
    bytes[at] ^= 1 << below(8);
    writeFileSync(file, bytes);
    try {
      await quietly(from, to);
      assert.ok(existsSync(join(to, "framebatch.json")));
      rmSync(to, { recursive: true });
      seen.written += 1;
    } catch (error) {
      assert.match(
        error.constructor.name,
        /^(Error|FramebatchError)$/,
        error.stack,
      );
      assert.ok(!existsSync(to), error.message);
      seen.refused += 1;
    }
  }
  assert.ok(seen.written > 4 && seen.refused > 4, JSON.stringify(seen));
});
