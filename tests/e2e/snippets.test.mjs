// The examples that need a bundler or a page of their own: both sides of docs/migration.md,
// the page without a bundler and the component of React of docs/start.md, the panel of
// docs/react.md. Those of docs/libraries.md are in libraries.test.mjs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { before } from "node:test";
import { rolldown } from "rolldown";
import { BROWSER } from "../../tools/browser.mjs";
import { lightTest as test, openSite } from "./site.mjs";

const site = openSite();

/** The examples of a document in a language. */
const examples = (name, language) =>
  [
    ...readFileSync(`docs/${name}.md`, "utf8").matchAll(
      new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "gs"),
    ),
  ].map(([, code]) => code);

const migrations = examples("migration", "js");

/** React's panel needs the rest of an app around it. */
const PANEL = `import { createRoot } from "react-dom/client";
const element = document.querySelector("#root");
${examples("react", "jsx")[0]}`;

const MODULES = Object.fromEntries([
  ...migrations.map((code, at) => [`migration-${at}.js`, code]),
  ["start.jsx", examples("start", "jsx")[0]],
  ["panel.jsx", PANEL],
]);

/** The entries that the page has; those for frameworks are bundled, as an app does. */
const OF_PAGE = ["index", "animation", "embeddings", "kernels"];

const asInAnApp = {
  name: "snippets",
  resolveId(id, from) {
    if (id in MODULES) return { id, moduleSideEffects: true };
    const isBeside = id.startsWith("./") && /pkg\/dist/.test(from ?? "");
    const isOurs = id.startsWith("framebatch") || isBeside;
    if (isOurs) {
      const [, entry = "index"] =
        /^(?:framebatch|\.)\/(.+?)(?:\.js)?$/.exec(id) ?? [];
      if (!OF_PAGE.includes(entry)) return resolve(`pkg/dist/${entry}.js`);
      return { id: `/pkg/dist/${entry}.js`, external: "absolute" };
    }
    // What the examples import is found from here.
    return from in MODULES
      ? this.resolve(id, resolve("tests/e2e/site.mjs"))
      : undefined;
  },
  load: (id) =>
    id in MODULES
      ? { code: MODULES[id], moduleType: id.endsWith("x") ? "jsx" : "js" }
      : undefined,
};

before(async () => {
  const bundle = await rolldown({
    input: Object.keys(MODULES),
    platform: "browser",
    plugins: [asInAnApp],
    onLog: () => {},
    transform: { define: { "process.env.NODE_ENV": '"development"' } },
  });
  await bundle.write({
    dir: `target/e2e/${BROWSER}`,
    entryFileNames: "snippets/[name].js",
    chunkFileNames: "snippets/[name]-[hash].js",
  });
  await bundle.close();
});

/** Runs a bundled example, and gives what it printed. */
const printed = (page, name) =>
  page.evaluate(async (address) => {
    const lines = [];
    console.log = (...values) => lines.push(values.join(" "));
    await import(address);
    return lines;
  }, `/built/snippets/${name}.js`);

const promised = (code) =>
  [...code.matchAll(/console\.log.*; \/\/ (.*)$/gm)].map(([, text]) => text);

test("docs/migration.md: both sides of each pair say the same", () => {
  const said = migrations.map((code) => promised(code).join("\n"));
  const isOfOthers = (code) => !code.includes('from "framebatch"');
  const before = migrations.flatMap((code, at) => (isOfOthers(code) ? at : []));
  assert.equal(before.length, 4);
  for (const at of before) assert.equal(said[at], said[at + 1]);
});

for (const [at, code] of migrations.entries()) {
  const [first] = code.split("\n");
  test(`docs/migration.md: ${first}`, () =>
    site.page(
      async (page) => {
        assert.ok(promised(code).length > 0);
        assert.deepEqual(
          await printed(page, `migration-${at}`),
          promised(code),
        );
        // Files that a model's folder need not have.
      },
      { may: /404/ },
    ));
}

test("docs/start.md: the page without a bundler", () =>
  site.page(async (page) => {
    const [html] = examples("start", "html");
    const [, expected] = /textContent = .*; \/\/ (.*)$/m.exec(html);
    await page.setContent(
      html.replaceAll("./node_modules/framebatch/", "/pkg/"),
    );
    const said = () => page.$eval("output", (output) => output.textContent);
    await page.waitForFunction(
      () => document.querySelector("output").textContent !== "computing",
    );
    assert.equal(await said(), expected);
  }));

test("docs/start.md: the component moves when it is asked to", () =>
  site.page(async (page) => {
    await page.evaluate(async () => {
      document.body.innerHTML = '<div id="root"></div>';
      await import("/built/snippets/start.js");
    });
    await page.waitForSelector("#root button");
    await page.click("#root button");
    await page.waitForFunction(() => {
      const { transform } = document.querySelector("#root button").style;
      return transform === "translateX(240px)";
    });
  }));

test("docs/react.md: the panel is there", () =>
  site.page(async (page) => {
    await page.evaluate(async () => {
      document.body.innerHTML = '<div id="root"></div>';
      await import("/built/snippets/panel.js");
    });
    await page.waitForFunction(
      () => document.querySelector("#root aside")?.style.opacity === "1",
    );
  }));
