// The reader of GGUF files: numbers and names as llama.cpp has them, and what it refuses.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { FORMATS, int8Of, widened } from "../../pkg/bin/gguf-blocks.mjs";
import { ggufFileOf, openGgufFile } from "../../pkg/bin/gguf-file.mjs";
import { modelOf, placeOf } from "../../pkg/bin/gguf-names.mjs";
import { openGguf, weightsOf } from "../../pkg/bin/gguf.mjs";
import {
  ARRAY,
  STRING,
  TYPES,
  U32,
  U8,
  architecture,
  encoded,
  entry,
  ggufFile,
  text,
  u32,
  u64,
} from "./gguf-writer.mjs";

const ORACLE = JSON.parse(readFileSync("tests/data/gguf.json", "utf8"));
const bert = architecture("bert");

const root = mkdtempSync(join(tmpdir(), "gguf-"));
after(() => rmSync(root, { recursive: true }));

/** A file's path. */
const path = join(root, "model.gguf");
const written = (bytes) => (writeFileSync(path, bytes), path);

const ramp = (count, scale = 1) =>
  Array.from({ length: count }, (_, i) => Math.sin(i) * scale);

const tensor = (name, shape, format = "F32", change = {}) => {
  const count = shape.reduce((a, b) => a * b, 1);
  const { type, bytes } = encoded(format, ramp(count));
  return { name, shape, type, bytes, ...change };
};

test("names are llama.cpp's", () => {
  for (const [model_type, { architecture, tensors }] of Object.entries(
    ORACLE.models,
  )) {
    const model = modelOf({ model_type });
    assert.ok(model.architectures.includes(architecture), model_type);
    for (const [of, expected] of Object.entries(tensors)) {
      const [name, found] = [of, expected].map((name) =>
        name.replace(".N.", ".17."),
      );
      assert.equal(placeOf(model, name).name, found, model_type);
    }
  }
});

test("blocks stand for the numbers that ggml has for them, bit for bit", () => {
  const formats = [...FORMATS.values()];
  const bytesOf = (text) => new Uint8Array(Buffer.from(text, "base64"));
  for (const [name, { bytes, floats }] of Object.entries(ORACLE.blocks)) {
    const format = formats.find((format) => format.name === name);
    const found = widened(format, Buffer.from(bytes, "base64"));
    const expected = new Float32Array(bytesOf(floats).buffer);
    assert.equal(found.length, expected.length, name);
    found.forEach((x, i) =>
      assert.equal(x + 0, expected[i] + 0, `${name} ${i}`),
    );
  }
  assert.deepEqual(
    formats.map(({ name }) => name).sort(),
    ["F32", ...Object.keys(ORACLE.blocks)].sort(),
  );
});

test("the documents list the formats that are known, and models that are", () => {
  const page = readFileSync("docs/embeddings.md", "utf8");
  const listed = (part) =>
    new RegExp(`^\\| ${part} +\\| (.*?) +\\|$`, "m").exec(page)[1].split(", ");
  const formats = [...FORMATS.values()].map(({ name }) => name);
  assert.deepEqual(listed("tensors").sort(), formats.sort());
  for (const model_type of listed("model_type")) modelOf({ model_type });
});

