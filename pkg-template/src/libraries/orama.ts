// The entry for Orama: a plugin that computes vectors on insert and on search. Orama is not
// imported: its plugins are any objects of this shape, to which tests hold the one below.
//
// Orama looks at a hook's constructor to know whether to wait for it: hooks are async functions.

import {
  checkNames,
  invalid,
  Retrieval,
  RETRIEVAL_NAMES,
  type RetrievalOptions,
} from "./texts.js";

export type { RetrievalOptions, TextEmbedder } from "./texts.js";

/** What {@link pluginFramebatch} takes. */
export interface PluginFramebatchOptions extends RetrievalOptions {
  /** The properties whose texts are embedded, joined; one of an object within by `a.b`. */
  properties: readonly string[];
  /** The property of the schema that takes vectors: `vector[384]` for 384 floats. Default: `embeddings`. */
  vectorProperty?: string;
}

/** A document of Orama. */
export type OramaDocument = Record<string, unknown>;

/** What the plugin uses of a search. */
export interface OramaSearch {
  mode?: string;
  term?: string;
  vector?: { value: ArrayLike<number>; property: string };
}

/** A plugin of Orama, and a method that embeds many documents together. */
export interface PluginFramebatch {
  readonly name: string;
  /**
   * Gives documents their vectors, all of them in one submission, and resolves to the
   * documents. Without it `insertMultiple` embeds one document after the other.
   */
  embed<Document extends object>(documents: Document[]): Promise<Document[]>;
  beforeInsert(orama: unknown, id: string, document: object): Promise<void>;
  beforeInsertMultiple(orama: unknown, documents: object[]): Promise<void>;
  beforeUpsertMultiple(orama: unknown, documents: object[]): Promise<void>;
  beforeSearch(orama: unknown, search: object): Promise<void>;
}

const NAME = "pluginFramebatch";
const NAMES: Record<keyof PluginFramebatchOptions, true> = {
  properties: true,
  vectorProperty: true,
  ...RETRIEVAL_NAMES,
};

/** A vector of the plugin's, and what it was computed of. */
interface Computed {
  readonly text: string;
  readonly vector: number[];
}

/**
 * A plugin that embeds documents as they are inserted, and terms of searches by `vector` and
 * `hybrid` mode. Searches and inserts of a frame are one submission. A search that brings its
 * own vector keeps it. Errors are those of `embedder.embed`, with their codes.
 *
 * @example
 * const plugin = pluginFramebatch({ embedder, properties: ["title"] });
 * const db = create({ schema: { title: "string", embeddings: "vector[384]" }, plugins: [plugin] });
 * await insertMultiple(db, await plugin.embed(documents));
 * const { hits } = await search(db, { mode: "vector", term: "a cat", similarity: 0.5 });
 */
export function pluginFramebatch(
  options: PluginFramebatchOptions,
): PluginFramebatch {
  const { properties, vectorProperty: property = "embeddings" } = options;
  checkNames(NAME, options, NAMES);
  const texts = new Retrieval(NAME, options);
  const computed = new WeakMap<object, Computed>();

  async function embed(documents: object[]): Promise<void> {
    const waiting = documents
      .map((document) => ({
        document: document as OramaDocument,
        text: textOf(document, properties),
      }))
      .filter(({ document, text }) => {
        const { text: before, vector } = computed.get(document) ?? {};
        const isThere = before === text && vector === document[property];
        return text !== "" && !isThere;
      });
    const vectors = await texts.documents(waiting.map(({ text }) => text));
    waiting.forEach(({ document, text }, i) => {
      const vector = Array.from(vectors[i]);
      document[property] = vector;
      computed.set(document, { text, vector });
    });
  }

  return {
    name: "framebatch",
    async embed(documents) {
      await embed(documents);
      return documents;
    },
    async beforeInsert(_orama, _id, document) {
      await embed([document]);
    },
    // Orama does not run this hook, but without one `insertMultiple` would not wait for inserts.
    async beforeInsertMultiple(_orama, documents) {
      await embed(documents);
    },
    async beforeUpsertMultiple(_orama, documents) {
      await embed(documents);
    },
    async beforeSearch(_orama, given) {
      const search = given as OramaSearch;
      const { mode, term = "", vector } = search;
      if (mode !== "vector" && mode !== "hybrid") return;
      // The object may be that of a search before.
      const isOwn = vector?.value === computed.get(search)?.vector;
      if (vector?.value !== undefined && !isOwn) return;
      if (term === "") {
        throw invalid(NAME, `a search by ${mode} needs a term or a vector`);
      }
      const value = Array.from(await texts.query(term));
      search.vector = { property: vector?.property ?? property, value };
      computed.set(search, { text: term, vector: value });
    },
  };
}

/** The texts of a document's properties, joined; empty where it has none of them. */
function textOf(document: object, properties: readonly string[]): string {
  return properties
    .flatMap((path) => {
      let value: unknown = document;
      for (const name of path.split(".")) {
        value = (value as OramaDocument | undefined)?.[name];
      }
      return value as string | string[] | undefined;
    })
    .filter((text) => typeof text === "string" && text !== "")
    .join(". ");
}
