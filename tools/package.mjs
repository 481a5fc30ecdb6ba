// Assembles the npm package from what the compilers left in target/.
//
//   node tools/package.mjs GLUE SCALAR EMBEDDINGS TOKENIZERS FACE PACKAGE
//
// GLUE is wasm-pack's folder, SCALAR that of the build without vectors, EMBEDDINGS
// that of what embeddings need besides, TOKENIZERS that of tokenizers that few of them need,
// FACE is tsc's. Each entry becomes a minified
// script, beside one that all entries share, and the same again as CommonJS, for tools that
// know nothing else. The WebAssembly loses what only says why it
// traps, is optimised for size and put in an order that compresses; the glue of both builds
// must be the same. wasm-pack's own package.json, README and .gitignore stay behind. The
// manifest gets the address of the repository, and beside the manifest lie the notices of
// what others wrote. The tool fails when a page would load more than its budget, with
// embeddings or without.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { npmFields, PAGES, repositoryAddress } from "./address.mjs";
import { factory } from "./glue-factory.mjs";
import { notices } from "./notices.mjs";
import { optimize } from "./optimize.mjs";
import { conditions, folders } from "./package-entries.mjs";
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
  worker: "worker/index.js",
};

/** Those of them that are CommonJS too: what has no pages has no workers of theirs. */
const { worker: _, ...COMMON } = ENTRIES;

/** The scripts that hold a WebAssembly file, or import it as a module. They are no CommonJS. */
const HOLDERS = {
  inline: "inline/index.js",
  "inline-module": "inline/module.js",
  "embeddings-inline": "embeddings-inline/index.js",
  "embeddings-inline-module": "embeddings-inline/module.js",
};

/** What the first entry has for itself: a page whose sessions are in a worker loads no glue. */
const OWN = /^(core-glue|core\/core-instance|session\/open)\.js$/;

/** The script of workers, which holds all that it needs but the glue: no page loads it. */
const WORKERS = { "worker-script": "worker/script.js" };

/** The scripts that import other entries instead of holding them, and what each is made of. */
const WRAPPERS = {
  "ai-sdk": "libraries/ai-sdk.js",
  chroma: "libraries/chroma.js",
  lancedb: "libraries/lancedb.js",
  langchain: "libraries/langchain.js",
  llamaindex: "libraries/llamaindex.js",
  orama: "libraries/orama.js",
  react: "react/index.js",
  svelte: "svelte/index.js",
  vue: "vue/index.js",
};
/** Bytes, gzip, of each of them. */
const WRAPPER_BUDGET = 2048;

/** The libraries that wrappers import, which the application brings. */
const LIBRARIES = [
  ...["@lancedb/lancedb/embedding", "@langchain/core/documents"],
  "@langchain/core/embeddings",
  "@langchain/core/retrievers/document_compressors",
  ...["@llamaindex/core/embeddings", "react", "vue"],
];

const OTHERS = {
  "../index.js": "./index.js",
  "../animation/index.js": "./animation.js",
};

/** What stays a file of its own, as the sources import it. */
const BESIDE = /^(?:\.\.\/)+wasm\//;

/** Where a script of CommonJS lies: what bundlers of pages never see. */
const SCRIPT_ADDRESS = `const scriptAddress = process.getBuiltinModule("node:url").pathToFileURL(__filename).href;`;

/** What wasm-opt leaves out: nothing that a browser reads. */
const STRIPPED = ["debug", "producers", "target-features"].map(
  (section) => `--strip-${section}`,
);

/**
 * Bytes, gzip, of scripts and the WebAssembly that a page loads with the first entry: 236,000
 * for calls and tensors, 2,000 for choosing between frames and tasks, 8,000 for priorities,
 * 2,800 for tuning to the load, 5,000 for what simulations compute with, 3,900 for tensors in
 * buffers of the page, 23,700 for results that stay on the device, 4,000 for vectors that go
 * from tensors into indexes, 2,200 for what is told of batches, 13,400 for what kernels of
 * a page's own need, 1,300 for finding the WebAssembly file and saying why it is not there,
 * 1,300 for saying why there is no GPU, which import is missing and that a page has two copies of
 * the package, 900 for what sessions in workers need of a session, 1,100 for a bias of
 * attention by distance, with which MPNet computes, 600 for attention whose heads share keys
 * or are longer than 128 floats, 1,600 for tensors of four bits, 3,700 for products in 16 bits,
 * for results in vectors of four words, and for windows of attention, and 900 for what writes leave
 * behind that were not submitted, and 2,400 for counts of elements where a caller's function computes,
 * for tensors whose writers a device may still refuse and for searches that wait while pages come
 * back; 1,200 less by an order of functions that compresses better.
 */
