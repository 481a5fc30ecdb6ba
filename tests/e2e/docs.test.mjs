// The examples that people copy: they run, and print what they say they print.
//
// Links, what documents say of themselves, and the examples of Node are held by
// tests/packaging/documents.test.mjs.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { heavyTest, lightTest, openSite } from "./site.mjs";

const site = openSite();

/** What pages run; what other environments run is in documents.test.mjs and snippets.test.mjs. */
const examplesOf = (file) =>
  [...readFileSync(file, "utf8").matchAll(/```[jt]s\n(.*?)```/gs)].map(
    ([, code]) => code,
  );

// Those of other libraries need a bundler: libraries.test.mjs, snippets.test.mjs.
const BUNDLED = ["libraries.md", "migration.md"];
const PAGES = readdirSync("docs")
  .filter((name) => name.endsWith(".md") && !BUNDLED.includes(name))
  .map((name) => `docs/${name}`)
  .filter((page) => examplesOf(page).length > 0);

/** What embeds, and on a GPU compiles the kernels of an encoder. */
const HEAVY = ["pkg-template/README.md", "docs/embeddings.md"];

/** What a reader runs first: the same on any machine. */
const READMES = ["README.md", "pkg-template/README.md"];

// A software adapter, as in this test, sends examples to the CPU, unless the GPU is asked for.
const CASES = [
  ...[...READMES, ...PAGES].map((file) => [file, "the GPU", "/on-gpu.js"]),
  ...READMES.map((file) => [file, "the CPU", "/pkg/dist/index.js"]),
];

for (const [file, device, script] of CASES) {
  const isHeavy = HEAVY.includes(file) && device === "the GPU";
  const add = isHeavy ? heavyTest : lightTest;
  add(`${file}: the examples keep their word on ${device}`, () =>
    site.page(
      async (page) => {
        // Read from top to bottom: what one of them makes, the next one uses.
        const example = examplesOf(file).join("\n");
        const prints = /console\.log.*;(?: \/\/ (.*))?$/gm;
        const promised = [...example.matchAll(prints)].map(([, text]) => text);
        const printed = await page.evaluate(
          async (example, script) => {
            const printed = [];
            console.log = (...values) => printed.push(values.join(" "));
            const code = example.replaceAll(
              'from "framebatch"',
              `from ${JSON.stringify(location.origin + script)}`,
            );
            const blob = new Blob([code], { type: "text/javascript" });
            await import(URL.createObjectURL(blob));
            return printed;
          },
          example,
          script,
        );
        assert.ok(promised.length > 0);
        // Where an example promises nothing, its reader cannot know whether it works.
        assert.deepEqual(printed, promised);
        // Files that a model's folder need not have.
      },
      { may: /404/ },
    ),
  );
}
