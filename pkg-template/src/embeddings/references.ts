// The vectors that a converted folder has of its model: `framebatch convert` writes them.

import type { Config } from "./config.js";
import { decode, Fields, parse, readBytes, shown } from "./json-fields.js";
import type { Reference } from "./model.js";
import { type Folder, missing } from "./source.js";

const NAME = "framebatch.json";

/** Texts of the model as it was, by the tokens of each. */
export async function readReferences(
  folder: Folder,
  { vocabulary, maxTokens, dimensions }: Config,
): Promise<Reference[]> {
  const bytes = await readBytes(folder, NAME);
  if (bytes === undefined) throw missing(NAME);
  const file = Fields.ofFile(NAME, parse(NAME, decode(bytes)));
  return file.list("references").map((one, at) => {
    const fields = Fields.of(`${NAME}: references[${at}]`, one);
    const ids = fields.list("ids");
    const isId = (id: unknown): boolean =>
      Number.isInteger(id) &&
      0 <= (id as number) &&
      (id as number) < vocabulary;
    if (ids.length === 0 || ids.length > maxTokens || !ids.every(isId)) {
      throw fields.wrong(
        "ids",
        `must be 1 to ${maxTokens} tokens below ${vocabulary}, got ${shown(ids)}`,
      );
    }
    const vector = fields.list("vector");
    if (vector.length !== dimensions || !vector.every(Number.isFinite)) {
      throw fields.wrong(
        "vector",
        `must have ${dimensions} numbers, got ${shown(vector)}`,
      );
    }
    return {
      ids: Uint32Array.from(ids as number[]),
      vector: Float32Array.from(vector as number[]),
    };
  });
}
