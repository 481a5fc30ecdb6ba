// Builds the site: the documents as pages, the API of both faces, the demos and the records,
// in one folder that any server of files can hold.
//
//   node tools/site.mjs                     www/site/dist, for the root of a host
//   SITE_BASE=/framebatch/ node tools/site.mjs    for a folder of a host
//   node tools/site.mjs --serve             serves what was built
//
// The command compiles nothing: `make site` makes the demos (www/dist) and the crate's
// documents (target/rustdoc) before.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { addressOf, apiOf, COPIED, groups } from "../www/site/pages.mjs";
import { GUIDES, llms } from "../www/site/pages.mjs";
import { PRODUCT } from "../www/site/product.mjs";
import { serve } from "./serve.mjs";

const run = promisify(execFile);
const OUT = "www/site/dist";
const BASE = process.env.SITE_BASE ?? "/";

/** What a visitor may want without a network, at once; other paths when they were looked at. */
const AHEAD =
  /^(index\.html|404\.html|hashmap\.json|vp-icons\.css|docs\/[^/]+\.html|[A-Za-z]+\.html|assets\/(chunks\/)?(?!(benches|docs_decisions)_)[^/]+)$/;
const LATER = ["api/", "assets/", "benches/", "docs/", "live/"];
/** A model beside the search page is kept by the package itself. */
const NEVER = ["live/search/model/"];

if (process.argv.includes("--serve")) {
  const mounts = { "/live/search/model/": "models/minilm", "/": OUT };
  const { url } = await serve(mounts);
  console.log(`The site is at ${url} (Ctrl-C ends it)`);
} else {
  await build();
}

async function build() {
  rmSync(OUT, { recursive: true, force: true });
  // The first empties the folder that the others write to.
  await run(bin("vitepress"), ["build", "www/site"], { maxBuffer: 2 ** 26 });
  await typedoc(bin("typedoc"));
  rustdoc();
  live();
  for (const name of filesIn("benches/record")) {
    const path = `benches/record/${name}`;
    if (COPIED.test(path)) copy(path, path);
  }
  writeMarkdown();
  writeOffline();
  console.log(`the site is in ${OUT}: ${filesIn(OUT).length} files`);
}

/** A program of the site's workspace, which npm may keep in the root's folder. */
function bin(name) {
  const places = ["www/site/", ""].map(
    (folder) => `${folder}node_modules/.bin/${name}`,
  );
  return places.find((path) => existsSync(path)) ?? name;
}

/** The API of the package's entries, each of which names its guide. */
async function typedoc(program) {
  const out = join(OUT, "api/js");
  const options = {
    name: "framebatch",
    entryPoints: entryPoints(),
    tsconfig: "pkg-template/tsconfig.json",
    plugin: [resolve("www/site/typedoc-entries.mjs")],
    out,
    readme: "none",
    navigationLinks: { Documents: BASE },
    excludePrivate: true,
    excludeInternal: true,
    // The sources are checked by the compiler that builds them, which is a newer one.
    skipErrorChecking: true,
    validation: { notExported: false },
    disableGit: true,
    disableSources: true,
    logLevel: "Error",
  };
  const file = resolve("target/typedoc.json");
  mkdirSync("target", { recursive: true });
  writeFileSync(file, JSON.stringify({ ...options, ...absolute(options) }));
  await run(program, ["--options", file], { maxBuffer: 2 ** 26 });
  for (const [entry, guide] of Object.entries(GUIDES)) {
    linkBack(join(OUT, apiOf(entry)), guide);
  }
}

/** TypeDoc reads paths from where its options lie. */
function absolute({ entryPoints, tsconfig, out }) {
  return {
    entryPoints: entryPoints.map((path) => resolve(path)),
    tsconfig: resolve(tsconfig),
    out: resolve(out),
  };
}

/** The source of each entry that the package's manifest exports with types of its own. */
function entryPoints() {
  const manifest = JSON.parse(readFileSync("pkg-template/package.json"));
  const types = Object.values(manifest.exports)
    .map((entry) => entry.types)
    .filter((path) => path?.startsWith("./dist/"));
  return types.map((path) =>
    path.replace("./dist", "pkg-template/src").replace(/\.d\.ts$/, ".ts"),
  );
}

function linkBack(file, guide) {
  const page = readFileSync(file, "utf8");
  const link = `<p><a href="${BASE}docs/${guide}.html">The guide to this entry</a></p>`;
  const linked = page.replace(/(<h1>.*?<\/h1>)/s, `$1${link}`);
  if (linked === page) throw new Error(`${file} has no title`);
  writeFileSync(file, linked);
}

/** The crate's documents, whose first page links back. */
function rustdoc() {
  const out = join(OUT, "api/rust");
  cpSync("target/rustdoc/doc", out, { recursive: true });
  const file = join(out, "framebatch/index.html");
  const page = readFileSync(file, "utf8");
  const link = `<p><a href="${BASE}docs/native.html">The guide to the crate</a>, <a href="${BASE}">all documents</a></p>`;
  const linked = page.replace(/(<details class="toggle top-doc")/, `${link}$1`);
  if (linked === page) throw new Error(`${file} has another form`);
  writeFileSync(file, linked);
}

/** The demos and the bench, each with a way back to the documents. */
function live() {
  const out = join(OUT, "live");
  cpSync("www/dist", out, { recursive: true });
  const link = `<p class="documents"><a href="${BASE}">framebatch: documents</a></p>`;
  for (const name of filesIn(out).filter((name) => name.endsWith(".html"))) {
    const file = join(out, name);
    const page = readFileSync(file, "utf8");
    writeFileSync(file, page.replace(/<header>/, `$&${link}`));
  }
}

/** `llms.txt`, and the pages that it names as they are written. */
function writeMarkdown() {
  writeFileSync(join(OUT, "llms.txt"), llms(".", PRODUCT));
  for (const { pages } of groups(".")) {
    for (const { file } of pages) {
      copy(file, addressOf(file).replace(/\.html$/, ".md"));
    }
  }
}

/** The service worker, with the files that it keeps. */
function writeOffline() {
  const files = filesIn(OUT).filter((path) => AHEAD.test(path));
  const hash = createHash("sha256");
  for (const path of files)
    hash.update(path).update(readFileSync(join(OUT, path)));
  const version = hash.digest("hex").slice(0, 16);
  const list = { version, ahead: files, later: LATER, never: NEVER };
  const script = readFileSync("www/site/offline.js", "utf8");
  const written = script.replace("SITE_FILES", JSON.stringify(list));
  writeFileSync(join(OUT, "offline.js"), written);
}

function copy(from, to) {
  const target = join(OUT, to);
  mkdirSync(dirname(target), { recursive: true });
  cpSync(from, target);
}

function filesIn(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((name) => statSync(join(folder, name)).isFile())
    .map((name) => relative(folder, join(folder, name)))
    .sort();
}
