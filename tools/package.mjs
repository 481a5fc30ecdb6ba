// Assembles the npm package from what the compilers left in target/.
//
//   node tools/package.mjs GLUE SCALAR EMBEDDINGS FACE PACKAGE
//
// GLUE is wasm-pack's folder, SCALAR that of the build without vectors, EMBEDDINGS
// that of what embeddings need besides, FACE is tsc's. Each entry becomes a minified
// script, beside one that all entries share. The WebAssembly loses what only says why it
// traps, is optimised for size and put in an order that compresses; the glue of both builds
// must be the same. wasm-pack's own package.json, README and .gitignore stay behind. The
// manifest gets the address of the repository, and beside the manifest lie the notices of
// what others wrote. The tool fails when a page would load more than its budget, with
// embeddings or without.

import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, relative, resolve } from "node:path";
import { rolldown } from "rolldown";
import { npmFields, PAGES, repositoryAddress } from "./address.mjs";
import { factory } from "./glue-factory.mjs";
import { notices } from "./notices.mjs";
import { optimize } from "./optimize.mjs";
import { order } from "./reorder-functions.mjs";
import { blankLocations } from "./strip-locations.mjs";
import { shorten } from "./shorten-imports.mjs";
import { emptied, TRAPS } from "./strip-panics.mjs";

/** The scripts that applications import, and what each is made of: a folder, but for the first. */
const ENTRIES = {
  index: "index.js",
  animation: "animation/index.js",
  embeddings: "embeddings/index.js",
  kernels: "kernels/index.js",
  search: "search/index.js",
};

/** The scripts that import other entries instead of holding them, and what each is made of. */
const WRAPPERS = { react: "react/index.js" };
const OTHERS = {
  "../index.js": "./index.js",
  "../animation/index.js": "./animation.js",
};

/** What wasm-opt leaves out: nothing that a browser reads. */
const STRIPPED = ["debug", "producers", "target-features"].map(
  (section) => `--strip-${section}`,
);

/**
 * Bytes, gzip, of scripts and the WebAssembly that a page loads with the first entry: 236,000
 * for calls and tensors, 2,000 for choosing between frames and tasks, 8,000 for priorities,
 * 2,800 for tuning to the load, 5,000 for what simulations compute with, 3,900 for tensors in
 * buffers of the page, 23,700 for results that stay on the device, 4,000 for vectors that go
 * from tensors into indexes, 2,200 for what is told of batches, and 13,400 for what kernels of
 * a page's own need.
 */
const BUDGET = 301_000;

/** The limit with the entry of embeddings: what a page loads before the first embedding. */
const EMBEDDINGS_BUDGET = 360_600;

const PAPERS = {
  "pkg-template/README.md": "README.md",
  "CHANGELOG.md": "CHANGELOG.md",
  "LICENSE-MIT": "LICENSE-MIT",
  "LICENSE-APACHE": "LICENSE-APACHE",
  ...Object.fromEntries(PAGES.map((page) => [page, page])),
};

const [glue, scalar, embeddings, face, target] = process.argv
  .slice(2)
  .map((path) => resolve(path));
rmSync(target, { recursive: true, force: true });
mkdirSync(join(target, "wasm"), { recursive: true });

const text = assemble(glue, "framebatch", "framebatch_bg.wasm", ["simd"]);
if (assemble(scalar, "framebatch", "framebatch_bg_scalar.wasm", []) !== text) {
  throw new Error("the builds with and without vectors differ in their glue");
}
const glues = {
  framebatch: [glue, text],
  embeddings: [
    embeddings,
    assemble(embeddings, "embeddings", "embeddings_bg.wasm", []),
  ],
};
for (const [name, [folder, text]] of Object.entries(glues)) {
  const file = join(folder, `${name}.short.js`);
  writeFileSync(file, factory(text));
  await minify({ [name]: file }, join(target, "wasm"));
}
await minify(scripts(ENTRIES), join(target, "dist"), { isShared });
await minify(scripts(WRAPPERS), join(target, "dist"), { others: OTHERS });
for (const name of readdirSync(face, { recursive: true })) {
  if (name.endsWith(".d.ts"))
    cpSync(join(face, name), join(target, "dist", name));
}

