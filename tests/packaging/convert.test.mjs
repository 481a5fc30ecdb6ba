// The command of the package: what it writes, and what it says of what it cannot do.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import "../../pkg/dist/embeddings.js";
import { open } from "../../pkg/dist/index.js";
import { openSafetensors } from "../../pkg/bin/safetensors.mjs";
import { convertWeights } from "../../pkg/bin/weights.mjs";
import * as int4 from "../../pkg/bin/int4.mjs";
import * as int8 from "../../pkg/bin/int8.mjs";

const root = mkdtempSync(join(tmpdir(), "convert-"));
after(() => rmSync(root, { recursive: true }));

const run = (...words) => {
  const command = ["pkg/bin/framebatch.mjs", ...words];
  const { status, stdout, stderr } = spawnSync("node", command, {
    encoding: "utf8",
  });
  return { status, stdout, stderr };
};

test("a converted folder is the one that is kept, byte for byte", () => {
  const out = join(root, "tiny");
  const { status, stdout, stderr } = run(
    "convert",
    "tests/data/tiny-model",
    out,
  );
  assert.equal(status, 0, stderr);
  assert.match(stdout, /0\.1 MB of weights instead of 0\.3/);
  assert.match(stdout, /least cosine with the vectors of \S+: 0\.9999\d\d/);
  const kept = "tests/data/tiny-model-int8";
  for (const name of ["model.safetensors", "config.json", "vocab.txt"]) {
    const [found, expected] = [out, kept].map((at) =>
      readFileSync(join(at, name)),
    );
    assert.ok(found.equals(expected), name);
  }
  const [found, expected] = [out, kept].map((at) =>
    JSON.parse(readFileSync(join(at, "framebatch.json"))),
  );
  assert.equal(found.storage, "int8");
  assert.equal(found.references.length, 4);
  found.references.forEach(({ ids, vector }, i) => {
    assert.deepEqual(ids, expected.references[i].ids);
    vector.forEach((x, k) => {
      const off = Math.abs(x - expected.references[i].vector[k]);
      assert.ok(off < 1e-5, `text ${i}, element ${k}`);
    });
  });
});

/** Which layers int4 leaves in 8 bits is found by trying, which has its time in `make long`. */
const MINILM = [
  ["int8", 25, 0.999],
  ...(process.env.LONG === "1" ? [["int4", 16, 0.99]] : []),
];

for (const [dtype, most, least] of MINILM) {
  test(`MiniLM takes at most ${most} MB as ${dtype}, and is as near as ${least}`, () => {
    const out = join(root, `minilm-${dtype}`);
    const { status, stdout, stderr } = run(
      ...["convert", "models/minilm", out, "--dtype", dtype],
    );
    assert.equal(status, 0, stderr);
    const [, size] = /: ([\d.]+) MB of weights/.exec(stdout);
    const [, cosine] = /: (0\.\d+)$/m.exec(stdout);
    assert.ok(Number(size) <= most, `${size} MB`);
    assert.ok(Number(cosine) >= least, cosine);
  });
}

test("a folder of int4 may have blocks of int8 beside, and loads as one", async () => {
  const out = join(root, "tiny-int4");
  const words = ["convert", "tests/data/tiny-model", out, "--dtype", "int4"];
  const { status, stdout, stderr } = run(...words);
  assert.equal(status, 0, stderr);
  assert.match(
    stdout,
    /MB of weights instead of 0\.3 \(\d of \d layers as int8\)/,
  );
  const { storage } = JSON.parse(readFileSync(join(out, "framebatch.json")));
  assert.equal(storage, "int4");
  const [written, kept] = [out, "tests/data/tiny-model-int4"].map((at) =>
    readFileSync(join(at, "model.safetensors")),
  );
  assert.ok(written.equals(kept), "the folder is the one that is kept");
  const header = readFileSync(join(out, "model.safetensors")).subarray(8);
  for (const bytes of [int4.BLOCK_BYTES, int8.BLOCK_BYTES]) {
    const shape = new RegExp(`"dtype":"U8","shape":\\[\\d+,${bytes}\\]`);
    assert.match(header.toString("latin1"), shape);
  }
  const gpu = await open({ engine: "cpu", flush: "eager" });
  for (const options of [{}, { dtype: "auto" }, { dtype: "int4" }]) {
    const { info } = await gpu.embedder(out, options);
    assert.equal(info.dtype, "mixed");
    assert.ok(info.fidelity >= 0.99 && info.fidelity < 1, info.fidelity);
  }
  for (const dtype of ["f32", "int8"]) {
    await assert.rejects(gpu.embedder(out, { dtype }), {
      code: "unsupported",
      message: new RegExp(`is stored as int4, which cannot be had as ${dtype}`),
    });
  }
  await gpu.dispose();
});

