// The examples that people copy: they run, and print what they say they print.
//
// Links, and what documents say of themselves, are held by
// tests/packaging/documents.test.mjs.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { openSite } from "./site.mjs";

const site = openSite();

/** What is JavaScript in a document; React's needs a compiler. */
const examplesOf = (file) =>
  [...readFileSync(file, "utf8").matchAll(/```[jt]s\n(.*?)```/gs)].map(
    ([, code]) => code,
  );

const PAGES = readdirSync("docs")
  .filter((name) => name.endsWith(".md"))
  .map((name) => `docs/${name}`)
  .filter((page) => examplesOf(page).length > 0);

for (const file of ["README.md", "pkg-template/README.md", ...PAGES]) {
  test(`${file}: the examples keep their word`, () =>
    site.page(
      async (page) => {
        // Read from top to bottom: what one of them makes, the next one uses.
        const example = examplesOf(file).join("\n");
        const prints = /console\.log.*;(?: \/\/ (.*))?$/gm;
        const promised = [...example.matchAll(prints)].map(([, text]) => text);
        const printed = await page.evaluate(async (example) => {
          const printed = [];
          console.log = (...values) => printed.push(values.join(" "));
          // A software adapter, as in this test, would send the example to the CPU.
          const code = example.replaceAll(
            'from "framebatch"',
            `from ${JSON.stringify(`${location.origin}/on-gpu.js`)}`,
          );
          const script = new Blob([code], { type: "text/javascript" });
          await import(URL.createObjectURL(script));
          return printed;
        }, example);
        assert.ok(promised.some(Boolean));
        assert.deepEqual(
          printed.map((text, i) => promised[i] && text),
          promised,
        );
        // Files that a model's folder need not have.
      },
      { may: /404/ },
    ));
}
