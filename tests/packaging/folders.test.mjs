// What comes out of folders, by the table that the native tests read too: the reader is one, and
// this holds that the package asks it and tells what it says.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import "../../pkg/dist/embeddings.js";
import { open } from "../../pkg/dist/index.js";

const DATA = fileURLToPath(new URL("../data/", import.meta.url));
const HOME = join(DATA, "tiny-model");
const TABLE = JSON.parse(readFileSync(join(DATA, "folders.json"), "utf8"));

const TINY = new Map(
  readdirSync(HOME, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .map((path) => [path.slice(HOME.length + 1), readFileSync(path)]),
);

/**
 * The folder of a row: its changes as RFC 7386 has them. Files that are texts are taken
 * as they stand, others are JSON.
 */
function folderOf(changes) {
  const files = new Map(TINY);
  for (const [name, change] of Object.entries(changes)) {
    const known = files.get(name);
    files.delete(name);
    if (change === null) continue;
    const text =
      typeof change === "string"
        ? change
        : JSON.stringify(merged(known && JSON.parse(known), change));
    files.set(name, new TextEncoder().encode(text));
  }
  return files;
}

function merged(value, change) {
  const isObject = (value) =>
    typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject(change)) return change;
  const fields = isObject(value) ? { ...value } : {};
  for (const [name, field] of Object.entries(change)) {
    if (field === null) delete fields[name];
    else fields[name] = merged(fields[name], field);
  }
  return fields;
}

const hasWords = (code, words) => (error) => {
  assert.match(error.code, code);
  for (const word of words) {
    assert.ok(error.message.includes(word), `${error.message}\nlacks ${word}`);
  }
  return true;
};

const gpu = await open({ engine: "cpu" });
after(() => gpu.dispose());

for (const row of TABLE) {
  test(`folder: ${row.name}`, async () => {
    const { files, refused, code = "invalid-input" } = row;
    const loading = gpu.embedder(folderOf(files));
    if (refused) {
      await assert.rejects(loading, hasWords(new RegExp(`^${code}$`), refused));
      assert.equal(gpu.stats().tensors.f32, 0);
      return;
    }
    const embedder = await loading;
    assert.equal((await embedder.embedIds([2, 5, 3])).length, 64);
    let held = 0;
    if (row.unsplit) {
      const isSaid = hasWords(/./, [...row.unsplit, "embedIds"]);
      await assert.rejects(embedder.embed("the cat"), isSaid);
      held += 1;
    }
    const { pooling, normalized: normalize, maxTokens } = embedder.info;
    const told = { pooling, normalize, maxTokens };
    for (const [field, value] of Object.entries(row.config ?? {})) {
      // The native tests see more of a configuration than callers are told.
      if (field in told) assert.equal(told[field], value, field);
      held += 1;
    }
    for (const [text, ids] of Object.entries(row.ids ?? {})) {
      assert.deepEqual([...embedder.ids(text)], ids, text);
      held += 1;
    }
    assert.ok(held > 0, "the row says nothing");
    embedder.dispose();
  });
}
