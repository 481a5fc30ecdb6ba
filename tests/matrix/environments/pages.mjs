// Bundlers of pages, and pages without one.
//
// Each environment is an app: its files, its packages, the steps beyond `npm install` that it
// needs, and `run`, which gives what each mode found. What `make test` asks has `quick`: what is
// different there.

import { join } from "node:path";
import { serve } from "../../../tools/serve.mjs";

const INLINE = 'import "framebatch/inline"';

const HTML = (script) => `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>framebatch</title><link rel="icon" href="data:,"></head>
  <body>${script}</body>
</html>`;
const MODULE = (src) => HTML(`<script type="module" src="${src}"></script>`);
const CLASSIC = (src) => HTML(`<script src="${src}"></script>`);

/** A page whose import map says where the package lies. */
const mapped = (at) => {
  const imports = {
    framebatch: `${at}/dist/index.js`,
    "framebatch/animation": `${at}/dist/animation.js`,
  };
  return HTML(
    `<script type="importmap">${JSON.stringify({ imports })}</script>` +
      '<script type="module" src="./main.js"></script>',
  );
};

/** The script of a page: it asks, and shows what it found. */
const main = (
  first = "",
) => `${first && `${first};\n`}import { answers } from "./answers.js";
answers({ engine: "gpu" }).then(
  (found) => (document.body.dataset.found = JSON.stringify(found)),
  (error) => console.error(String(error)),
);
`;

/** Serves what was built, and looks at it. */
async function built(app, folder, mode = "production") {
  const site = await serve({ "/": join(app.cwd, folder) });
  try {
    return { mode, ...(await app.look(`${site.url}/`)) };
  } finally {
    await site.close();
  }
}

async function webpacked(app) {
  await app.exec("webpack", ["--mode", "production"]);
  await app.exec("cp", ["public/index.html", "dist/"]);
  return built(app, "dist");
}

/** Has a server of development started, and looks at it. */
async function developed(app, command, args, options) {
  const address = await app.start(command, args, options);
  try {
    return { mode: "development", ...(await app.look(`${address}/`)) };
  } finally {
    await app.stop();
  }
}

const vite = (version) => ({
  name: `Vite ${version}`,
  packages: [`vite@${version}`],
  files: { "index.html": MODULE("/main.js"), "main.js": main() },
  async run(app) {
    await app.exec("vite", ["build", "--logLevel", "warn"]);
    const args = [
      "--host",
      "127.0.0.1",
      "--port",
      "0",
      "--clearScreen",
      "false",
    ];
    return [await built(app, "dist"), await developed(app, "vite", args)];
  },
});

const PACK = {
  entry: "./main.js",
  output: { path: "DIST", filename: "main.js", clean: true },
};
const packConfig = (extra) => `
const config = ${JSON.stringify({ ...PACK, ...extra })};
config.output.path = new URL("./dist", import.meta.url).pathname;
config.devServer = { host: "127.0.0.1", port: "auto", static: "./public", hot: false, liveReload: false, client: false };
export default config;
`;
const packFiles = (name) => ({
  [`${name}.config.mjs`]: packConfig({}),
  "main.js": main(),
  "public/index.html": CLASSIC("/main.js"),
});

/** A page that a bundler without assets builds into one script. */
const one = (name, packages, build, more = {}) => ({
  name,
  packages,
  steps: INLINE,
  files: {
    "main.js": main(INLINE),
    "dist/index.html": MODULE("/main.js"),
    ...more,
  },
  async run(app) {
    await build(app);
    return [await built(app, "dist")];
  },
});

