// The examples of docs/libraries.md: of libraries and frameworks, which are published for
// bundlers, beside the package as the page has it. Those of LanceDB and Chroma run in
// tests/databases.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { before } from "node:test";
import { rolldown } from "rolldown";
import { compile } from "svelte/compiler";
import { compileScript, parse } from "vue/compiler-sfc";
import { BROWSER } from "../../tools/browser.mjs";
import { lightTest as test, openSite } from "./site.mjs";

const site = openSite();
const PAGE = readFileSync("docs/libraries.md", "utf8");

/** The examples in a language. */
const examples = (language) =>
  [...PAGE.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "gs"))].map(
    ([, code]) => code,
  );

/** A component of Vue as a module. */
function vueModule(source) {
  const { descriptor } = parse(source);
  const options = { id: "panel", inlineTemplate: true };
  return compileScript(descriptor, options).content;
}

/** A component of Svelte as a module. */
const svelteModule = (source) => compile(source, {}).js.code;

/** What opens and closes the panel of the example. */
const SVELTE_APP = `<script>
  import Panel from "example:panel.svelte.js";
  let isOpen = $state(false);
  export const setOpen = (open) => (isOpen = open);
</script>

<Panel {isOpen} />`;

/** The modules that have no file: the examples, as their compilers leave them. */
const MODULES = {
  "example:embedders.js": () => examples("js").join("\n"),
  "example:fleet.jsx": () => examples("jsx")[0],
  "example:panel.vue.js": () => vueModule(examples("vue")[0]),
  "example:panel.svelte.js": () => svelteModule(examples("svelte")[0]),
  "example:app.svelte.js": () => svelteModule(SVELTE_APP),
};

/** The entries that import no library stay what the page has. */
const OF_PAGE = {
  framebatch: "/pkg/dist/index.js",
  "framebatch/animation": "/pkg/dist/animation.js",
  "framebatch/embeddings": "/pkg/dist/embeddings.js",
  "./index.js": "/pkg/dist/index.js",
  "./animation.js": "/pkg/dist/animation.js",
};

const packageOfPage = {
  name: "package",
  resolveId(id, from) {
    if (id in MODULES) return { id, moduleSideEffects: true };
    const isOurs = id.startsWith("framebatch") || /pkg\/dist/.test(from ?? "");
    if (isOurs && id in OF_PAGE) {
      return { id: OF_PAGE[id], external: "absolute" };
    }
    const [, entry] = /^framebatch\/(.*)$/.exec(id) ?? [];
    if (entry !== undefined) return resolve(`pkg/dist/${entry}.js`);
    // What the examples import is found from here.
    const isBare = from in MODULES && !id.startsWith(".");
    return isBare ? this.resolve(id, resolve("tests/e2e/site.mjs")) : undefined;
  },
  load: (id) =>
    id in MODULES
      ? { code: MODULES[id](), moduleType: id.endsWith("x") ? "jsx" : "js" }
      : undefined,
};

before(async () => {
  const bundle = await rolldown({
    input: {
      embedders: "example:embedders.js",
      frameworks: "tests/e2e/pages/frameworks.js",
    },
    platform: "browser",
    plugins: [packageOfPage],
    resolve: { conditionNames: ["browser", "import", "default"] },
    checks: { moduleLevelDirective: false, eval: false },
    transform: { define: { "process.env.NODE_ENV": '"production"' } },
  });
  await bundle.write({ dir: `target/e2e/${BROWSER}` });
  await bundle.close();
});

test("the examples of embedders keep their word", () =>
  site.page(
    async (page) => {
      const prints = /console\.log.*; \/\/ (.*)$/gm;
      const code = examples("js").join("\n");
      const promised = [...code.matchAll(prints)].map(([, text]) => text);
      const printed = await page.evaluate(async () => {
        const printed = [];
        console.log = (...values) => printed.push(values.join(" "));
        await import("/built/embedders.js");
        return printed;
      });
      assert.ok(promised.length > 4);
      assert.deepEqual(printed, promised);
      // Files that a model's folder need not have.
    },
    { may: /404/ },
  ));

for (const framework of ["vue", "svelte"]) {
  test(`the panel of ${framework} moves, and leaves nothing`, () =>
    site.page(async (page) => {
      const found = await page.evaluate(async (framework) => {
        const { mount } = (await import("/built/frameworks.js"))[framework];
        const place = document.body.appendChild(document.createElement("p"));
        const panel = mount(place);
        const { style } = place.querySelector("aside");
        const seen = new Set();
        const look = async () => {
          await new Promise(requestAnimationFrame);
          seen.add(Number(style.opacity));
          return `${style.opacity} ${style.transform}`;
        };
        const start = await look();
        panel.setOpen(true);
        while ((await look()) !== "1 translateX(0px)");
        const between = [...seen].filter((x) => x > 0 && x < 1).length;
        panel.setOpen(false);
        while (Number(style.opacity) === 1) await look();
        const at = style.opacity;
        panel.unmount();
        await look();
        await look();
        const gpu = framebatch.shared();
        const { pending, rejected } = gpu.stats();
        return { start, between, at, later: style.opacity, pending, rejected };
      }, framework);
      assert.equal(found.start, "0 translateX(240px)");
      assert.ok(found.between > 0);
      assert.equal(found.at, found.later, "it stops with its component");
      assert.deepEqual([found.pending, found.rejected], [0, 0]);
    }));
}

test("a fleet of React Three Fiber is one submission a frame", () =>
  site.page(async (page) => {
    const found = await page.evaluate(async () => {
      const { fiber } = await import("/built/frameworks.js");
      const gpu = framebatch.shared({ engine: "gpu" });
      await gpu.ready;
      const fleet = await fiber.mount(50);
      const frame = async () => {
        fleet.advance(0.25);
        // Also the first frame, whose kernels are compiled.
        do await new Promise((done) => setTimeout(done, 20));
        while (gpu.stats().pending > 0);
      };
      await frame();
      const before = gpu.stats();
      await frame();
      const { batches, calls } = gpu.stats();
      const heights = fleet.heights();
      await fleet.unmount();
      return {
        batches: batches - before.batches,
        calls: calls - before.calls,
        heights,
      };
    });
    assert.deepEqual([found.batches, found.calls], [1, 50]);
    for (const [i, height] of found.heights.entries()) {
      const time = (0.5 + i / 50) % 1;
      assert.ok(Math.abs(height - 4 * time) < 1e-3, `${found.heights}`);
    }
  }));
