// The package's manifest and types as tools read them: publint, and TypeScript with each
// way of looking for a module that knows ES modules.
//
// The types of what the libraries bring are checked too: nothing is skipped.

import assert from "node:assert/strict";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { packed, run } from "./packed.mjs";

const APP = "every-entry";
/** What the types of the React entry refer to. */
const REACT_TYPES = ["@types/react", "csstype"];
const WAYS = [
  { module: "ESNext", moduleResolution: "bundler" },
  { module: "Node16", moduleResolution: "node16" },
  { module: "NodeNext", moduleResolution: "nodenext" },
];

let npm;

before(async () => {
  npm = await packed([APP]);
  for (const name of REACT_TYPES) {
    const place = join(npm.folder, APP, "node_modules", name);
    await cp(join("node_modules", name), place, { recursive: true });
  }
});

after(() => npm?.remove());

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

test("an entry that the package does not have is no module", async () => {
  const app = join(npm.folder, APP);
  await writeFile(join(app, "main.ts"), 'import "framebatch/dist/index.js";');
  const compiled = run("node_modules/.bin/tsc", ["-p", app]);
  await assert.rejects(compiled, ({ stdout }) => /TS2882|TS2307/.test(stdout));
});
