// Facts that are written down in Rust and in TypeScript are the same in both.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { face, module } from "./face.mjs";

const rust = (path) =>
  readFileSync(new URL(`../../src/${path}`, import.meta.url), "utf8");
const all = (text, pattern) =>
  [...text.matchAll(pattern)].map(([, name]) => name);

test("the codes and their order", () => {
  const source = rust("error/mod.rs");
  const order = all(
    source.match(/const ALL[^=]*= \[([^\]]*)\]/)[1],
    /Code::(\w+)/g,
  );
  const texts = new Map(
    [...source.matchAll(/Code::(\w+) => "([\w-]+)"/g)].map(([, name, text]) => [
      name,
      text,
    ]),
  );
  assert.deepEqual(
    order.map((name) => texts.get(name)),
    [...face.CODES],
  );
});

test("the options of a session", async () => {
  const names = all(
    rust("wasm/config.rs").match(/const NAMES[^=]*= \[([^\]]*)\]/)[1],
    /"(\w+)"/g,
  );
  const { message } = await face.open({ no: 1 }).catch((error) => error);
  const known = message.split("the options are ")[1].split(", ");
  const { coreConfig } = await module("session/open-options");
  const given = Object.fromEntries(known.map((name) => [name, 1]));
  const config = coreConfig({
    ...given,
    queueCapacity: { calls: 1, bytes: 1 },
  });
  assert.deepEqual(Object.keys(config).sort(), names.sort());
});

test("the names of the calls", async () => {
  const { METHODS } = await module("calls/methods");
  const names = all(rust("wasm/structure.rs"), /"([\w. ]+)" => /g);
  assert.deepEqual(
    METHODS.map(({ op }) => op),
    names,
  );
  assert.deepEqual(
    METHODS.map(({ index }) => index),
    [...METHODS.keys()],
  );
});

test("the statistics", async () => {
  const { openingStats } = await module("metrics/stats");
  const body = rust("wasm/report.rs").match(/fn stats\([^]*?\n\}/)[0];
  const flat = all(body, /"(\w+)", /g);
  const opening = openingStats(0);
  const names = Object.entries(opening).flatMap(([name, value]) =>
    typeof value === "object" && value !== null
      ? [name, ...Object.keys(value)]
      : name,
  );
  assert.deepEqual(flat.sort(), names.sort());
});

test("the facts of a batch", () => {
  const shape = readFileSync(
    new URL("../src/metrics/batch-facts.ts", import.meta.url),
    "utf8",
  );
  const names = all(shape, /^  (\w+):/gm);
  const body = rust("wasm/report.rs").match(/fn facts\([^]*?\n\}/)[0];
  const told = all(body, /"(\w+)", /g);
  assert.deepEqual(told.sort(), [...names, "first", "last"].sort());
});

test("the numbers that devices are chosen by", () => {
  const names = all(
    rust("session/cost_model.rs").match(/const FACTS[^=]*= \[([^\]]*)\]/)[1],
    /"(\w+)"/g,
  );
  const source = readFileSync(
    new URL("../src/metrics/stats.ts", import.meta.url),
    "utf8",
  );
  const fields = source.match(/interface Routing \{([^}]*)\}/)[1];
  assert.deepEqual(all(fields, /(\w+): number/g), names);
});