test("parts of one matrix in blocks of two kinds are refused", async () => {
  const out = join(root, "tiny-parts");
  const folder = "tests/data/tiny-model";
  cpSync(folder, out, { recursive: true });
  const source = await openSafetensors(join(folder, "model.safetensors"));
  await convertWeights(source, join(out, "model.safetensors"), ({ name }) =>
    /query/.test(name) ? "int8" : "int4",
  );
  await source.close();
  const gpu = await open({ engine: "cpu", flush: "eager" });
  await assert.rejects(gpu.embedder(out), {
    code: "invalid-input",
    message:
      /is stored in another way than .*query.*; convert the folder again/,
  });
  await gpu.dispose();
});

test("a reranker and families with tables of odd sizes are converted, too", async () => {
  for (const name of ["reranker-bert", "mpnet", "modernbert", "bert-dense"]) {
    const out = join(root, name);
    const { status, stderr } = run("convert", `tests/data/models/${name}`, out);
    assert.equal(status, 0, `${name}: ${stderr}`);
  }
  const four = run(
    ...["convert", "tests/data/models/reranker-bert", join(root, "four")],
    ...["--dtype", "int4"],
  );
  assert.equal(four.status, 1);
  assert.match(four.stderr, /is a reranker, .*convert it with --dtype int8/);
  // A reranker has no vectors that converting could compare.
  const oracle = "tests/data/models/reranker-bert/oracle.json";
  const { pairs } = JSON.parse(readFileSync(oracle, "utf8"));
  const gpu = await open({ engine: "cpu", flush: "eager" });
  const reranker = await gpu.reranker(join(root, "reranker-bert"));
  const asked = pairs.map(({ query, document }) => [query, document]);
  const scores = await reranker.score(asked);
  scores.forEach((score, i) =>
    assert.ok(Math.abs(score - pairs[i].score) < 0.05, `pair ${i}: ${score}`),
  );
  await gpu.dispose();
});

/** The numbers of blocks: what is in a place, by the definition of the format. */
const NUMBERS = {
  int8: (view, at, place) => view.getInt8(at + place),
  int4: (view, at, place) =>
    ((view.getUint8(at + (place >> 1)) >> (4 * (place & 1))) & 15) - 8,
};

for (const [dtype, { BLOCK_BYTES, pack }] of [
  ["int8", int8],
  ["int4", int4],
]) {
  test(`numbers are packed as the library packs them, as ${dtype}`, () =>
    holdPacking(dtype, BLOCK_BYTES, pack));
}

async function holdPacking(dtype, BLOCK_BYTES, pack) {
  const { BLOCK } = int8;
  const [largest, refused] = { int8: [65_008, 65_009], int4: [4_094, 4_095] }[
    dtype
  ];
  let seed = 1;
  const random = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32 - 0.5;
  };
  const scales = [1, 1e-3, 1e-6, 1e-9, 1e-30, largest / 1.1, 2 ** -14, 0];
  const floats = Float32Array.from(
    { length: 64 * BLOCK },
    (_, i) => 2 * random() * scales[Math.floor(i / 32) % scales.length],
  );
  // Ties, and the ends of what is held.
  floats.set([127, 0.5, 1.5, 2.5, -0.5, -1.5, 126.5, -127], 0);
  floats.set([7, -8, 3.5, -4.5, 0.5, -1.5], 64);
  floats.set([largest, -largest], 32);
  const gpu = await open({ engine: "cpu", flush: "eager" });
  const kept = await gpu.tensor(floats, [floats.length], { dtype }).read();
  await gpu.dispose();
  const view = new DataView(pack(floats).buffer);
  kept.forEach((expected, i) => {
    const at = Math.floor(i / BLOCK) * BLOCK_BYTES;
    const place = i % BLOCK;
    const scales = at + BLOCK_BYTES - 4;
    const bits = view.getUint16(scales + 2 * (place >> 5), true);
    const magnitude = (1024 + (bits & 1023)) * 2 ** (((bits >> 10) & 31) - 32);
    const scale = bits & 0x8000 ? -magnitude : magnitude;
    const found = Math.fround(NUMBERS[dtype](view, at, place) * scale);
    assert.ok(
      found === expected,
      `${floats[i]} at ${i}: ${found}, ${expected}`,
    );
  });
  for (const wrong of [NaN, Infinity, refused]) {
    const some = new Float32Array(BLOCK).fill(wrong);
    const said = { message: new RegExp(`^${dtype} holds magnitudes below`) };
    assert.throws(() => pack(some), said);
  }
}