export default [
  vite(8),
  vite(7),
  {
    name: "webpack",
    packages: ["webpack@5", "webpack-cli", "webpack-dev-server"],
    files: packFiles("webpack"),
    async run(app) {
      const args = ["serve", "--mode", "development"];
      return [await webpacked(app), await developed(app, "webpack", args)];
    },
    // Its server brings two hundred packages.
    quick: {
      packages: ["webpack@5", "webpack-cli"],
      run: async (app) => [await webpacked(app)],
    },
  },
  {
    name: "Rspack",
    packages: ["@rspack/core", "@rspack/cli", "@rspack/dev-server"],
    files: packFiles("rspack"),
    async run(app) {
      await app.exec("rspack", ["build", "--mode", "production"]);
      await app.exec("cp", ["public/index.html", "dist/"]);
      const args = ["serve", "--mode", "development"];
      return [await built(app, "dist"), await developed(app, "rspack", args)];
    },
  },
  one("Rollup", ["rollup", "@rollup/plugin-node-resolve"], (app) =>
    app.exec("rollup", [
      ...["main.js", "--file", "dist/main.js", "--format", "es"],
      ...["--plugin", "node-resolve", "--silent"],
    ]),
  ),
  {
    ...one("esbuild", ["esbuild"], (app) =>
      app.exec("esbuild", [
        ...["main.js", "--bundle", "--minify", "--format=esm"],
        ...["--outfile=dist/main.js", "--log-level=warning"],
      ]),
    ),
    quick: {},
  },
  {
    name: "esbuild, the file copied",
    packages: ["esbuild"],
    steps: "copy `framebatch_bg.wasm` beside the bundle",
    files: { "main.js": main(), "dist/index.html": MODULE("/main.js") },
    async run(app) {
      await app.exec("esbuild", [
        ...["main.js", "--bundle", "--minify", "--format=esm"],
        ...["--outfile=dist/main.js", "--log-level=warning"],
      ]);
      const file = "node_modules/framebatch/wasm/framebatch_bg.wasm";
      await app.exec("cp", [file, "dist/"]);
      return [await built(app, "dist")];
    },
  },
  {
    name: "Parcel 2",
    packages: ["parcel@2"],
    files: { "src/index.html": MODULE("../main.js"), "main.js": main() },
    async run(app) {
      const common = ["--no-cache", "--log-level", "warn"];
      await app.exec("parcel", ["build", "src/index.html", ...common]);
      const args = ["serve", "src/index.html", "--no-cache", "--no-hmr"];
      const site = ["--host", "127.0.0.1", "--port", String(app.shared.port())];
      return [
        await built(app, "dist"),
        await developed(app, "parcel", [...args, ...site]),
      ];
    },
  },
  one("Bun, `bun build`", ["bun"], (app) =>
    app.exec("bun", [
      ...["build", "main.js", "--minify", "--format=esm", "--target=browser"],
      ...["--outfile=dist/main.js"],
    ]),
  ),
  {
    name: "Angular",
    packages: [
      ...["@angular/core", "@angular/common", "@angular/compiler"],
      ...["@angular/compiler-cli", "@angular/platform-browser"],
      ...["@angular/build", "@angular/cli", "rxjs", "tslib", "typescript@6.0"],
    ],
    steps: INLINE,
    needsNewerNode: true,
    files: {
      "angular.json": JSON.stringify({
        version: 1,
        projects: {
          app: {
            projectType: "application",
            root: "",
            sourceRoot: "src",
            architect: {
              build: {
                builder: "@angular/build:application",
                options: {
                  browser: "src/main.ts",
                  index: "src/index.html",
                  tsConfig: "tsconfig.json",
                  outputPath: "dist",
                },
                configurations: {
                  development: { optimization: false, sourceMap: true },
                },
              },
              serve: {
                builder: "@angular/build:dev-server",
                options: { buildTarget: "app:build:development" },
              },
            },
          },
        },
      }),
      "tsconfig.json": JSON.stringify({
        compilerOptions: {
          target: "ES2022",
          module: "preserve",
          moduleResolution: "bundler",
          lib: ["ES2022", "DOM", "ESNext.Disposable"],
          strict: true,
          skipLibCheck: true,
          allowJs: true,
          experimentalDecorators: true,
        },
        files: ["src/main.ts"],
      }),
      "src/index.html": HTML("<app-root></app-root>"),
      "src/main.ts": `import "framebatch/inline";
import { Component } from "@angular/core";
import { bootstrapApplication } from "@angular/platform-browser";
import { answers } from "../answers.js";

@Component({ selector: "app-root", template: "" })
class Root {
  constructor() {
    void answers({ engine: "gpu" }).then((found: unknown) => {
      document.body.dataset["found"] = JSON.stringify(found);
    });
  }
}
void bootstrapApplication(Root);
`,
    },
    async run(app) {
      await app.exec("ng", ["build"]);
      const port = String(app.shared.port());
      const args = [
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        port,
        "--live-reload=false",
      ];
      return [
        await built(app, "dist/browser"),
        await developed(app, "ng", args),
      ];
    },
  },
  {
    name: "HTML with an import map",
    steps: "an import map",
    files: {
      "index.html": mapped("./node_modules/framebatch"),
      "main.js": main(),
    },
    run: async (app) => [await built(app, ".")],
  },
  {
    name: "the same, from another origin (a CDN)",
    steps: "an import map",
    files: { "main.js": main() },
    async run(app) {
      const headers = () => ({ "access-control-allow-origin": "*" });
      const mounts = { "/": join(app.cwd, "node_modules/framebatch") };
      const cdn = await serve(mounts, { headers });
      try {
        await app.write({ "index.html": mapped(cdn.url) });
        return [await built(app, ".")];
      } finally {
        await cdn.close();
      }
    },
  },
];