const BUDGET = 313_700;

/**
 * The limit with the entry of embeddings: what a page loads before the first embedding. 35,600 of it
 * are for one reader of folders for both faces, with a parser of JSON, for families of encoders and
 * for rerankers, and 8,300 for telling where tokens are from, and for finding and feeding the file
 * of tokenizers, 8,100 for rotary positions, gates and layers of neighbors, 700 for
 * converted folders, 3,600 for decoders: shared heads of keys, norms of heads, and norms by the
 * mean of squares around what they are for, 400 for converted folders of four bits,
 * 2,000 for biases that fall with the distance and decoders as rerankers, and 2,200 for 16-bit
 * arithmetic and for rerankers by the logits of words, 4,300 for per-layer embeddings and heads
 * of two sizes in one encoder, 1,200 for limits, cuts and functions that other files than
 * config.json name, and 2,700 of the package and for what folders say of rotations.
 */
const EMBEDDINGS_BUDGET = 443_700;

/**
 * The limit of the file that pages load where a model's tokenizer is not WordPiece: some 58,000
 * of code, and 46,000 of tables of characters and of those that read numbers.
 */
const TOKENIZERS_BUDGET = 105_800;

const PAPERS = {
  "pkg-template/README.md": "README.md",
  "CHANGELOG.md": "CHANGELOG.md",
  "LICENSE-MIT": "LICENSE-MIT",
  "LICENSE-APACHE": "LICENSE-APACHE",
  ...Object.fromEntries(PAGES.map((page) => [page, page])),
};

/** The texts of the tools that make the WebAssembly what it is. */
const TOOLS = [
  ...["optimize", "reorder-functions", "shorten-imports", "strip-locations"],
  ...["strip-panic-texts", "strip-panics", "wasm-sections"],
]
  .map((name) => readFileSync(join("tools", `${name}.mjs`), "utf8"))
  .join();

const [glue, scalar, embeddings, tokenizers, face, target] = process.argv
  .slice(2)
  .map((path) => resolve(path));
rmSync(target, { recursive: true, force: true });
mkdirSync(join(target, "wasm"), { recursive: true });

// At once: each is optimised on one core.
const [text, scalarText, ...others] = await Promise.all([
  assemble(glue, "framebatch", "framebatch_bg.wasm", ["simd"]),
  assemble(scalar, "framebatch", "framebatch_bg_scalar.wasm", []),
  assemble(embeddings, "embeddings", "embeddings_bg.wasm", []),
  assemble(tokenizers, "tokenizers", "tokenizers_bg.wasm", []),
]);
if (scalarText !== text) {
  throw new Error("the builds with and without vectors differ in their glue");
}
const glues = {
  framebatch: [glue, text],
  embeddings: [embeddings, others[0]],
  tokenizers: [tokenizers, others[1]],
};
for (const [name, [folder, text]] of Object.entries(glues)) {
  const file = join(folder, `${name}.short.js`);
  writeFileSync(file, factory(text));
  await minify({ [name]: file }, join(target, "wasm"));
  holdInScript(`${name}_bg`);
}
const entries = scripts({ ...ENTRIES, ...HOLDERS });
await minify(entries, join(target, "dist"), { isShared });
await minify(scripts(WORKERS), join(target, "dist"));
const cjs = join(target, "cjs");
await minify(scripts(COMMON), cjs, { isShared, isCommon: true });
// One by one: what two of them have in common is in both.
for (const entry of Object.entries(scripts(WRAPPERS))) {
  const script = Object.fromEntries([entry]);
  await minify(script, join(target, "dist"), { others: OTHERS });
  await minify(script, cjs, { others: OTHERS, isCommon: true });
}
writeFileSync(join(cjs, "package.json"), '{ "type": "commonjs" }\n');
for (const name of readdirSync(face, { recursive: true })) {
  if (!name.endsWith(".d.ts")) continue;
  cpSync(join(face, name), join(target, "dist", name));
  if (!/\binline\b/.test(name)) cpSync(join(face, name), join(cjs, name));
}
cpSync("pkg-template/bin", join(target, "bin"), { recursive: true });
cpSync("pkg-template/wasm/module.d.ts", join(target, "wasm", "module.d.ts"));

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
  const common = { ...COMMON, ...WRAPPERS };
  const exports = conditions(template.exports, common);
  for (const [path, manifest] of folders(template.exports, common)) {
    mkdirSync(join(target, path));
    writeFileSync(join(target, path, "package.json"), manifest);
    template.files.push(path);
  }
  const whole = { ...template, exports, scripts: undefined, ...fields };
  return `${JSON.stringify(whole, null, 2)}\n`;
}