for (const [from, to] of Object.entries(PAPERS)) cpSync(from, join(target, to));
writeFileSync(join(target, "THIRD-PARTY-NOTICES.txt"), notices());
writeFileSync(join(target, "package.json"), manifest());
checkSize();

/** The manifest of the package: its template without scripts, and where the repository is. */
function manifest() {
  const template = JSON.parse(
    readFileSync("pkg-template/package.json", "utf8"),
  );
  const fields = npmFields(repositoryAddress("."));
  const whole = { ...template, scripts: undefined, ...fields };
  return `${JSON.stringify(whole, null, 2)}\n`;
}

/** Optimises what a build of `crate` left in `folder`; the glue that fits it. */
function assemble(folder, crate, name, features) {
  const file = join(target, "wasm", name);
  const trapping = join(folder, `${crate}.trap.wasm`);
  const built = readFileSync(join(folder, `${crate}_bg.wasm`));
  writeFileSync(trapping, emptied(built, TRAPS[crate]));
  optimize(trapping, file, features, STRIPPED);
  order(file, features);
  const short = shorten(
    readFileSync(file),
    readFileSync(join(folder, `${crate}.js`), "utf8"),
  );
  if (blankLocations(short.wasm) === 0)
    throw new Error("no panic has a location");
  writeFileSync(file, short.wasm);
  return short.glue;
}

/** Where tsc left these entries. */
function scripts(entries) {
  return Object.fromEntries(
    Object.entries(entries).map(([name, path]) => [name, join(face, path)]),
  );
}

/**
 * Whether a module is in no folder of an entry. The first entry only names what pages see;
 * it has no folder, and a page without it has no session.
 */
function isShared(module) {
  const path = relative(face, module);
  return !Object.keys(ENTRIES).some((name) => path.startsWith(name));
}

/**
 * Bundles scripts with what they import; the modules that are shared are one file, which
 * compresses better than several. The glue stays a file of its own, beside its
 * WebAssembly; so do `others`, by what they are called where they lie.
 */
async function minify(input, dir, { others = {}, isShared } = {}) {
  const bundle = await rolldown({
    input,
    external: ["../wasm/framebatch.js", "../wasm/embeddings.js", "react"],
    plugins: [
      {
        name: "others",
        resolveId: (id) =>
          others[id] && { id: others[id], external: "absolute" },
      },
    ],
    // React's directive for servers stays where it is: first in its entry.
    checks: { moduleLevelDirective: false },
    platform: "browser",
    // The page's own bundler decides whether this is development.
    transform: {
      define: { "process.env.NODE_ENV": "process.env.NODE_ENV" },
    },
  });
  await bundle.write({
    dir,
    minify: true,
    codeSplitting: isShared && { groups: [{ name: "shared", test: isShared }] },
    chunkFileNames: "[name].js",
  });
  await bundle.close();
}

function checkSize() {
  // The program, because Node's own zlib gives size away for speed.
  const size = (path) =>
    execFileSync("gzip", ["-9", "-c", join(target, path)]).length;
  const wasm = size("wasm/framebatch_bg.wasm");
  const without = size("wasm/framebatch_bg_scalar.wasm");
  const scripts =
    size("wasm/framebatch.js") + size("dist/index.js") + size("dist/shared.js");
  const total = Math.max(wasm, without) + scripts;
  const animation = size("dist/animation.js");
  const embeddings =
    size("dist/embeddings.js") +
    size("wasm/embeddings.js") +
    size("wasm/embeddings_bg.wasm");
  const kernels = size("dist/kernels.js");
  const search = size("dist/search.js");
  const react = size("dist/react.js");
  const embedding = total + embeddings;
  console.log(
    `package, gzip: wasm ${wasm} (${without} without vectors) + js ${scripts}, ${total} of ${BUDGET} bytes; with embeddings (${embeddings}) ${embedding} of ${EMBEDDINGS_BUDGET}; animation ${animation}, kernels ${kernels}, search ${search}, react ${react}`,
  );
  hold("the package", total, BUDGET);
  hold("the package with embeddings", embedding, EMBEDDINGS_BUDGET);
}

function hold(what, bytes, budget) {
  if (bytes <= budget) return;
  // Half a package must not look like a built one.
  rmSync(join(target, "package.json"));
  throw new Error(`${what} is ${bytes - budget} bytes too large`);
}
