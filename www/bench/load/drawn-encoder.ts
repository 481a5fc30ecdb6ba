// The files of an encoder with the sizes of all-MiniLM-L6-v2 and drawn weights: what a text
// costs depends on sizes alone, and 91 MB need not be fetched for that.

import type { ModelFiles } from "framebatch/embeddings";
import { textOf } from "../embeddings/texts.ts";
import { sequence } from "../ops/inputs.ts";

const CONFIG = {
  model_type: "bert",
  hidden_act: "gelu",
  hidden_size: 384,
  intermediate_size: 1536,
  layer_norm_eps: 1e-12,
  max_position_embeddings: 512,
  num_attention_heads: 12,
  num_hidden_layers: 6,
  pad_token_id: 0,
  position_embedding_type: "absolute",
  type_vocab_size: 2,
  vocab_size: 30_522,
};

const SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
/** Largest weight: hidden numbers then stay about 1. */
const SCALE = 0.05;

/** Made once a page, of one seed. */
let files: ModelFiles | undefined;

export function drawnEncoder(): ModelFiles {
  files ??= {
    "config.json": bytes(JSON.stringify(CONFIG)),
    "vocab.txt": bytes(vocabulary().join("\n")),
    "model.safetensors": weights(),
  };
  return files;
}

const bytes = (text: string) => new TextEncoder().encode(text);

/** The words of the bench's texts, and names for the other ids. */
function vocabulary(): string[] {
  const words = [...new Set(textOf(64, 0).split(" "))];
  const known = [...SPECIAL, ...words];
  const left = CONFIG.vocab_size - known.length;
  return [...known, ...Array.from({ length: left }, (_, i) => `[unused${i}]`)];
}

/** Names and shapes, as Hugging Face has them. */
function* tensors(): Generator<
  readonly [name: string, shape: readonly number[]]
> {
  const { hidden_size: hidden, intermediate_size: inner } = CONFIG;
  const linear = (name: string, to: number, from: number) =>
    [
      [`${name}.weight`, [to, from]],
      [`${name}.bias`, [to]],
    ] as const;
  const norm = (name: string) =>
    [
      [`${name}.LayerNorm.weight`, [hidden]],
      [`${name}.LayerNorm.bias`, [hidden]],
    ] as const;
  const table = (name: string, rows: number) =>
    [`embeddings.${name}_embeddings.weight`, [rows, hidden]] as const;
  yield table("word", CONFIG.vocab_size);
  yield table("position", CONFIG.max_position_embeddings);
  yield table("token_type", CONFIG.type_vocab_size);
  yield* norm("embeddings");
  for (let layer = 0; layer < CONFIG.num_hidden_layers; layer++) {
    const at = `encoder.layer.${layer}`;
    for (const part of ["query", "key", "value"]) {
      yield* linear(`${at}.attention.self.${part}`, hidden, hidden);
    }
    yield* linear(`${at}.attention.output.dense`, hidden, hidden);
    yield* norm(`${at}.attention.output`);
    yield* linear(`${at}.intermediate.dense`, inner, hidden);
    yield* linear(`${at}.output.dense`, hidden, inner);
    yield* norm(`${at}.output`);
  }
}

/** A safetensors file: the length of the header, the header, all floats. */
function weights(): Uint8Array {
  const header: Record<string, object> = {};
  let end = 0;
  for (const [name, shape] of tensors()) {
    const begin = end;
    end += 4 * shape.reduce((all, size) => all * size);
    header[name] = { dtype: "F32", shape, data_offsets: [begin, end] };
  }
  const text = JSON.stringify(header);
  // Floats begin at a multiple of their size.
  const head = bytes(text.padEnd(Math.ceil(text.length / 8) * 8));
  const file = new Uint8Array(8 + head.length + end);
  new DataView(file.buffer).setBigUint64(0, BigInt(head.length), true);
  file.set(head, 8);
  const floats = new Float32Array(file.buffer, 8 + head.length);
  const next = sequence();
  let at = 0;
  for (const [name, shape] of tensors()) {
    const count = shape.reduce((all, size) => all * size);
    const isGain = name.endsWith("LayerNorm.weight");
    for (let i = 0; i < count; i++) {
      floats[at++] = isGain ? 1 : (next() * 2 - 1) * SCALE;
    }
  }
  return file;
}
