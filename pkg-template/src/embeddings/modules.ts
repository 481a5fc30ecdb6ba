// What becomes of the vectors of a text's tokens: modules.json, and its pooling's file.
//
// What these vectors are, and of how many tokens, is the matter of `config.ts`.

import { invalid } from "../checks/errors.js";
import { Fields, readJson, shown, unsupported } from "./json-fields.js";
import { ABOUT, type Folder } from "./source.js";

/** How the vectors of tokens become one. */
export type Pooling = "mean" | "cls";

/** What stands behind an encoder. */
export interface Modules {
  readonly pooling: Pooling;
  /** Whether embeddings have length 1. */
  readonly normalize: boolean;
}

/** Where modules stand. */
export const MODULES = "modules.json";

/**
 * Names of folders, each in the one before. Anything else could be an address of its own,
 * or lead out of the model's folder.
 */
const PLAIN = /^[\w-]+([./][\w-]+)*$/;

/** What becomes of vectors of so many floats, by the value of that file. */
export async function modulesOf(
  folder: Folder,
  value: unknown,
  hidden: number,
): Promise<Modules> {
  // What sentence-transformers makes of a folder without modules.
  if (value === undefined) return { pooling: "mean", normalize: false };
  if (!Array.isArray(value)) {
    throw invalid(ABOUT, `${MODULES} must be a list of modules`);
  }
  const modules = value.map((module: unknown, i) => {
    const fields = Fields.of(`${MODULES}: [${i}]`, module);
    const type = fields.text("type").split(".").at(-1)!;
    const path = fields.text("path", "");
    if (path !== "" && !PLAIN.test(path)) {
      throw fields.wrong(
        "path",
        `must name a folder below by letters, digits, '_', '-' and '.', got ${shown(path)}`,
      );
    }
    return [type, path] as const;
  });
  const known = ["Transformer", "Pooling", "Normalize"];
  const [transformer, pooling] = modules;
  const isKnown =
    modules.length >= 2 &&
    modules.every(([type], i) => type === known[i]) &&
    transformer[1] === "" &&
    pooling[1] !== "";
  if (!isKnown) {
    throw unsupported(
      `${MODULES}: ${shown(modules)} is not known; Transformer in the folder, Pooling below and perhaps Normalize are`,
    );
  }
  const name = `${pooling[1]}/config.json`;
  const config = await readJson(folder, name);
  if (config === undefined) {
    throw invalid(ABOUT, `${name} is missing, which ${MODULES} names`);
  }
  const normalize = modules.length === 3;
  return { normalize, pooling: poolingOf(Fields.of(name, config), hidden) };
}

const MODE = "pooling_mode_";
const MEAN = `${MODE}mean_tokens`;

function poolingOf(fields: Fields, hidden: number): Pooling {
  if (!fields.flag("include_prompt", true)) {
    throw unsupported(
      `${fields.location}: include_prompt is false, and only true is known`,
    );
  }
  const width = fields.get("word_embedding_dimension") ?? hidden;
  if (width !== hidden) {
    throw fields.wrong(
      "word_embedding_dimension",
      `is ${shown(width)}, but hidden_size of config.json is ${hidden}`,
    );
  }
  // Said in a word, it overrides all flags; without either it is the mean.
  const word = fields.text("pooling_mode", "");
  const flags = fields.names().filter((name) => name.startsWith(MODE));
  const chosen =
    word === ""
      ? [...new Set([MEAN, ...flags])]
          .filter((name) => fields.flag(name, name === MEAN))
          .map((name) => name.slice(MODE.length))
      : [word];
  const [mode] = chosen;
  if (chosen.length === 1) {
    if (mode === "mean_tokens" || mode === "mean") return "mean";
    if (mode === "cls_token" || mode === "cls") return "cls";
  }
  throw unsupported(
    `${fields.location}: the pooling is ${shown(chosen)}, and only mean or cls is known`,
  );
}
