// Assembles the npm package from what the compilers left in target/.
//
//   node tools/package.mjs GLUE SCALAR FACE PACKAGE
//
// GLUE is wasm-pack's folder, SCALAR that of the build without vectors, FACE is
// tsc's. The scripts become one minified file each, the WebAssembly is optimised for
// size, and the glue of both builds must be the same; wasm-pack's own package.json,
// README and .gitignore stay behind. It fails when a page would load more than BUDGET.

import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { rolldown } from "rolldown";
import { factory } from "./factory.mjs";
import { shorten } from "./shorten.mjs";

/** The scripts that applications import, and what each is made of. */
const ENTRIES = { index: "index.js", animation: "animation/index.js" };

/** Bytes, gzip, of scripts and the WebAssembly that a page loads with the first entry. */
const BUDGET = 240_000;

// What rustc turns on for wasm32-unknown-unknown, by wasm-opt's names.
const WASM_FEATURES = [
  "bulk-memory",
  "bulk-memory-opt",
  "call-indirect-overlong",
  "multivalue",
  "mutable-globals",
  "nontrapping-float-to-int",
  "reference-types",
  "sign-ext",
];

// What is inlined compresses worse than a call: a function with one caller only
// moves there where that is about the call's own size. And nothing lies in the
// first kilobyte, where the stack would end.
const SMALL = [
  "-Os",
  "--low-memory-unused",
  "--one-caller-inline-max-function-size=24",
];

const PAPERS = {
  "pkg-template/package.json": "package.json",
  "pkg-template/README.md": "README.md",
  "LICENSE-MIT": "LICENSE-MIT",
  "LICENSE-APACHE": "LICENSE-APACHE",
};

const [glue, scalar, face, target] = process.argv
  .slice(2)
  .map((path) => resolve(path));
rmSync(target, { recursive: true, force: true });
mkdirSync(join(target, "wasm"), { recursive: true });

const text = assemble(glue, "framebatch_bg.wasm", ["simd"]);
if (assemble(scalar, "framebatch_bg_scalar.wasm", []) !== text) {
  throw new Error("the builds with and without vectors differ in their glue");
}
writeFileSync(join(glue, "framebatch.short.js"), factory(text));
await minify(
  { framebatch: join(glue, "framebatch.short.js") },
  join(target, "wasm"),
);
await minify(
  Object.fromEntries(
    Object.entries(ENTRIES).map(([name, path]) => [name, join(face, path)]),
  ),
  join(target, "dist"),
);
for (const name of readdirSync(face, { recursive: true })) {
  if (name.endsWith(".d.ts"))
    cpSync(join(face, name), join(target, "dist", name));
}

for (const [from, to] of Object.entries(PAPERS)) cpSync(from, join(target, to));
checkSize();

/** Optimises what a build of the core left in `folder`; the glue that fits it. */
function assemble(folder, name, features) {
  const file = join(target, "wasm", name);
  execFileSync("wasm-opt", [
    ...[...WASM_FEATURES, ...features].map((feature) => `--enable-${feature}`),
    ...[...SMALL, "--strip-debug", "--strip-producers"],
    ...[join(folder, "framebatch_bg.wasm"), "-o", file],
  ]);
  const short = shorten(
    readFileSync(file),
    readFileSync(join(folder, "framebatch.js"), "utf8"),
  );
  writeFileSync(file, short.wasm);
  return short.glue;
}

/**
 * Bundles scripts with what they import; what several of them do is a file that they
 * share. The glue stays a file of its own, beside its WebAssembly.
 */
async function minify(input, dir) {
  const bundle = await rolldown({
    input,
    external: ["../wasm/framebatch.js"],
    platform: "browser",
    // The page's own bundler decides whether this is development.
    transform: {
      define: { "process.env.NODE_ENV": "process.env.NODE_ENV" },
    },
  });
  await bundle.write({
    dir,
    minify: true,
    chunkFileNames: "shared.js",
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
  console.log(
    `package, gzip: wasm ${wasm} (${without} without vectors) + js ${scripts}, ${total} of ${BUDGET} bytes; animation ${animation}`,
  );
  if (total <= BUDGET) return;
  // Half a package must not look like a built one.
  rmSync(join(target, "package.json"));
  throw new Error(`the package is ${total - BUDGET} bytes too large`);
}
