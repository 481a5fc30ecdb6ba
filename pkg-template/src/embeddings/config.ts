// What a model is, as its folder says. The WebAssembly reads the folder, and asks for files by name.
//
// Weights and words are the matter of `safetensors.ts` and `vocabulary.ts`.

import { readBytes } from "./json-fields.js";
import type { Folder } from "./source.js";
import { FolderReader, type Home, type ModelEncoder } from "./wasm-instance.js";

/** How the vectors of tokens become one. */
export type Pooling = "mean" | "cls" | "max" | "lasttoken";

/** What a folder says of its model. */
export interface Config {
  /** Floats of an embedding. */
  readonly dimensions: number;
  readonly layers: number;
  readonly heads: number;
  /** Tokens that ids are below. */
  readonly vocabulary: number;
  /** Tokens of a text, with those at its ends. */
  readonly maxTokens: number;
  /** Types that tokens may have. */
  readonly types: number;
  /** Whether there is a table of positions. */
  readonly hasPositions: boolean;
  /** The position of a text's first token: 0, or behind the id of a padding that has none. */
  readonly firstPosition: number;
  /** Floats of a token that go from one stage of the forward pass to the next. */
  readonly staged: number;
  readonly pooling: Pooling;
  /** Whether embeddings have length 1. */
  readonly normalize: boolean;
  /** Whether texts are lowered before anything else. */
  readonly lowered: boolean;
  /** What may stand before a text, by name. */
  readonly prompts: ReadonlyMap<string, string>;
  /** The prompt of calls that name none. */
  readonly prompt: string;
}

/** What a model is loaded for. */
export interface Task {
  readonly isReranker: boolean;
  /** Floats that embeddings are cut to; 0 for all. */
  readonly dimensions: number;
}

/**
 * Files that most folders have, which may be opened before the WebAssembly is there to say which
 * files it needs.
 */
const USUAL = [
  ...["config.json", "modules.json", "sentence_bert_config.json"],
  ...["config_sentence_transformers.json", "tokenizer_config.json"],
];

/** Begins to read what will be asked for. */
export async function prefetch(folder: Folder, task: Task): Promise<void> {
  const names = task.isReranker ? [USUAL[0], USUAL[3], USUAL[4]] : USUAL;
  await Promise.all(names.map((name) => readBytes(folder, name)));
}

/** The encoder that a folder describes. */
export async function describe(
  instance: Home,
  folder: Folder,
  task: Task,
): Promise<ModelEncoder> {
  const reader = new FolderReader(instance);
  try {
    for (;;) {
      const names = reader.needs(task);
      if (names.length === 0) return reader.encoder();
      const contents = names.map((name) => readBytes(folder, name));
      for (const [i, content] of (await Promise.all(contents)).entries()) {
        reader.give(names[i], content);
      }
    }
  } finally {
    reader.free();
  }
}
