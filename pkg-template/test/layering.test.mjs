// The imports that folders of `src` may have, that no files import each other in a ring, and
// that files which comments name are there.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, posix } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const src = join(dirname(fileURLToPath(import.meta.url)), "..", "src");

/** From the bottom up: a file imports what is in its own folder or further down. */
const ORDER = [
  ["checks", "platform"],
  ["metrics"],
  ["core"],
  ["memory", "clock"],
  ["calls"],
  ["queue", "tensor", "stream"],
  ["results"],
  ["session"],
  ["index"],
  ["animation", "embeddings", "kernels", "search"],
  ["inline", "embeddings-inline", "worker"],
  ["libraries", "react", "svelte", "vue"],
];

/** Files beside the folders, because a bundle lies as deep as they do, and where they belong. */
const BESIDE = {
  "core-glue": "core",
  "embeddings-glue": "embeddings",
  "embeddings-tokenizers-glue": "embeddings",
  "script-folder": "platform",
};

const IMPORT =
  /^(?:import|export)\s+(type\s)?[^;]*?from\s+"(\.[^"]+)\.js";|^import\s+"(\.[^"]+)\.js";/gm;

/** What each file imports, and whether for its types alone. */
const imports = new Map(
  readdirSync(src, { recursive: true })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => [
      name.slice(0, -".ts".length),
      importsOf(name, readFileSync(join(src, name), "utf8")),
    ]),
);

function importsOf(name, text) {
  return [...text.matchAll(IMPORT)]
    .map(([statement, type, from, alone]) => ({
      file: posix.join(posix.dirname(name), from ?? alone),
      isType: type !== undefined || onlyTypes(statement),
    }))
    .filter(({ file }) => !file.startsWith("../"));
}

function onlyTypes(statement) {
  const [, names] = /\{([^}]*)\}/.exec(statement) ?? [];
  const list = names?.split(",").map((one) => one.trim());
  return list?.filter(Boolean).every((one) => one.startsWith("type ")) ?? false;
}

function folderOf(file) {
  return BESIDE[file] ?? file.split("/")[0];
}

function levelOf(file) {
  const level = ORDER.findIndex((names) => names.includes(folderOf(file)));
  assert.ok(level >= 0, `${file} is in no folder of the order`);
  return level;
}

test("imports go down from folder to folder, those of types too", () => {
  const up = [];
  for (const [file, others] of imports) {
    for (const { file: other } of others) {
      assert.ok(imports.has(other), `${file} imports ${other}`);
      const isOwn = folderOf(file) === folderOf(other);
      if (!isOwn && levelOf(other) >= levelOf(file)) up.push([file, other]);
    }
  }
  assert.deepEqual(up, []);
});

test("no files import each other in a ring, but for their types", () => {
  const done = new Set();
  const visit = (file, path) => {
    assert.ok(!path.includes(file), [...path, file].join(" -> "));
    if (done.has(file)) return;
    for (const { file: other, isType } of imports.get(file)) {
      if (!isType) visit(other, [...path, file]);
    }
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  assert.equal(done.size, imports.size);
});

test("every folder of the order is there", () => {
  const folders = new Set([...imports.keys()].map(folderOf));
  assert.deepEqual([...folders].sort(), ORDER.flat().sort());
});

test("files that comments name are there", () => {
  const names = new Set([...imports.keys()].map((file) => basename(file)));
  const missing = [];
  for (const file of imports.keys()) {
    const text = readFileSync(join(src, `${file}.ts`), "utf8");
    for (const [, named] of text.matchAll(/`([\w/-]+)\.ts`/g)) {
      const isThere = named.includes("/")
        ? imports.has(named)
        : names.has(named);
      if (!isThere) missing.push([file, named]);
    }
  }
  assert.deepEqual(missing, []);
});
