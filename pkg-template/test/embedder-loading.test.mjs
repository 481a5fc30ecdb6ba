// How a model gets from its folder to the device, and when it does not.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import {
  chunk,
  compiling,
  fake,
  manual,
  module,
  settled,
  stateOf,
} from "./face.mjs";
import {
  folder,
  json,
  safetensors,
  TENSORS,
  TOKENIZER,
  WORDS,
} from "./folder.mjs";
import { heap } from "./heap.mjs";

await module("embeddings/index");

const floats = (words) =>
  Array.from(new Float32Array(words.buffer, words.byteOffset, words.length));
const halves = (words) =>
  Array.from(new Uint16Array(words.buffer, words.byteOffset, words.length * 2));

test("a model is taken to the device, parts of one product as one tensor", async () => {
  const { gpu, core } = await manual();
  const heard = [];
  const files = folder();
  const embedder = await gpu.embedder(files, {
    onProgress: (progress) => heard.push(progress),
  });
  const [fused, bias, words] = [...core.tensors.values()].map(floats);
  assert.deepEqual([fused.length, bias.length, words.length], [48, 4, 32]);
  // Queries, keys and values, whatever their order in the file.
  assert.deepEqual([fused[0], fused[16], fused[32]], [2000, 1000, 3000]);
  assert.deepEqual(words.slice(4, 8), [1, 1.25, 1.5, 1.75]);
  assert.deepEqual(bias, [100, 100, 100, 100]);
  const { length: total } = files["model.safetensors"];
  assert.deepEqual(heard.at(-1), { loaded: total, total });
  assert.deepEqual(chunk.tasks.at(-1), { isReranker: false, dimensions: 0 });
  assert.deepEqual(embedder.info, {
    ...{ dimensions: 4, layers: 1, heads: 2, vocabulary: 8, maxTokens: 6 },
    ...{ pooling: "mean", normalized: true, dtype: "f32", engine: "cpu" },
    arithmetic: "f32",
    fidelity: 1,
    prompts: [],
  });
});

test("folders say how texts are split", async () => {
  const { gpu } = await manual();
  const tokenizer = (change) => ({
    "tokenizer.json": json({ ...TOKENIZER, ...change }),
  });
  const words = {
    "tokenizer.json": undefined,
    "vocab.txt": new TextEncoder().encode(`${WORDS.join("\r\n")}\r\n`),
  };
  const bert = (change) =>
    tokenizer({ normalizer: { type: "BertNormalizer", ...change } });
  const names = "##\n[UNK]\n[CLS]\n[SEP]";
  const usual = `${names}\n[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]`;
  const token = { content: "[X]", id: 7, lstrip: true, normalized: true };
  const cases = [
    [{}, { names, flags: 25, added: [] }],
    [bert({ lowercase: false }), { names, flags: 24 }],
    [bert({ strip_accents: false, clean_text: false }), { flags: 13 }],
    [bert({ strip_accents: true, handle_chinese_chars: false }), { flags: 19 }],
    [
      tokenizer({ added_tokens: [token] }),
      { added: [{ content: "[X]", id: 7, flags: 5 }] },
    ],
    [
      tokenizer({
        post_processor: {
          type: "BertProcessing",
          ...{ sep: ["d", 7], cls: ["c", 6] },
        },
      }),
      { names: "##\n[UNK]\nc\nd" },
    ],
    [words, { words: WORDS.join("\n"), names: usual, flags: 25 }],
    [
      {
        ...words,
        "tokenizer_config.json": json({
          ...{ do_lower_case: false, strip_accents: true },
          ...{ tokenize_chinese_chars: false, cls_token: "a" },
        }),
      },
      { names: usual.replaceAll("[CLS]", "a"), flags: 18 },
    ],
    [
      {
        ...words,
        "tokenizer_config.json": json({
          ...{ unk_token: { content: "b", lstrip: false }, mask_token: "b" },
        }),
      },
      { names: "##\nb\n[CLS]\n[SEP]\n[PAD]\nb\n[CLS]\n[SEP]" },
    ],
    [
      { "sentence_bert_config.json": json({ do_lower_case: true }) },
      { flags: 25 | 2 },
    ],
  ];
  for (const [change, expected] of cases) {
    const embedder = await gpu.embedder(folder(change));
    const made = chunk.tokenizers.at(-1);
    for (const [name, value] of Object.entries(expected)) {
      assert.deepEqual(made[name], value, `${name} of ${Object.keys(change)}`);
    }
    embedder.dispose();
  }
});

