// The examples that people copy: they run, and print what they say they print.
//
// What an example leaves open (`from`, `qa`, …) is given as globals of the page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { openSite } from "./site.mjs";

const site = openSite();

for (const file of ["README.md", "pkg-template/README.md"]) {
  test(`${file}: the first example keeps its word`, () =>
    site.page(async (page) => {
      const example = /```[jt]s\n(.*?)```/s.exec(readFileSync(file, "utf8"))[1];
      const promised = [...example.matchAll(/console\.log.*; \/\/ (.*)$/gm)];
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
      assert.ok(printed.length > 0, "the example prints nothing");
      assert.deepEqual(
        printed.slice(printed.length - promised.length),
        promised.map(([, text]) => text),
      );
    }));
}
