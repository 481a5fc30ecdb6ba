// What a model's folder says of the model: its sizes, its pooling, its prompts.
//
// Reads config.json, sentence_bert_config.json and config_sentence_transformers.json, as
// sentence-transformers writes them. Modules, weights and words are the matter of
// `modules.ts`, `safetensors.ts` and `vocabulary.ts`.

import { MAX_HEAD } from "../tensor/codes.js";
import { Fields, readJson, shown, unsupported } from "./json-fields.js";
import { MODULES, type Modules, modulesOf } from "./modules.js";
import { type Folder, missing } from "./source.js";
import { SETTINGS } from "./vocabulary.js";

/** An encoder of the BERT family. */
export interface Config extends Modules {
  /** Floats of an embedding. */
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly intermediate: number;
  /** Rows of the table of words. */
  readonly vocabulary: number;
  readonly positions: number;
  /** The position of a text's first token: 0, and in RoBERTa behind the id of the padding. */
  readonly firstPosition: number;
  readonly types: number;
  readonly epsilon: number;
  /** Tokens of a text, with those at its ends. */
  readonly maxTokens: number;
  /** Whether texts are lowered before anything else. */
  readonly lowered: boolean;
  /** What may stand before a text, by name. */
  readonly prompts: ReadonlyMap<string, string>;
  /** The prompt of calls that name none. */
  readonly prompt: string;
}

const MODEL = "config.json";
const SENTENCE = "sentence_bert_config.json";
const PROMPTS = "config_sentence_transformers.json";
const MOST = 2 ** 24;
/** Layers of which a chain holds the nodes. */
const MAX_LAYERS = 26;

/** Reads and checks what a folder says. */
export async function readConfig(folder: Folder): Promise<Config> {
  const [model, modules, sentence, prompts] = await Promise.all(
    [MODEL, MODULES, SENTENCE, PROMPTS].map((name) => readJson(folder, name)),
  );
  if (model === undefined) {
    throw missing(MODEL);
  }
  const sizes = sizesOf(Fields.of(MODEL, model));
  const texts = Fields.ofFile(SENTENCE, sentence);
  const places = sizes.positions - sizes.firstPosition;
  const [behind, maxTokens] = await Promise.all([
    modulesOf(folder, modules, sizes.hidden),
    limitOf(folder, texts, places),
  ]);
  return {
    ...sizes,
    ...behind,
    maxTokens,
    lowered: texts.flag("do_lower_case", false),
    ...promptsOf(Fields.ofFile(PROMPTS, prompts)),
  };
}

/** Refuses models that compute in another way. */
function checkKind(fields: Fields): void {
  const expected = {
    hidden_act: "gelu",
    position_embedding_type: "absolute",
  };
  for (const [name, known] of Object.entries(expected)) {
    const value = fields.text(name, known);
    if (value === known) continue;
    throw unsupported(
      `${MODEL}: ${name} is '${value}', and only '${known}' is known here`,
    );
  }
  for (const name of ["is_decoder", "add_cross_attention"]) {
    if (!fields.flag(name, false)) continue;
    throw unsupported(`${MODEL}: ${name} is true, and only false is known`);
  }
}

/** The position of a text's first token, in which the known architectures differ. */
function firstPositionOf(fields: Fields): number {
  const type = fields.text("model_type");
  if (type === "bert") return 0;
  if (type === "roberta" || type === "xlm-roberta") {
    return fields.whole("pad_token_id", 0, MOST, 1) + 1;
  }
  throw unsupported(
    `${MODEL}: model_type is '${type}', and only 'bert', 'roberta' and 'xlm-roberta' are known here`,
  );
}

function sizesOf(fields: Fields) {
  const firstPosition = firstPositionOf(fields);
  checkKind(fields);
  const whole = (name: string, most = MOST): number =>
    fields.whole(name, 1, most);
  const hidden = whole("hidden_size", 2 ** 16);
  const heads = whole("num_attention_heads", hidden);
  if (hidden % heads !== 0 || hidden / heads > MAX_HEAD) {
    throw fields.wrong(
      "num_attention_heads",
      `must divide hidden_size ${hidden} into heads of at most ${MAX_HEAD} floats, got ${heads}`,
    );
  }
  return {
    hidden,
    heads,
    firstPosition,
    layers: whole("num_hidden_layers", MAX_LAYERS),
    intermediate: whole("intermediate_size", 2 ** 18),
    vocabulary: whole("vocab_size"),
    positions: fields.whole(
      "max_position_embeddings",
      firstPosition + 1,
      2 ** 16,
    ),
    types: fields.whole("type_vocab_size", 1, 1024, 2),
    epsilon: fields.number("layer_norm_eps", 1e-12),
  };
}

/** Tokens of a text at most, of so many that there are positions for. */
async function limitOf(
  folder: Folder,
  texts: Fields,
  positions: number,
): Promise<number> {
  const limit = texts.limit("max_seq_length");
  if (limit !== undefined) return Math.min(limit, positions);
  // Without `max_seq_length` the tokenizer's own limit counts, as in sentence-transformers.
  const settings = Fields.ofFile(SETTINGS, await readJson(folder, SETTINGS));
  const own = settings.limit("model_max_length");
  return Math.min(own ?? positions, positions);
}

function promptsOf(fields: Fields): Pick<Config, "prompts" | "prompt"> {
  const given = Object.entries(
    (fields.object("prompts") && (fields.get("prompts") as object)) ?? {},
  );
  const prompts = new Map<string, string>();
  for (const [name, text] of given) {
    if (typeof text !== "string") {
      throw fields.wrong(`prompts.${name}`, `must be a string`);
    }
    prompts.set(name, text);
  }
  const usual = fields.get("default_prompt_name") ?? undefined;
  if (usual === undefined) return { prompts, prompt: "" };
  const prompt = prompts.get(usual as string);
  if (prompt !== undefined) return { prompts, prompt };
  throw fields.wrong(
    "default_prompt_name",
    `must name one of its prompts, got ${shown(usual)}`,
  );
}