test("references are compared, and refused by field", async () => {
  const home = "tests/data/tiny-model-int8";
  const names = readdirSync(home, { recursive: true });
  const files = names
    .map((name) => [name.replaceAll("\\", "/"), join(home, name)])
    .filter(([, path]) => statSync(path).isFile())
    .map(([name, path]) => [name, readFileSync(path)]);
  const gpu = await open({ engine: "cpu", flush: "eager" });
  const load = (change, options) => {
    const folder = new Map(files);
    const references = JSON.parse(folder.get("framebatch.json"));
    const changed = change(references) ?? references;
    folder.set("framebatch.json", Buffer.from(JSON.stringify(changed)));
    return gpu.embedder(folder, options);
  };
  const { info } = await load(() => {});
  assert.equal(info.dtype, "int8");
  assert.ok(info.fidelity > 0.999 && info.fidelity < 1, info.fidelity);
  const other = ({ references }) => void (references[0].vector[0] = 5);
  const untested = await load(other, { verify: false });
  assert.equal(untested.info.fidelity, undefined);
  const cut = await load(other, { dimensions: 16 });
  assert.equal(cut.info.fidelity, undefined);
  const cases = [
    [other, "unsupported", /as int8 the model gives other vectors/],
    [() => [], "invalid-input", /framebatch.json must be an object/],
    [() => ({ references: 3 }), "invalid-input", /references must be a list/],
    [
      ({ references }) => void (references[1].ids = []),
      "invalid-input",
      /references\[1\]: ids must be 1 to 40 tokens below 128/,
    ],
    [
      ({ references }) => void (references[0].vector = [1]),
      "invalid-input",
      /references\[0\]: vector must have 64 numbers/,
    ],
  ];
  for (const [change, code, message] of cases) {
    await assert.rejects(load(change), (error) => {
      assert.equal(error.code, code, error.message);
      assert.match(error.message, message);
      return true;
    });
  }
  const dtype = "f16";
  await assert.rejects(
    load(() => {}, { dtype }),
    {
      code: "unsupported",
      message: /is stored as int8, which cannot be had as f16/,
    },
  );
  await gpu.dispose();
});

test("in Node a folder is named by its path, or by a file: URL", async () => {
  const gpu = await open({ engine: "cpu", flush: "eager" });
  const home = "tests/data/tiny-model-int8";
  const places = [
    home,
    `./${home}/`,
    pathToFileURL(home),
    `${pathToFileURL(home)}/`,
  ];
  for (const place of places) {
    const embedder = await gpu.embedder(place);
    assert.equal(embedder.info.dimensions, 64, String(place));
  }
  for (const place of ["tests/none", "tests/data"]) {
    await assert.rejects(gpu.embedder(place), {
      code: "invalid-input",
      message: new RegExp(`config.json is missing.*looked for it in ${place}$`),
    });
  }
  await gpu.dispose();
});

test("a file in the place of the folder stays as it is", () => {
  const file = join(root, "notes.txt");
  writeFileSync(file, "mine");
  const { status } = run("convert", "tests/data/tiny-model", file);
  assert.equal(status, 1);
  assert.equal(readFileSync(file, "utf8"), "mine");
});

test("weights that are cut short are not converted", () => {
  const short = join(root, "short");
  cpSync("tests/data/models/reranker-bert", short, { recursive: true });
  const weights = join(short, "model.safetensors");
  writeFileSync(weights, readFileSync(weights).subarray(0, -8));
  const { status, stderr } = run("convert", short, join(root, "z"));
  assert.equal(status, 1);
  assert.match(stderr, /has another length than its header says/);
  assert.equal(statSync(join(root, "z"), { throwIfNoEntry: false }), undefined);
});

test("what cannot be done is said, with a status", () => {
  const folder = join(root, "broken");
  cpSync("tests/data/tiny-model", folder, { recursive: true });
  writeFileSync(join(folder, "model.safetensors"), "short");
  for (const [words, status, said] of [
    [["--help"], 0, /^$/],
    [[], 0, /^$/],
    [["grow"], 2, /there is no command 'grow'/],
    [["convert", "a"], 2, /convert takes two folders/],
    [
      ["convert", "a", "b", "--dtype", "q2"],
      2,
      /--dtype must be int8 or int4, got 'q2'/,
    ],
    [["convert", "a", "b", "--fast"], 2, /there is no option --fast/],
    [["convert", "tests/none", join(root, "x")], 1, /tests\/none/],
    [
      ["convert", "tests/data/tiny-model-int8", join(root, "x")],
      1,
      /was converted already/,
    ],
    [["convert", "tests/data", join(root, "x")], 1, /has no model.safetensors/],
    [
      ["convert", "tests/data/tiny-model", "tests"],
      1,
      /tests is there already/,
    ],
    [["convert", folder, join(root, "y")], 1, /is no safetensors file/],
  ]) {
    const found = run(...words);
    assert.equal(found.status, status, words.join(" "));
    assert.match(found.stderr, said, words.join(" "));
  }
});