test("tensors are read as they were written, whatever else a file has", () => {
  const tensors = [
    tensor("token_embd.weight", [3, 64], "Q8_0"),
    tensor("a.bias", [5]),
    tensor("b.weight", [2, 3, 256], "Q4_K"),
    tensor("c.weight", [2, 256], "Q6_K"),
    tensor("d.weight", [2, 32], "Q4_0"),
    tensor("e.weight", [3, 2], "F16"),
    tensor("f.weight", [1, 3], "BF16"),
  ];
  const words = [text("a"), text(Uint8Array.of(0xff)), text("")];
  const nested = [u32(U8), u64(2), Uint8Array.of(1, 2)];
  const metadata = [
    bert,
    entry("words", ARRAY, Buffer.concat([u32(STRING), u64(3), ...words])),
    entry("lists", ARRAY, Buffer.concat([u32(ARRAY), u64(1), ...nested])),
    entry("long", STRING, text("x".repeat(2 ** 18))),
    ...[0, 1, 7].map((type) => entry(`of ${type}`, type, Buffer.alloc(1))),
    ...[2, 3].map((type) => entry(`of ${type}`, type, Buffer.alloc(2))),
    ...[4, 5, 6].map((type) => entry(`of ${type}`, type, Buffer.alloc(4))),
    ...[10, 11, 12].map((type) => entry(`of ${type}`, type, Buffer.alloc(8))),
  ];
  for (const [version, alignment] of [
    [2, 32],
    [3, 8],
    [3, 1],
    [3, 4096],
  ]) {
    const aligned = entry("general.alignment", U32, u32(alignment));
    const all = [...metadata, aligned];
    const bytes = ggufFile({ version, alignment, metadata: all, tensors });
    const file = openGgufFile(written(bytes));
    assert.equal(file.size, bytes.length);
    assert.equal(file.metadata.get("general.architecture"), "bert");
    file.tensors.forEach(({ name, shape, format, read }, i) => {
      assert.equal(name, tensors[i].name);
      assert.deepEqual(shape, tensors[i].shape);
      assert.equal(TYPES[format.name], tensors[i].type);
      assert.ok(read().equals(tensors[i].bytes), name);
    });
    file.close();
  }
});

test("whole numbers of one scale stay as they are in int8, where int8 has the scale", () => {
  const kept = [
    // From 2⁻²¹ up to the largest that times 128 is a 16-bit float, normal and subnormal.
    ...[0x0008, 0x0123, 0x03ff, 0x0400, 0x2e66, 0x3c00, 0x5fff, 0xa123],
  ];
  const scales = [...kept, 0x0001, 0x0007, 0x0000, 0x8000];
  for (const type of [TYPES.Q8_0, TYPES.Q4_0, TYPES.Q5_0]) {
    const format = FORMATS.get(type);
    const groups = scales.map((bits, group) => {
      const { bytes } = format;
      const wholes = Array.from({ length: bytes - 2 }, (_, i) => {
        const whole = (i * 41 + group) % 255;
        return type === TYPES.Q8_0 ? (whole - 127) & 255 : whole;
      });
      return Uint8Array.of(bits & 255, bits >> 8, ...wholes);
    });
    const bytes = Buffer.concat(groups);
    const expected = widened(format, bytes);
    const { buffer } = int8Of(format, bytes);
    const view = new DataView(buffer);
    expected.forEach((x, i) => {
      const [block, group] = [Math.floor(i / 64) * 68, Math.floor(i / 32)];
      const bits = view.getUint16(block + 64 + 2 * (group & 1), true);
      assert.ok(bits >= 0x0400 && bits < 0x7c00, "a scale that is no number");
      const scale = (1024 + (bits & 1023)) * 2 ** ((bits >> 10) - 25);
      const found = (view.getInt8(block + (i % 64)) * scale) / 128;
      const of = `${format.name} ${i}: ${found}, ${x}`;
      if (group < kept.length) assert.equal(found + 0, x + 0, of);
      else assert.ok(Math.abs(found - x) <= 2 ** -22, of);
    });
  }
  const int8 = (bytes) => int8Of(FORMATS.get(TYPES.Q8_0), bytes);
  // −128 is none of int8's whole numbers, and rounds anew.
  const odd = Buffer.alloc(
    68,
    Uint8Array.of(0x00, 0x3c, ...Array(32).fill(128)),
  );
  assert.deepEqual(new Set(int8(odd).subarray(0, 64)), new Set([129]));
  for (const bits of [0x6000, 0x7c00, 0x7e00]) {
    const large = Buffer.alloc(
      68,
      Uint8Array.of(bits & 255, bits >> 8, ...Array(32).fill(127)),
    );
    assert.throws(() => int8(large), /int8 holds magnitudes below/, `${bits}`);
  }
});

