// What is published: which files the crate and the npm package hold, what these refer
// to, and whose work they name.
//
// The two lists are exact, derived from what lies in the folders that are to be published.
// Whether the packages work is told by package.test.mjs and `make release`.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { after, before, test } from "node:test";
import { PAGES } from "../../tools/address.mjs";
import { functionNames } from "../../tools/strip-panics.mjs";
import { packed, run } from "./packed.mjs";

/** What npm's list has besides scripts, types and WebAssembly. */
const PAPERS = [
  "CHANGELOG.md",
  "LICENSE-APACHE",
  "LICENSE-MIT",
  "README.md",
  "THIRD-PARTY-NOTICES.txt",
  "package.json",
  ...PAGES,
];
/** The scripts that programs import, what they share, and what workers run. */
const SCRIPTS = [
  ...["index", "animation", "embeddings", "kernels", "react", "search"],
  ...["ai-sdk", "chroma", "lancedb", "langchain", "llamaindex", "orama"],
  ...["shared", "svelte", "vue"],
];
/** Scripts that hold a WebAssembly file, or import it as a module. */
const HOLDERS = ["inline", "embeddings-inline"];
/** What is for pages alone, and no CommonJS. */
const PAGE_SCRIPTS = ["worker", "worker-script"];
const WASM = [
  "embeddings.js",
  "embeddings_bg.inline.js",
  "embeddings_bg.wasm",
  "framebatch.js",
  "framebatch_bg.inline.js",
  "framebatch_bg.wasm",
  "framebatch_bg_scalar.wasm",
  "module.d.ts",
  "tokenizers.js",
  "tokenizers_bg.inline.js",
  "tokenizers_bg.wasm",
];
/** For tools that read no `exports`: the entries but the first, a folder each. */
const FOLDERS = [...SCRIPTS, ...HOLDERS, ...PAGE_SCRIPTS].filter(
  (name) => name !== "index" && name !== "shared",
);

/** What the crate has besides its folders; the last four are cargo's. */
const CRATE_PAPERS = [
  ...["ARCHITECTURE.md", "CHANGELOG.md", "README.md", "build.rs"],
  ...["LICENSE-APACHE", "LICENSE-MIT"],
  ...["Cargo.toml", "Cargo.toml.orig", "Cargo.lock", ".cargo_vcs_info.json"],
];
/** The crate's folders, and what a file in them may be. */
const CRATE_FOLDERS = {
  src: /(\.rs|\/(unicode|classes|clusters|forms)\.bin|\/LICENSE-UNICODE)$/,
  shaders: /\.wgsl$/,
  examples: /\.rs$/,
  docs: /\.md$/,
};

/** WebAssembly with the names of its functions, as it was before the package was made. */
const NAMED = [
  "target/glue/framebatch_bg.wasm",
  "target/glue-scalar/framebatch_bg.wasm",
  "target/glue-embeddings/embeddings_bg.wasm",
  "target/glue-tokenizers/tokenizers_bg.wasm",
];
/** The crates of Rust itself, which stand under one name in the notices. */
const RUST = ["core", "alloc", "std", "__rustc", "dlmalloc", "hashbrown"];

let npm;
let root;

before(async () => {
  npm = await packed(["plain-page"]);
  root = join(npm.folder, "plain-page/node_modules/framebatch");
});

after(() => npm?.remove());

const read = (name) => readFileSync(join(root, name), "utf8");
const filesIn = (folder) =>
  readdirSync(folder, { recursive: true })
    .map((name) => `${folder}/${name}`)
    .filter((name) => statSync(name).isFile());

test("the npm package holds its scripts, types, WebAssembly and papers, nothing else", () => {
  const declared = filesIn("pkg-template/src").map((name) =>
    name.replace(/^pkg-template\/src/, "dist").replace(/\.ts$/, ".d.ts"),
  );
  const expected = [
    ...PAPERS,
    ...["convert", "framebatch", "int4", "int8", "weights"].map(
      (name) => `bin/${name}.mjs`,
    ),
    ...SCRIPTS.flatMap((name) => [`dist/${name}.js`, `cjs/${name}.js`]),
    ...PAGE_SCRIPTS.map((name) => `dist/${name}.js`),
    ...HOLDERS.flatMap((name) => [`dist/${name}.js`, `dist/${name}-module.js`]),
    ...declared,
    ...declared
      .filter((name) => !/\binline\b/.test(name))
      .map((name) => name.replace("dist/", "cjs/")),
    "cjs/package.json",
    ...FOLDERS.map((name) => `${name}/package.json`),
    ...WASM.map((name) => `wasm/${name}`),
  ];
  assert.deepEqual([...npm.files].sort(), expected.sort());
  const { files } = JSON.parse(read("package.json"));
  const isThere = (name) =>
    statSync(join(root, name), { throwIfNoEntry: false });
  assert.deepEqual(
    files.filter((name) => !isThere(name)),
    [],
    "`files` names what is not there",
  );
});

test("the crate holds its sources, shaders, examples and papers, nothing else", async () => {
  const { stdout } = await run("cargo", [
    ...["package", "--list", "--allow-dirty", "--locked"],
  ]);
  const listed = stdout.trim().split("\n");
  const folders = Object.keys(CRATE_FOLDERS);
  const expected = [...CRATE_PAPERS, ...folders.flatMap(filesIn)];
  assert.deepEqual(listed.sort(), expected.sort());
  const strange = listed.filter((name) => {
    const allowed = CRATE_FOLDERS[name.split("/")[0]];
    return allowed && !allowed.test(name);
  });
  assert.deepEqual(strange, []);
});

