// What comes out of folders, by the table that the native tests read too.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { chunk, manual, module } from "./face.mjs";
import { safetensors } from "./folder.mjs";

await module("embeddings/index");

const DATA = fileURLToPath(new URL("../../tests/data/", import.meta.url));
const HOME = join(DATA, "tiny-model");
const TABLE = JSON.parse(readFileSync(join(DATA, "folders.json"), "utf8"));

/** The files of the tiny model, but with weights as the fake asks for them. */
const TINY = new Map(
  readdirSync(HOME, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .map((path) => [path.slice(HOME.length + 1), readFileSync(path, "utf8")]),
);
const zeros = (length) => new Array(length).fill(0);
const square = (name) => [`layer.${name}.weight`, "F32", [64, 64], zeros(4096)];
const WEIGHTS = safetensors([
  ["words.weight", "F32", [128, 64], zeros(8192)],
  ...["query", "key", "value"].map(square),
  ["words.bias", "F32", [64], zeros(64)],
]);

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
    files.set(name, text);
  }
  for (const [name, text] of files) {
    files.set(name, new TextEncoder().encode(text));
  }
  return files.set("model.safetensors", WEIGHTS);
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

/** What the WebAssembly was told last, by the names of the table. */
function told() {
  const { sizes, epsilon } = chunk.encoders.at(-1);
  const [, , , , , , firstPosition, , isCls, normalize, maxTokens] = sizes;
  return {
    pooling: isCls === 1 ? "cls" : "mean",
    normalize: normalize === 1,
    ...{ epsilon, firstPosition, maxTokens },
  };
}

const hasWords =
  (about, words) =>
  ({ code, message }) => {
    assert.match(code, /^(unsupported|invalid-input)$/, about);
    for (const word of words) {
      assert.ok(message.includes(word), `${about}: ${message}\nlacks ${word}`);
    }
    return true;
  };

/** Sends what is queued and answers it. */
async function answered({ gpu, core }, result) {
  gpu.flush();
  core.answer();
  return await result;
}

for (const { name, files, refused, unsplit, config, ids } of TABLE) {
  test(`folder: ${name}`, async () => {
    const session = await manual();
    const loading = session.gpu.embedder(folderOf(files));
    if (refused) {
      await assert.rejects(loading, hasWords(name, refused));
      assert.equal(session.core.tensors.size, 0);
      return;
    }
    const embedder = await loading;
    const vector = embedder.embedIds([2, 5, 3]);
    assert.equal((await answered(session, vector)).length, 64);
    let held = 0;
    if (unsplit) {
      const words = [...unsplit, "embedIds"];
      await assert.rejects(embedder.embed("the cat"), hasWords(name, words));
      held += 1;
    }
    for (const [field, value] of Object.entries(config ?? {})) {
      assert.equal(told()[field], value, field);
      held += 1;
    }
    for (const [text, expected] of Object.entries(ids ?? {})) {
      const { length } = chunk.encoded;
      await answered(session, embedder.embed(text));
      assert.deepEqual(chunk.encoded.slice(length), [expected], text);
      held += 1;
    }
    assert.ok(held > 0, "the row says nothing");
    embedder.dispose();
  });
}