test("what the converter did to numbers and shapes is undone", async () => {
  const open = (config, of, tensors) => {
    const metadata = [architecture(of)];
    return openGguf(written(ggufFile({ metadata, tensors })), config);
  };
  const read = async ({ read }) => {
    const bytes = new Uint8Array(await read());
    return [...new Float32Array(bytes.buffer)];
  };
  // Norms of Gemma have 1 added, others not; matrices never.
  for (const [model_type, of, added] of [
    ["gemma3_text", "gemma-embedding", 1],
    ["gemma3_text", "gemma3", 1],
    ["qwen3", "qwen3", 0],
  ]) {
    const names = ["output_norm", "blk.0.attn_q_norm", "blk.1.ffn_up"];
    const file = open({ model_type }, of, [
      ...names.map((name) => tensor(`${name}.weight`, [8])),
      tensor("output.weight", [2, 4]),
    ]);
    const expected = encoded("F32", ramp(8)).numbers;
    const [norm, query, up] = file.tensors;
    assert.equal(query.name, "layers.0.self_attn.q_norm.weight");
    const shifted = expected.map((x) => Math.fround(x - added));
    assert.deepEqual(await read(norm), shifted);
    assert.deepEqual(await read(query), shifted);
    assert.deepEqual(await read(up), expected);
    // A matrix has two dimensions, even if the file dropped one that is 1.
    assert.deepEqual(up.shape, [1, 8]);
    assert.deepEqual(file.unused, ["output.weight"]);
    file.close();
  }
  // Rows of positions that were cut off are there again, in any format.
  const roberta = { model_type: "roberta", max_position_embeddings: 6 };
  for (const [config, rows, expected, pad_token_id] of [
    [roberta, 4, 6],
    [roberta, 5, 6, 0],
    [roberta, 6, 6, null],
    [roberta, 3, 3],
    [{ ...roberta, model_type: "bert" }, 4, 4],
  ]) {
    for (const format of ["F32", "Q8_0"]) {
      const of = [tensor("position_embd.weight", [rows, 32], format)];
      const file = open({ ...config, pad_token_id }, "bert", of);
      const [{ shape, bytes, ...table }] = file.tensors;
      assert.deepEqual(shape, [expected, 32]);
      const floats = await read(table);
      assert.equal(bytes, 4 * floats.length);
      const missing = 32 * (expected - rows);
      const numbers = [
        ...Array(missing).fill(0),
        ...encoded(format, ramp(32 * rows)).numbers,
      ];
      assert.deepEqual(floats, numbers.map(Math.fround));
      file.close();
    }
  }
});

test("other models and other tensors are refused by name", () => {
  const config = { model_type: "bert" };
  const fine = tensor("token_embd.weight", [2, 32]);
  const split = entry("split.count", 2, Uint8Array.of(3, 0));
  for (const [of, metadata, tensors, message] of [
    [
      { model_type: "mpnet" },
      [bert],
      [fine],
      /model_type is 'mpnet'; of GGUF only bert, .*gemma3_text are known/,
    ],
    [{ model_type: "toString" }, [bert], [fine], /model_type is 'toString'/],
    [{}, [bert], [fine], /model_type is 'undefined'/],
    [
      config,
      [architecture("llama")],
      [fine],
      /model.gguf: general.architecture is 'llama', but config.json is of 'bert'/,
    ],
    [config, [], [fine], /general.architecture is 'undefined'/],
    [
      config,
      [bert, split],
      [fine],
      /one of 3; join them with llama-gguf-split --merge/,
    ],
    ...[
      "blk.0.attn_qkv.weight",
      "blk.N.attn_q.weight",
      "blk.0.token_embd.weight",
      "blk.12345.attn_q.weight",
      "token_embd",
      "toString.weight",
      "lora.weight",
    ].map((name) => [
      config,
      [bert],
      [fine, tensor(name, [2, 32])],
      new RegExp(`tensor '${name}' is none`),
    ]),
  ]) {
    const file = written(ggufFile({ metadata, tensors }));
    assert.throws(() => openGguf(file, of), message);
  }
});