test("what a file of the npm package refers to is in it", () => {
  const missing = [];
  let references = 0;
  for (const name of npm.files.filter((name) => /\.(js|d\.ts)$/.test(name))) {
    const text = read(name);
    assert.doesNotMatch(text, /[#@] sourceMappingURL=/, name);
    const imported = /(?:\bfrom|\bimport|\bimport\()\s*["'`](\.[^"'`]+)["'`]/g;
    for (const [, path] of text.matchAll(imported)) {
      references += 1;
      const target = posix.join(
        posix.dirname(name),
        path.replace("?module", ""),
      );
      const file = name.endsWith(".d.ts")
        ? target.replace(/\.js$/, ".d.ts")
        : target;
      if (!npm.files.includes(file)) missing.push(`${name}: ${path}`);
    }
  }
  assert.ok(references > 100, `only ${references} imports were found`);
  assert.deepEqual(missing, []);
  const { exports: entries } = JSON.parse(read("package.json"));
  const pathsOf = (entry) =>
    typeof entry === "string" ? [entry] : Object.values(entry).flatMap(pathsOf);
  for (const path of pathsOf(entries)) {
    assert.ok(npm.files.includes(posix.normalize(path)), `${path} is missing`);
  }
});

test("the papers of the npm package are the repository's", () => {
  const same = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", ...PAGES];
  for (const name of same) {
    assert.equal(read(name), readFileSync(name, "utf8"), name);
  }
  const manifest = JSON.parse(read("package.json"));
  const workspace = JSON.parse(readFileSync("package.json", "utf8"));
  assert.deepEqual(manifest.engines, workspace.engines);
  assert.equal(manifest.scripts, undefined, "scripts run files of tests");
  assert.equal(manifest.license, "MIT OR Apache-2.0");
});

test("the notices name every crate that the WebAssembly has a function of", () => {
  const notices = read("THIRD-PARTY-NOTICES.txt");
  const [list] = notices.split(/^-{80}$/m);
  const named = new Set();
  for (const file of NAMED) {
    for (const name of functionNames(readFileSync(file)).values()) {
      for (const [, crate] of name.matchAll(/(?<![\w:>}])([a-z_]\w*)::/g)) {
        if (!crate.startsWith("framebatch")) named.add(crate);
      }
    }
  }
  for (const crate of ["wgpu", "wasm_bindgen", "dlmalloc"]) {
    assert.ok(named.has(crate), `no function of ${crate} was found`);
  }
  const missing = [...named].filter((crate) => {
    if (RUST.includes(crate)) return !list.includes("Rust's standard library");
    return !new RegExp(`^  ${crate.replaceAll("_", "[-_]")} `, "m").test(list);
  });
  assert.deepEqual(missing, []);
});

test("each work in the notices has the text of its license", () => {
  const [list, ...parts] = read("THIRD-PARTY-NOTICES.txt").split(/^-{80}\n/m);
  const texts = new Map();
  for (const part of parts) {
    const [holders, text] = part.split(/\n\n(.*)/s);
    for (const name of holders.split(/, (?=\S+ \d)/)) {
      texts.set(name, (texts.get(name) ?? "") + text);
    }
  }
  const works = [...list.matchAll(/^  (.*?) \((.*)\), https:/gm)];
  assert.ok(works.length > 20, list);
  for (const [, name, license] of works) {
    const text = texts.get(name) ?? "";
    const grants =
      /Permission is hereby granted|Apache License|freely, subject to/;
    assert.match(text, grants, name);
    if (license.includes("Unicode-3.0")) {
      assert.match(text, /UNICODE LICENSE V3/, name);
    }
  }
});

test("who depends on the crate links no dynamic library for it", async () => {
  const { stdout } = await run(
    "cargo",
    ["metadata", "--locked", "--no-deps", "--format-version", "1"],
    { maxBuffer: 2 ** 26 },
  );
  const published = JSON.parse(stdout).packages.filter(
    ({ publish }) => publish === null,
  );
  assert.deepEqual(
    published.map(({ name }) => name),
    ["framebatch"],
  );
  const libraries = published[0].targets.filter(
    ({ name, kind }) => name === "framebatch" && !kind.includes("custom-build"),
  );
  assert.deepEqual(
    libraries.map((target) => target.crate_types),
    [["lib"]],
  );
});

test("no crate that is linked asks for a newer Rust than the manifest names", async () => {
  const { stdout: about } = await run("rustc", ["-vV"]);
  const host = /^host: (.*)$/m.exec(about)[1];
  const targets = [host, "wasm32-unknown-unknown"];
  const linked = new Set();
  for (const target of targets) {
    const { stdout } = await run("cargo", [
      ...["tree", "--locked", "--target", target, "--edges", "normal"],
      ...["--prefix", "none", "--format", "{p}"],
    ]);
    for (const line of stdout.trim().split("\n")) {
      linked.add(line.split(" ").slice(0, 2).join(" "));
    }
  }
  const { stdout } = await run(
    "cargo",
    [
      ...["metadata", "--locked", "--format-version", "1"],
      ...targets.flatMap((target) => ["--filter-platform", target]),
    ],
    { maxBuffer: 2 ** 26 },
  );
  const { packages } = JSON.parse(stdout);
  const own = packages.filter(({ source }) => source === null);
  const [rust, ...others] = new Set(own.map((crate) => crate.rust_version));
  assert.deepEqual(others, [], "the workspace's crates name several versions");
  const newer = packages
    .filter(({ name, version }) => linked.has(`${name} v${version}`))
    .filter((crate) => number(crate.rust_version ?? "1.0") > number(rust));
  assert.ok(linked.size > 30, [...linked].join());
  assert.deepEqual(
    newer.map(({ name, rust_version }) => `${name} needs ${rust_version}`),
    [],
  );
});

/** Orders versions by their first two parts. */
function number(version) {
  const [major, minor] = version.split(".").map(Number);
  return major * 1000 + minor;
}
