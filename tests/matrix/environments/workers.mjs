// Workers of every kind, and an extension of the browser.

import { join } from "node:path";
import { launch } from "../../../tools/browser.mjs";
import { serve } from "../../../tools/serve.mjs";

const INLINE = 'import "framebatch/inline"';
const HTML = (script) => `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>framebatch</title><link rel="icon" href="data:,"></head>
  <body><script type="module">${script}</script></body>
</html>`;

const SHOW = `({ data }) => {
  if (data.error) console.error(data.error);
  else document.body.dataset.found = JSON.stringify(data);
}`;
const worker = (
  first = "",
  engine = '"gpu"',
) => `${first && `${first};\n`}import { answers } from "./answers.js";
answers({ engine: ${engine} }).then(
  (found) => postMessage(found),
  (error) => postMessage({ error: String(error) }),
);
`;

async function served(app, folder) {
  const site = await serve({ "/": join(app.cwd, folder) });
  try {
    return [{ mode: "production", ...(await app.look(`${site.url}/`)) }];
  } finally {
    await site.close();
  }
}

/** Bundles a script; a classic one cannot import. */
const bundle = (app, script, format) =>
  app.exec("esbuild", [
    ...[script, "--bundle", `--format=${format}`, "--log-level=error"],
    `--outfile=dist/${script}`,
  ]);

const CLASSIC = '<script src="./main.js"></script>';

/** The script of a page whose session lives in a worker. */
const REMOTE = `import { open } from "framebatch/worker";
import { ask } from "./ask.js";
open({ engine: "gpu" }).then(ask).then(
  (found) => (document.body.dataset.found = JSON.stringify(found)),
  (error) => console.error(String(error)),
);
`;

export default [
  {
    name: "`framebatch/worker`, by Vite 8",
    packages: ["vite@8"],
    files: {
      "index.html": HTML('import "./main.js";'),
      "main.js": REMOTE,
      "vite.config.mjs": 'export default { worker: { format: "es" } };\n',
    },
    async run(app) {
      await app.exec("vite", ["build", "--logLevel", "warn"]);
      return served(app, "dist");
    },
  },
  {
    name: "`framebatch/worker`, by webpack",
    packages: ["webpack@5", "webpack-cli"],
    files: {
      "dist/index.html": HTML("").replace(/<script.*script>/, CLASSIC),
      "main.js": REMOTE,
    },
    async run(app) {
      await app.exec("webpack", ["./main.js", "--mode", "production"]);
      return served(app, "dist");
    },
  },
  {
    name: "a module worker, by Vite 8",
    packages: ["vite@8"],
    files: {
      "index.html": HTML(
        `const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" }); worker.onmessage = ${SHOW};`,
      ),
      "worker.js": worker(),
      "vite.config.mjs": 'export default { worker: { format: "es" } };\n',
    },
    async run(app) {
      await app.exec("vite", ["build", "--logLevel", "warn"]);
      return served(app, "dist");
    },
  },
  {
    name: "a classic worker",
    packages: ["esbuild"],
    steps: INLINE,
    files: {
      "dist/index.html": HTML(`new Worker("./worker.js").onmessage = ${SHOW};`),
      "worker.js": worker(INLINE),
    },
    async run(app) {
      await bundle(app, "worker.js", "iife");
      return served(app, "dist");
    },
  },
  {
    name: "a service worker",
    packages: ["esbuild"],
    steps: INLINE,
    files: {
      "dist/index.html": HTML(`
        await navigator.serviceWorker.register("./worker.js");
        const { active } = await navigator.serviceWorker.ready;
        navigator.serviceWorker.onmessage = ${SHOW};
        navigator.serviceWorker.startMessages();
        active.postMessage("ask");
      `),
      "worker.js": `${INLINE};
import { answers } from "./answers.js";
addEventListener("message", ({ source }) =>
  answers({ engine: "gpu" }).then(
    (found) => source.postMessage(found),
    (error) => source.postMessage({ error: String(error) }),
  ),
);
`,
    },
    async run(app) {
      await bundle(app, "worker.js", "iife");
      return served(app, "dist");
    },
  },
  {
    name: "an extension (Manifest V3)",
    packages: ["vite@8"],
    steps: "`wasm-unsafe-eval` in the manifest",
    files: {
      "index.html":
        '<!doctype html><html lang="en"><head><title>framebatch</title></head><body><script type="module" src="./main.js"></script></body></html>',
      "main.js": `import { answers } from "./answers.js";
answers({ engine: "gpu" }).then(
  (found) => (document.body.dataset.found = JSON.stringify(found)),
  (error) => console.error(String(error)),
);
`,
      "public/manifest.json": JSON.stringify({
        manifest_version: 3,
        name: "framebatch",
        version: "1",
        content_security_policy: {
          extension_pages: "script-src 'self' 'wasm-unsafe-eval'",
        },
        background: { service_worker: "background.js" },
      }),
      "public/background.js":
        "// The extension has an address once this runs.\n",
    },
    async run(app) {
      await app.exec("vite", ["build", "--logLevel", "warn"]);
      const folder = join(app.cwd, "dist");
      const browser = await launch({
        switches: [
          `--disable-extensions-except=${folder}`,
          `--load-extension=${folder}`,
          "--disable-features=DisableLoadExtensionCommandLineSwitch",
        ],
      });
      try {
        const target = await browser.waitForTarget(
          (target) => target.url().endsWith("/background.js"),
          { timeout: 30_000 },
        );
        const address = target.url().replace("background.js", "index.html");
        return [
          { mode: "production", ...(await app.look(address, { browser })) },
        ];
      } finally {
        await browser.close();
      }
    },
  },
];