test("weights are kept as asked, and 16-bit files go up as they are", async () => {
  const hardware = { engine: "gpu", software: false };
  const software = { engine: "gpu", software: true };
  const as = (dtype, ...bits) =>
    TENSORS.map(([name, kind, shape, elements]) => {
      const isMatrix = kind === "F32" && shape.length === 2;
      return isMatrix || kind !== "F32"
        ? [
            name,
            isMatrix ? dtype : kind,
            shape,
            elements.map((x) =>
              isMatrix && bits.length ? bits[(x % bits.length) | 0] : x,
            ),
          ]
        : [name, kind, shape, elements];
    });
  // Numbers of the wire: 1 f32, 2 f16, 3 bf16, 4 int8, 5 int4; 8 more for what is packed.
  const cases = [
    ["F32", hardware, "f32", 1, "f32"],
    ["F32", hardware, undefined, 2, "f16"],
    ["F32", software, undefined, 1, "f32"],
    ["F32", hardware, "int8", 4, "int8"],
    ["F32", hardware, "int4", 5, "int4"],
    ["F16", hardware, "auto", 10, "f16"],
    ["F16", software, "auto", 1, "f32"],
    ["F16", software, "f16", 10, "f16"],
    ["F16", hardware, "bf16", 3, "bf16"],
    ["BF16", hardware, "auto", 11, "bf16"],
    ["BF16", hardware, "bf16", 11, "bf16"],
    ["BF16", hardware, "f16", 2, "f16"],
  ];
  for (const [stored, device, dtype, home, shown] of cases) {
    fake.device = device;
    const { gpu, core } = await manual();
    const bits = stored === "F16" ? [0x3c00, 0xc000] : [0x3f80, 0xc000];
    const file = safetensors(as(stored, ...(stored === "F32" ? [] : bits)));
    const embedder = await gpu.embedder(folder({ "model.safetensors": file }), {
      ...{ dtype, verify: false },
    });
    const about = `${stored} as ${dtype}`;
    const [fused, bias] = [...core.homes.values()];
    assert.deepEqual([fused, bias], [home, 1], about);
    assert.equal(embedder.info.dtype, shown, about);
    const words = core.tensors.get(3);
    if (home > 8) assert.deepEqual(halves(words).slice(0, 1), [bits[0]], about);
    else if (stored !== "F32")
      assert.deepEqual([...new Set(floats(words))], [1, -2], about);
  }
  fake.device = undefined;
});

test("16-bit floats are widened exactly", async () => {
  const { widen } = await module("embeddings/half-floats");
  const cases = [
    [0x0000, 0],
    [0x0001, 2 ** -24],
    [0x03ff, 1023 * 2 ** -24],
    [0x0400, 2 ** -14],
    [0x3555, 0.333251953125],
    [0xc000, -2],
    [0x7bff, 65504],
    [0x7c00, Infinity],
    [0xfc00, -Infinity],
    [0x7e00, NaN],
  ];
  const bits = Uint16Array.from(cases, ([bits]) => bits);
  const to = new Float32Array(cases.length + 1);
  widen("F16", new Uint8Array(bits.buffer), to, 1);
  cases.forEach(([bits, value], i) =>
    assert.ok(Object.is(to[i + 1], value), `0x${bits.toString(16)}`),
  );
});

const whole = safetensors(TENSORS);

test("what the device or the WebAssembly refuses gives everything back", async () => {
  const { gpu, core } = await manual();
  const refusal = { code: "out-of-memory", message: "no room" };
  for (const method of ["fill", "hold"]) {
    core.failures[method] = refusal;
    await assert.rejects(gpu.embedder(folder()), { code: "out-of-memory" });
    assert.equal(core.tensors.size, 0);
  }
  const wrong = { code: "invalid-input", message: "no [UNK]" };
  for (const method of ["Tokenizer", "give", "needs", "encoder", "weights"]) {
    chunk.failures[method] = wrong;
    await assert.rejects(gpu.embedder(folder()), {
      ...{ code: "invalid-input", message: "embedder: no [UNK]" },
    });
    assert.equal(core.tensors.size, 0);
  }
  const { instances } = chunk;
  chunk.failures.Tokenizer = new Error("unreachable");
  await assert.rejects(gpu.embedder(folder()), { code: "fatal" });
  // The next embedder has another instance.
  (await gpu.embedder(folder())).dispose();
  assert.equal(chunk.instances, instances + 1);
});

test("a load from a disk that fails early leaves no file open", async () => {
  const { gpu } = await manual();
  const place = mkdtempSync(join(tmpdir(), "framebatch-folder-"));
  const files = { ...folder(), "tokenizer.json": "version https://git-lfs" };
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(place, name)), { recursive: true });
    writeFileSync(join(place, name), content);
  }
  const before = { ...fs };
  let open = 0;
  fs.open = async (...args) => {
    const file = await before.open(...args);
    open += 1;
    const close = file.close.bind(file);
    file.close = () => {
      open -= 1;
      return close();
    };
    return file;
  };
  try {
    await assert.rejects(gpu.embedder(place), /tokenizer\.json/);
    await settled(50);
    assert.equal(open, 0);
  } finally {
    Object.assign(fs, before);
    rmSync(place, { recursive: true });
  }
});