/**
 * Optimises what a build of `crate` left in `folder`; the glue that fits it. That takes minutes,
 * so what came of the same files by the same tools is kept beside them.
 */
async function assemble(folder, crate, name, features) {
  const file = join(target, "wasm", name);
  const built = readFileSync(join(folder, `${crate}_bg.wasm`));
  const kept = join(folder, `${crate}.packaged.json`);
  const script = readFileSync(join(folder, `${crate}.js`));
  const key = [built, script, TOOLS, ...features, ...STRIPPED]
    .reduce((hash, text) => hash.update(text), createHash("sha256"))
    .digest("hex");
  const last = existsSync(kept) && JSON.parse(readFileSync(kept, "utf8"));
  if (last.key === key) {
    writeFileSync(file, Buffer.from(last.wasm, "base64"));
    return last.glue;
  }
  const glue = await optimized(file, built, folder, crate, features);
  const wasm = readFileSync(file, "base64");
  writeFileSync(kept, JSON.stringify({ key, wasm, glue }));
  return glue;
}

async function optimized(file, built, folder, crate, features) {
  const trapping = join(folder, `${crate}.trap.wasm`);
  writeFileSync(trapping, emptied(built, TRAPS[crate]));
  await optimize(trapping, file, features, STRIPPED);
  await order(file, features);
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
  const names = Object.keys({ ...ENTRIES, ...HOLDERS });
  return !OWN.test(path) && !names.some((name) => path.startsWith(name));
}

/** A WebAssembly file as a script: base64 of gzip. */
function holdInScript(name) {
  const file = join(target, "wasm", name);
  const packed = gzipSync(readFileSync(`${file}.wasm`), { level: 9 });
  writeFileSync(
    `${file}.inline.js`,
    `export default "${packed.toString("base64")}";\n`,
  );
}

/**
 * Bundles scripts with what they import; the modules that are shared are one file, which
 * compresses better than several. The glue stays a file of its own, beside its
 * WebAssembly; so do `others`, by what they are called where they lie. CommonJS has the glue
 * in its scripts, because no page loads them.
 */
async function minify(
  input,
  dir,
  { others = {}, isShared, isCommon = false } = {},
) {
  const placeOf = (id) => {
    if (others[id]) return { id: others[id], external: "absolute" };
    if (!BESIDE.test(id)) return undefined;
    const own = id.replace(BESIDE, "../wasm/");
    return isCommon
      ? join(target, "dist", own)
      : { id: own, external: "absolute" };
  };
  const bundle = await rolldown({
    input,
    external: LIBRARIES,
    plugins: [{ name: "others", resolveId: placeOf }],
    // React's directive for servers stays where it is: first in its entry.
    checks: { moduleLevelDirective: false },
    platform: "browser",
    // The page's own bundler decides whether this is development.
    transform: {
      define: {
        "process.env.NODE_ENV": "process.env.NODE_ENV",
        ...(isCommon && { "import.meta.url": "scriptAddress" }),
      },
    },
  });
  await bundle.write({
    dir,
    minify: true,
    ...(isCommon && { format: "cjs", intro: SCRIPT_ADDRESS }),
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
    size("wasm/tokenizers.js") +
    size("wasm/embeddings_bg.wasm");
  const beyond = size("wasm/tokenizers_bg.wasm");
  const kernels = size("dist/kernels.js");
  const search = size("dist/search.js");
  const wrappers = Object.keys(WRAPPERS).map((name) => ({
    name,
    bytes: size(`dist/${name}.js`),
  }));
  const worker = size("dist/worker.js");
  const script = size("dist/worker-script.js");
  const embedding = total + embeddings;
  console.log(
    `package, gzip: wasm ${wasm} (${without} without vectors) + js ${scripts}, ${total} of ${BUDGET} bytes; with embeddings (${embeddings}) ${embedding} of ${EMBEDDINGS_BUDGET}, and tokenizers beyond WordPiece ${beyond} of ${TOKENIZERS_BUDGET}; animation ${animation}, kernels ${kernels}, search ${search}, worker ${worker} and its script ${script}; ${wrappers.map(({ name, bytes }) => `${name} ${bytes}`).join(", ")}`,
  );
  hold("the package", total, BUDGET);
  hold("the package with embeddings", embedding, EMBEDDINGS_BUDGET);
  hold("the file of tokenizers", beyond, TOKENIZERS_BUDGET);
  for (const { name, bytes } of wrappers) hold(name, bytes, WRAPPER_BUDGET);
}

function hold(what, bytes, budget) {
  if (bytes <= budget) return;
  // Half a package must not look like a built one.
  rmSync(join(target, "package.json"));
  throw new Error(`${what} is ${bytes - budget} bytes too large`);
}
