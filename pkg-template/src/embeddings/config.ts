// What a model's folder says of the model: its sizes, its pooling, its prompts.
//
// Reads config.json, modules.json, the pooling's config.json, sentence_bert_config.json
// and config_sentence_transformers.json, as sentence-transformers writes them. Weights
// and words are the matter of `safetensors.ts` and `vocabulary.ts`.

import { FramebatchError } from "../errors.js";
import { MAX_HEAD } from "../tensor/codes.js";
import { Fields, readJson, shown } from "./fields.js";
import { ABOUT, type Folder } from "./source.js";

/** How the vectors of tokens become one. */
export type Pooling = "mean" | "cls";

/** An encoder of the BERT family. */
export interface Config {
  /** Floats of an embedding. */
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly intermediate: number;
  /** Rows of the table of words. */
  readonly vocabulary: number;
  readonly positions: number;
  readonly types: number;
  readonly epsilon: number;
  readonly pooling: Pooling;
  /** Whether embeddings have length 1. */
  readonly normalize: boolean;
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
const MODULES = "modules.json";
const SENTENCE = "sentence_bert_config.json";
const PROMPTS = "config_sentence_transformers.json";
const MOST = 2 ** 24;
/** Layers of which a chain holds the nodes; a test holds it to the core's. */
const MAX_LAYERS = 26;

/** Reads and checks what a folder says. */
export async function readConfig(folder: Folder): Promise<Config> {
  const [model, modules, sentence, prompts] = await Promise.all(
    [MODEL, MODULES, SENTENCE, PROMPTS].map((name) => readJson(folder, name)),
  );
  if (model === undefined) {
    throw new FramebatchError(
      "invalid-input",
      `${ABOUT}: ${MODEL} is missing; give the folder of a model as Hugging Face has it`,
    );
  }
  const sizes = sizesOf(Fields.of(MODEL, model));
  return {
    ...sizes,
    ...(await poolingOf(folder, sizes.hidden, modules)),
    ...limitOf(sizes.positions, Fields.of(SENTENCE, sentence ?? {})),
    ...promptsOf(Fields.of(PROMPTS, prompts ?? {})),
  };
}

function unsupported(problem: string): FramebatchError {
  return new FramebatchError("unsupported", `${ABOUT}: ${problem}`);
}

function sizesOf(fields: Fields) {
  const expected = {
    model_type: "bert",
    hidden_act: "gelu",
    position_embedding_type: "absolute",
  };
  for (const [name, known] of Object.entries(expected)) {
    const usual = name === "model_type" ? undefined : known;
    const value = fields.text(name, usual);
    if (value === known) continue;
    throw unsupported(
      `${MODEL}: ${name} is '${value}', and only '${known}' is known here`,
    );
  }
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
    layers: whole("num_hidden_layers", MAX_LAYERS),
    intermediate: whole("intermediate_size", 2 ** 18),
    vocabulary: whole("vocab_size"),
    positions: whole("max_position_embeddings", 2 ** 16),
    types: fields.whole("type_vocab_size", 1, 1024, 2),
    epsilon: fields.positive("layer_norm_eps"),
  };
}

async function poolingOf(
  folder: Folder,
  hidden: number,
  value: unknown,
): Promise<Pick<Config, "pooling" | "normalize">> {
  // As sentence-transformers takes a folder without modules.
  if (value === undefined) return { pooling: "mean", normalize: false };
  if (!Array.isArray(value)) {
    throw Fields.of(MODULES, {}).wrong("it", "must be a list of modules");
  }
  const modules = value.map((module: unknown, i) => {
    const fields = Fields.of(`${MODULES}: [${i}]`, module);
    const type = fields.text("type");
    return { type: type.split(".").at(-1), path: fields.text("path", "") };
  });
  const types = modules.map(({ type }) => type);
  const known = ["Transformer", "Pooling", "Normalize"];
  if (types.some((type, i) => type !== known[i]) || types.length < 2) {
    throw unsupported(
      `${MODULES}: the modules are ${shown(types)}, and only ${known.join(", ")} in this order are known, the last of them left out or not`,
    );
  }
  const name = `${modules[1].path}/config.json`;
  const config = await readJson(folder, name);
  if (config === undefined) {
    throw new FramebatchError(
      "invalid-input",
      `${ABOUT}: ${name} is missing, which ${MODULES} names`,
    );
  }
  const normalize = types.length === 3;
  return { normalize, pooling: modeOf(Fields.of(name, config), hidden) };
}

function modeOf(fields: Fields, hidden: number): Pooling {
  const width = fields.whole("word_embedding_dimension", 1, MOST, hidden);
  if (width !== hidden) {
    throw fields.wrong(
      "word_embedding_dimension",
      `is ${width}, but hidden_size of ${MODEL} is ${hidden}`,
    );
  }
  const prefix = "pooling_mode_";
  const modes = ["cls_token", "mean_tokens", "max_tokens"];
  modes.push("mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken");
  const chosen = modes.filter((mode) => fields.flag(prefix + mode, false));
  if (chosen.length === 1 && chosen[0] === "mean_tokens") return "mean";
  if (chosen.length === 1 && chosen[0] === "cls_token") return "cls";
  throw unsupported(
    `${fields.place}: the pooling is ${shown(chosen)}, and only one of mean_tokens and cls_token is known`,
  );
}

function limitOf(
  positions: number,
  fields: Fields,
): Pick<Config, "maxTokens" | "lowered"> {
  const most = fields.get("max_seq_length") ?? positions;
  if (!Number.isInteger(most) || (most as number) < 2) {
    throw fields.wrong(
      "max_seq_length",
      `must be a whole number from 2, got ${shown(most)}`,
    );
  }
  return {
    maxTokens: Math.min(most as number, positions),
    lowered: fields.flag("do_lower_case", false),
  };
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