test("an embedder that nobody has any more leaves nothing on the device", async () => {
  const { gpu, core } = await manual();
  const use = async () => {
    const embedder = await gpu.embedder(folder());
    const vector = embedder.embed("a b");
    gpu.flush();
    core.answer();
    await vector;
  };
  await use();
  await use();
  assert.ok(core.tensors.size > 0);
  await heap();
  assert.equal(core.tensors.size, 0);
});

test("a session that ends ends loading", async () => {
  const { gpu } = await manual();
  const { files, send } = streamed();
  const loading = gpu.embedder(files);
  await send(400);
  await gpu.dispose();
  send(Infinity);
  await assert.rejects(loading, { code: "disposed" });
  await assert.rejects(gpu.embedder(folder()), { code: "disposed" });
});

/** A folder whose weights come as they are sent. */
function streamed() {
  let next;
  let sent = 0;
  const blob = new Blob([whole]);
  blob.stream = () =>
    new ReadableStream({ start: (controller) => (next = controller) });
  return {
    files: new Map(Object.entries(folder({ "model.safetensors": blob }))),
    async send(bytes) {
      await settled();
      // In pieces that fit nothing.
      for (const end = Math.min(sent + bytes, whole.length); sent < end;) {
        next.enqueue(whole.slice(sent, (sent = Math.min(sent + 7, end))));
      }
      if (sent === whole.length) next.close();
      await settled();
    },
  };
}

test("each tensor goes up as soon as its bytes are there", async () => {
  const { gpu, core } = await manual();
  const { files, send } = streamed();
  const loading = gpu.embedder(files);
  // The table of words is the last, and the bias the one before.
  const rest = 32 * 4;
  await send(whole.length - rest - 16);
  assert.equal(core.counts.fills, 1);
  await send(16);
  assert.equal(core.counts.fills, 2);
  await send(rest - 1);
  assert.equal(core.counts.fills, 2);
  await send(1);
  await loading;
  assert.equal(core.counts.fills, 3);
});

test("loading is given up at any time, and nothing stays", async () => {
  for (const sent of [0, 100, whole.length - 4]) {
    const { gpu, core } = await manual();
    const { files, send } = streamed();
    const controller = new AbortController();
    const loading = gpu.embedder(files, { signal: controller.signal });
    await send(sent);
    controller.abort("enough");
    // A file that the page gives is not told; its next bytes find nobody.
    send(4);
    await assert.rejects(loading, (reason) => reason === "enough");
    assert.equal(core.tensors.size, 0);
  }
  const { gpu, core } = await manual();
  // Who hears of the bytes may give up, though all of them are there.
  const controller = new AbortController();
  const loading = gpu.embedder(folder(), {
    signal: controller.signal,
    onProgress: () => controller.abort("heard"),
  });
  await assert.rejects(loading, (reason) => reason === "heard");
  assert.equal(core.tensors.size, 0);
  const signal = AbortSignal.abort("before");
  await assert.rejects(
    gpu.embedder(folder(), { signal }),
    (reason) => reason === "before",
  );
});

test("loading is given up while kernels compile, and nothing stays", async () => {
  for (const load of ["embedder", "reranker"]) {
    const { gpu, core } = await manual();
    (await gpu.embedder(folder())).dispose();
    compiling.isQuick = false;
    const controller = new AbortController();
    const loading = gpu[load](folder(), { signal: controller.signal });
    await settled(50);
    assert.equal(core.warmups.length, 1);
    controller.abort("enough");
    await assert.rejects(loading, (reason) => reason === "enough");
    compiling.isQuick = true;
    core.warmed();
    assert.equal(core.tensors.size, 0);
  }
});

test("while the session opens, loading waits and can be given up", async () => {
  let open;
  fake.opening = new Promise((resolve) => (open = resolve));
  const { face } = await import("./face.mjs");
  const gpu = face.shared({ flush: "manual" });
  const controller = new AbortController();
  const { signal } = controller;
  const first = gpu.embedder(folder(), { signal });
  const second = gpu.embedder(folder());
  assert.equal(await stateOf(first), "pending");
  controller.abort("enough");
  await assert.rejects(first, (reason) => reason === "enough");
  open();
  await second;
  fake.opening = Promise.resolve();
  await gpu.dispose();
});

test("weights are restored after a loss, unless they are not kept", async () => {
  for (const keep of [true, false]) {
    const { gpu, core } = await manual();
    const embedder = await gpu.embedder(folder(), { keep });
    core.lose();
    core.restore();
    const answer = embedder.embed("a b");
    gpu.flush();
    if (keep) {
      core.answer();
      assert.equal((await answer).length, 4);
    } else await assert.rejects(answer, { code: "device-lost" });
  }
});
