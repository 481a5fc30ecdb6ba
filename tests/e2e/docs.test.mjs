// The examples that people copy: they run, and print what they say they print. And the
// files that documents name: they are there.
//
// What an example leaves open (`from`, `qa`, …) is given as globals of the page.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { openSite } from "./site.mjs";

const site = openSite();

for (const file of ["README.md", "pkg-template/README.md"]) {
  test(`${file}: the examples keep their word`, () =>
    site.page(
      async (page) => {
        const text = readFileSync(file, "utf8");
        // Read from top to bottom: what one of them makes, the next one uses.
        const examples = [...text.matchAll(/```[jt]s\n(.*?)```/gs)];
        const example = examples.map(([, code]) => code).join("\n");
        const prints = /console\.log.*;(?: \/\/ (.*))?$/gm;
        const promised = [...example.matchAll(prints)].map(([, text]) => text);
        const printed = await page.evaluate(async (example) => {
          Object.assign(window, {
            from: workload.floats(3, 1),
            to: workload.floats(3, 2),
            qa: workload.quaternions(2, 1),
            qb: workload.quaternions(2, 2),
            t: 0.5,
            states: workload.bytes(32, 3),
          });
          const printed = [];
          console.log = (...values) => printed.push(values.join(" "));
          // A software adapter, as in this test, would send the example to the CPU.
          const code = example.replace(
            '"framebatch"',
            JSON.stringify(`${location.origin}/on-gpu.js`),
          );
          const script = new Blob([code], { type: "text/javascript" });
          await import(URL.createObjectURL(script));
          return printed;
        }, example);
        assert.ok(examples.length >= 2 && promised.some(Boolean));
        assert.deepEqual(
          printed.map((text, i) => promised[i] && text),
          promised,
        );
        // Files that a model's folder need not have.
      },
      { may: /404/ },
    ));
}

for (const file of ["README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY"]) {
  test(`${file}.md names files that are there`, () => {
    const text = readFileSync(`${file}.md`, "utf8");
    const roots = "benches|examples|pkg-template|shaders|src|tests|tools|www";
    // Capitals stand for any name; what has braces is not read.
    const paths = new RegExp(`(?:\\]\\(|\`)((?:${roots})/[-\\w./]+)[)\`]`, "g");
    const named = [...text.matchAll(paths)].map(([, path]) => path);
    const missing = named.filter(
      (path) => !/[A-Z]{3}/.test(path) && !existsSync(path),
    );
    assert.ok(named.length > 0);
    assert.deepEqual(missing, []);
  });
}
