// The package's manifest and types as tools read them: publint, and TypeScript with each
// way of looking for a module that knows ES modules.
//
// The types of what the libraries bring are checked too: nothing is skipped.

import assert from "node:assert/strict";
import { cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { packed, run } from "./packed.mjs";

const APP = "every-entry";
/** What the types of the React entry refer to. */
const REACT_TYPES = ["@types/react", "csstype"];
/** An app of the libraries that adapters are for, whose own types are not all without errors. */
const LIBRARIES_APP = "libraries";
const LIBRARIES = [
  ...["@ai-sdk/provider", "@langchain/core", "@llamaindex/core"],
  ...["@orama/orama", "ai", "svelte", "vue"],
];
const WAYS = [
  { module: "ESNext", moduleResolution: "bundler" },
  { module: "Node16", moduleResolution: "node16" },
  { module: "NodeNext", moduleResolution: "nodenext" },
];

let npm;

before(async () => {
  npm = await packed([APP, LIBRARIES_APP]);
  await link(APP, "vue");
  for (const name of LIBRARIES) await link(LIBRARIES_APP, name);
  for (const name of REACT_TYPES) {
    const place = join(npm.folder, APP, "node_modules", name);
    await cp(join("node_modules", name), place, { recursive: true });
  }
});

after(() => npm?.remove());

/** Gives an app a library of the workspace, which finds there what it needs itself. */
async function link(app, name) {
  const place = join(npm.folder, app, "node_modules", name);
  await mkdir(dirname(place), { recursive: true });
  await symlink(resolve("node_modules", name), place);
}

test("publint finds nothing", async () => {
  const { buffer } = new Uint8Array(await readFile(npm.tarball));
  const { messages, pkg } = await publint({
    pack: { tarball: buffer },
    strict: true,
  });
  assert.deepEqual(
    messages.map((message) => formatMessage(message, pkg)),
    [],
  );
});

for (const way of WAYS) {
  test(`every entry has its types, by ${way.moduleResolution}`, async () => {
    const app = join(npm.folder, APP);
    const config = {
      compilerOptions: {
        ...way,
        target: "ES2022",
        lib: ["ES2022", "DOM", "ESNext.Disposable"],
        types: [],
        strict: true,
        noEmit: true,
        skipLibCheck: false,
      },
      include: ["main.ts"],
    };
    await writeFile(join(app, "tsconfig.json"), JSON.stringify(config));
    const compiled = run("node_modules/.bin/tsc", ["-p", app]);
    await assert.doesNotReject(compiled, ({ stdout }) => assert.fail(stdout));
  });
}

test("the adapters are what the libraries ask for", async () => {
  const app = join(npm.folder, LIBRARIES_APP);
  const config = {
    compilerOptions: {
      ...{ module: "NodeNext", target: "ES2022", types: [], strict: true },
      lib: ["ES2022", "DOM", "ESNext.Disposable"],
      ...{ noEmit: true, skipLibCheck: true },
      // The real ones are looked at in tests/databases.
      paths: {
        "@lancedb/lancedb/embedding": [
          resolve("pkg-template/types/lancedb.d.ts"),
        ],
      },
    },
    include: ["main.ts"],
  };
  await writeFile(join(app, "tsconfig.json"), JSON.stringify(config));
  const compiled = run("node_modules/.bin/tsc", ["-p", app]);
  await assert.doesNotReject(compiled, ({ stdout }) => assert.fail(stdout));
});

test("an entry that the package does not have is no module", async () => {
  const app = join(npm.folder, APP);
  await writeFile(join(app, "main.ts"), 'import "framebatch/dist/index.js";');
  const compiled = run("node_modules/.bin/tsc", ["-p", app]);
  await assert.rejects(compiled, ({ stdout }) => /TS2882|TS2307/.test(stdout));
});
