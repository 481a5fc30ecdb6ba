// Both systems with one model, on one thread of the CPU or on the GPU.
//
// An embedder takes arrays of token ids and gives a vector for each; a reranker takes pairs of
// words, and gives a score for each. Nothing here is timed.

import { open } from "./framebatch/dist/index.js";
import "./framebatch/dist/embeddings.js";
import * as rival from "./rival/transformers.min.js";
import { externalData } from "./weights.js";

const at = (path) => new URL(path, location.href).href;
const bytes = (value) =>
  new TextEncoder().encode(
    typeof value === "string" ? value : JSON.stringify(value),
  );

const MODULES = ["Transformer", "Pooling", "Normalize"].map((name, idx) => ({
  idx,
  name: `${idx}`,
  path: idx === 0 ? "" : `${idx}_${name}`,
  type: `sentence_transformers.models.${name}`,
}));

/** Of the device's memory: the largest model has 2 GB of weights. */
const BUDGET = 6e9;

/** A token for each id, so that a word's id is known. */
export const word = (id) => `w${id}`;
export const [CLS, SEP, FIRST_WORD] = [2, 3, 5];
const vocabulary = (size) =>
  Array.from(
    { length: size },
    (_, id) => ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"][id] ?? word(id),
  ).join("\n");

/** This package. */
export async function framebatch({ config, file, engine, dtype, isReranker }) {
  const gpu = await open({ engine, flush: "manual", memoryBudget: BUDGET });
  const kept = { dtype, arithmetic: dtype };
  const files = new Map([
    ["config.json", bytes(config)],
    ["model.safetensors", file],
  ]);
  if (isReranker) {
    files.set("vocab.txt", bytes(vocabulary(config.vocab_size)));
    files.set("tokenizer_config.json", bytes({ do_lower_case: true }));
    const reranker = await gpu.reranker(files, kept);
    return {
      info: reranker.info,
      async run({ query, documents }) {
        const text = (ids) => ids.map(word).join(" ");
        const pairs = documents.map((ids) => [text(query), text(ids)]);
        const answer = reranker.score(pairs);
        gpu.flush();
        return Array.from(await answer, (score) => [score]);
      },
      close: () => gpu.dispose(),
    };
  }
  files.set("modules.json", bytes(MODULES));
  const pooling_mode = config.model_type === "qwen3" ? "lasttoken" : "mean";
  files.set("1_Pooling/config.json", bytes({ pooling_mode }));
  const embedder = await gpu.embedder(files, kept);
  return {
    info: embedder.info,
    run(texts) {
      const answers = texts.map((ids) => embedder.embedIds(ids));
      gpu.flush();
      return Promise.all(answers);
    },
    close: () => gpu.dispose(),
  };
}

/** transformers.js: all texts as one array, padded to the longest. */
export async function transformers({
  name,
  config,
  tensors,
  views,
  engine,
  dtype,
  isReranker,
}) {
  const { env, AutoModel, AutoModelForSequenceClassification } = rival;
  env.allowRemoteModels = false;
  env.allowLocalModels = true;
  env.localModelPath = new URL("./models/", location.href).pathname;
  env.useBrowserCache = env.useWasmCache = false;
  Object.assign(env.backends.onnx.wasm, {
    numThreads: 1,
    wasmPaths: {
      mjs: at("./rival/ort-wasm-simd-threaded.asyncify.mjs"),
      wasm: at("./rival/ort-wasm-simd-threaded.asyncify.wasm"),
    },
  });
  const kind = isReranker ? AutoModelForSequenceClassification : AutoModel;
  const model = await kind.from_pretrained(name, {
    device: engine === "gpu" ? "webgpu" : "wasm",
    dtype: dtype === "f16" ? "fp16" : "fp32",
    // An encoder by its inputs: transformers.js would hand a decoder its past.
    ...(isPooled(config) ? { config: { ...config, model_type: "bert" } } : {}),
    session_options: { externalData: externalData(tensors, views, dtype) },
  });
  return {
    async run(work) {
      const inputs = isReranker ? pairs(work) : padded(work, config);
      const answers = answersOf(await model(inputs), inputs);
      const [count, width] = answers.dims;
      return Array.from({ length: count }, (_, i) =>
        answers.data.slice(i * width, (i + 1) * width),
      );
    },
    close: () => model.dispose(),
  };
}

/** Whether the graph pools. */
const isPooled = ({ head_dim }) => head_dim !== undefined;

/** A score for each pair, or a vector for each text. */
function answersOf({ logits, sentence_embedding, last_hidden_state }, inputs) {
  if (logits) return logits.sigmoid();
  const pooled =
    sentence_embedding ??
    rival.mean_pooling(last_hidden_state, inputs.attention_mask);
  return pooled.normalize(2, -1);
}

const int64 = (values, dims) =>
  new rival.Tensor("int64", BigInt64Array.from(values, BigInt), dims);

function padded(texts, { pad_token_id, type_vocab_size }) {
  const length = Math.max(...texts.map((ids) => ids.length));
  const dims = [texts.length, length];
  const each = (of) =>
    texts.flatMap((ids) => Array.from({ length }, (_, i) => of(ids, i)));
  return {
    input_ids: int64(
      each((ids, i) => ids[i] ?? pad_token_id),
      dims,
    ),
    attention_mask: int64(
      each((ids, i) => (i < ids.length ? 1 : 0)),
      dims,
    ),
    ...(type_vocab_size > 1
      ? {
          token_type_ids: int64(
            each(() => 0),
            dims,
          ),
        }
      : {}),
  };
}

/** Documents of one length, each behind the query. */
function pairs({ query, documents }) {
  const first = [CLS, ...query, SEP];
  const rows = documents.map((ids) => [...first, ...ids, SEP]);
  const dims = [rows.length, rows[0].length];
  const of = (value) => rows.flatMap((ids) => ids.map(value));
  return {
    input_ids: int64(rows.flat(), dims),
    attention_mask: int64(
      of(() => 1),
      dims,
    ),
    token_type_ids: int64(
      of((_, i) => (i < first.length ? 0 : 1)),
      dims,
    ),
  };
}