test("broken and hostile files are refused, before memory is taken for them", () => {
  const one = tensor("a.weight", [2, 32]);
  const with_ = (change) => ({ tensors: [{ ...one, ...change }] });
  const aligned = (value, type = U32) => ({
    metadata: [entry("general.alignment", type, value)],
    tensors: [one],
  });
  const key = (key, type, value) => ({
    metadata: [entry(key, type, value)],
    tensors: [one],
  });
  const deep = Buffer.concat(
    Array(100_000).fill(Buffer.concat([u32(ARRAY), u64(1)])),
  );
  const whole = ggufFile({ metadata: [bert], tensors: [one] });
  const cases = [
    [Buffer.alloc(0), /no GGUF file, or is truncated/],
    [Buffer.from("GGUF"), /no GGUF file, or is truncated/],
    [whole.subarray(0, 23), /no GGUF file, or is truncated/],
    [whole.subarray(0, 40), /the file is truncated/],
    [
      whole.subarray(0, -1),
      /'a.weight' ends at byte 384, but the file has 383: it is truncated/,
    ],
    [{ ...with_({}), magic: "GGML" }, /no GGUF file/],
    [{ ...with_({}), version: 1 }, /version 1 of GGUF; only 2 and 3/],
    [{ ...with_({}), version: 4 }, /version 4 of GGUF/],
    [{ ...with_({}), version: 0x03000000 }, /for big-endian machines/],
    [{}, /has no tensors/],
    [
      { ...with_({}), counts: [2n ** 64n - 1n, 0] },
      /18446744073709552000 tensors; at most 65536/,
    ],
    [
      { ...with_({}), counts: [1, 2n ** 40n] },
      /1099511627776 entries of metadata; at most/,
    ],
    [{ ...with_({}), counts: [2, 0] }, /truncated|no tensors|dimensions|bytes/],
    [key("x", STRING, u64(2n ** 63n)), /the file is truncated/],
    [
      key("x", ARRAY, Buffer.concat([u32(STRING), u64(2n ** 60n)])),
      /the file is truncated/,
    ],
    [
      key("x", ARRAY, Buffer.concat([u32(U32), u64(2n ** 62n)])),
      /the file is truncated/,
    ],
    [
      key("x", ARRAY, Buffer.concat([u32(77), u64(1)])),
      /metadata of type 77 are not known/,
    ],
    [key("x", ARRAY, deep), /nested more than 4 deep/],
    [key("x", 13, u32(0)), /metadata of type 13 are not known/],
    [key(Uint8Array.of(0x61, 0xff), U32, u32(1)), /a name is no UTF-8/],
    [key("x".repeat(70_000), U32, u32(1)), /a name of 70000 bytes/],
    [
      { metadata: [bert, bert], tensors: [one] },
      /have 'general.architecture' twice/,
    ],
    [key("general.architecture", U32, u32(1)), /has type 4 instead of 8/],
    [aligned(u32(0)), /an alignment of 0; it must be a power of two/],
    [aligned(u32(24)), /an alignment of 24/],
    [aligned(u32(2 ** 31)), /it is truncated/],
    [aligned(u64(32), 10), /'general.alignment' has type 10 instead of 4/],
    [with_({ name: Uint8Array.of(0xc0) }), /a name is no UTF-8/],
    [with_({ dims: [] }), /has 0 dimensions; 1 to 4 are known/],
    [with_({ dims: [1, 1, 1, 1, 1] }), /has 5 dimensions/],
    [with_({ dims: [32, 0] }), /has no numbers: \[0,32\]/],
    [
      with_({ dims: [2n ** 32n, 2n ** 32n, 2n ** 32n, 2n ** 32n] }),
      /it is truncated/,
    ],
    [with_({ dims: [2n ** 63n, 2] }), /it is truncated/],
    [with_({ dims: [32, 3] }), /it is truncated/],
    [with_({ offset: 2n ** 63n }), /it is truncated/],
    [with_({ offset: 16 }), /is at 16, which is no multiple of 32/],
    [
      with_({ type: 10 }),
      /'a.weight' has numbers of Q2_K; only F32, F16, Q4_0, .* are known/,
    ],
    [with_({ type: 4 }), /has numbers of ggml's type 4; only/],
    [
      with_({ type: 8, dims: [48, 1] }),
      /rows of 48 numbers; Q8_0 needs a multiple of 32/,
    ],
    [{ tensors: [one, one] }, /two tensors have the name 'a.weight'/],
    [
      { tensors: [one, { ...one, name: "b", offset: 32 }] },
      /tensor 'b' overlaps/,
    ],
    [
      {
        tensors: [
          { ...one, offset: 0 },
          { ...one, name: "b", offset: 0 },
        ],
      },
      /overlaps/,
    ],
  ];
  for (const [of, message] of cases) {
    const bytes = Buffer.isBuffer(of) ? of : ggufFile(of);
    assert.throws(
      () => openGgufFile(written(bytes)),
      (error) => {
        assert.equal(error.constructor, Error, error.stack);
        assert.ok(error.message.startsWith(`${path}: `), error.message);
        assert.match(error.message, message);
        return true;
      },
    );
  }
  assert.throws(() => openGgufFile(join(root, "none.gguf")), /none.gguf/);
  assert.throws(() => openGgufFile(root), /is no file/);
});

test("whatever bytes are changed, a file is read or refused", () => {
  const tensors = [
    tensor("token_embd.weight", [4, 32], "Q8_0"),
    tensor("position_embd.weight", [3, 32]),
    tensor("blk.0.attn_q.weight", [1, 256], "Q4_K"),
    tensor("blk.0.ffn_up.weight", [1, 256], "Q6_K"),
    tensor("blk.0.attn_q.bias", [7], "F16"),
  ];
  const words = Buffer.concat([u32(STRING), u64(2), text("a"), text("bc")]);
  const metadata = [
    bert,
    entry("general.alignment", U32, u32(32)),
    entry("words", ARRAY, words),
  ];
  const whole = ggufFile({ metadata, tensors });
  const head =
    whole.length - tensors.reduce((sum, { bytes }) => sum + bytes.length, 0);
  let seed = 7;
  const below = (count) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * count);
  };
  const model = modelOf({ model_type: "bert" });
  const numbers = [0, 1, 2, 3, 127, 128, 254, 255];
  const seen = { read: 0, refused: 0 };
  for (let round = 0; round < 4000; round += 1) {
    const bytes = Buffer.from(whole);
    for (let changes = below(4); changes >= 0; changes -= 1) {
      // Most of what can go wrong is in front of the numbers.
      const at = below(below(4) === 0 ? bytes.length : head);
      bytes[at] =
        below(2) === 0 ? numbers[below(8)] : bytes[at] ^ (1 << below(8));
    }
    const cut = below(8) === 0 ? below(bytes.length) : bytes.length;
    const bytesAt = (from, length) => {
      assert.ok(from + length <= cut, "bytes that are not there");
      return bytes.subarray(from, from + length);
    };
    try {
      const file = weightsOf(ggufFileOf(path, cut, bytesAt), model, {});
      for (const tensor of file.tensors) {
        assert.equal(tensor.read().length, tensor.bytes);
        try {
          tensor.int8?.();
        } catch (error) {
          assert.match(error.message, /^int8 holds magnitudes/);
        }
      }
      seen.read += 1;
    } catch (error) {
      assert.equal(error.constructor, Error, error.stack);
      assert.ok(error.message.startsWith(`${path}: `), error.stack);
      seen.refused += 1;
    }
  }
  assert.ok(seen.read > 500 && seen.refused > 500, JSON.stringify(seen));
});
