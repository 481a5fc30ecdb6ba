// Writes the notices of what the package's WebAssembly is made of besides this project:
// crates, Rust's standard library, tables of Unicode.
//
// Crates are those that cargo links, their texts what lies in their sources. The
// standard library's lie in tools/licenses, because not every installation of Rust has
// them. A crate without a text stops the build: a person has to look.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The crates that are a WebAssembly file each. */
const MODULES = [
  "framebatch-core",
  "framebatch-embeddings",
  "framebatch-tokenizers",
];
const WASM = "wasm32-unknown-unknown";

/** Licenses with their files' names; the first that a crate offers is taken. */
const LICENSES = [
  ["MIT", /^LICENSE[-.]MIT/i],
  ["Zlib", /^LICENSE[-.]ZLIB/i],
  ["Unicode-3.0", /^LICENSE-UNICODE/i],
  ["Apache-2.0", /^LICENSE[-.]APACHE/i],
];
/** What a crate of one license calls its file. */
const ONLY = /^LICENSE(\.(md|txt))?$/i;
/** The one license whose text names nobody, so that a crate need not bring it. */
const NAMELESS = "Apache-2.0";

/** What cargo does not list. */
const OTHERS = [
  {
    name: "Rust's standard library, with dlmalloc and hashbrown",
    license: "MIT OR Apache-2.0",
    home: "https://github.com/rust-lang/rust",
    files: ["tools/licenses/std.txt"],
  },
  {
    name: "Rust's compiler-builtins, with libm",
    license: "MIT",
    home: "https://github.com/rust-lang/compiler-builtins",
    files: ["tools/licenses/libm.txt"],
  },
  {
    name: "Unicode character data, in the tables of the tokenizer and the standard library",
    license: "Unicode-3.0",
    home: "https://www.unicode.org/ucd/",
    files: ["src/embed/tokenizer/LICENSE-UNICODE"],
  },
];
/** The tables of the tokenizer were made from theirs. */
const TABLES = ["unicode-normalization-alignments", "unicode_categories"];

const HEAD = `The WebAssembly of this package, and the scripts beside it under wasm/, hold code of
others, under the licenses that follow the list.`;

/** The text of THIRD-PARTY-NOTICES.txt. */
export function notices() {
  const works = [...linkedCrates().map(ofCrate), ...OTHERS.map(ofFiles)];
  const lines = works.map(
    ({ name, license, home }) => `  ${name} (${license}), ${home}`,
  );
  const holders = new Map();
  for (const { name, texts } of works) {
    for (const text of texts) {
      holders.set(text, [...(holders.get(text) ?? []), name]);
    }
  }
  const rule = "-".repeat(80);
  const texts = [...holders].map(
    ([text, names]) => `${rule}\n${names.join(", ")}\n\n${text}`,
  );
  return `${HEAD}\n\n${lines.join("\n")}\n\n${texts.join("\n\n")}\n`;
}

/** The licenses of which all hold, each as the alternatives to choose from. */
export function alternatives(expression) {
  return expression
    .split(" AND ")
    .map((term) => term.replace(/[()]/g, "").split(/ OR |\//));
}

/** Crates in the WebAssembly, and those that its tables are made from, as cargo knows them. */
function linkedCrates() {
  const linked = new Set(TABLES);
  for (const module of MODULES) {
    const tree = cargo([
      ...["tree", "--locked", "--package", module, "--target", WASM],
      ...["--edges", "normal,no-proc-macro", "--prefix", "none"],
      ...["--format", "{p}"],
    ]);
    for (const line of tree.trim().split("\n")) {
      const [name, version] = line.split(" ");
      linked.add(`${name} ${version.slice(1)}`);
    }
  }
  const { packages } = JSON.parse(
    cargo(["metadata", "--locked", "--format-version", "1", ...platforms()]),
  );
  const isLinked = ({ name, version, source }) =>
    source !== null && (linked.has(`${name} ${version}`) || linked.has(name));
  return packages
    .filter(isLinked)
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** Only what is downloaded for a build anyway. */
function platforms() {
  const about = execFileSync("rustc", ["-vV"], { encoding: "utf8" });
  const host = /^host: (.*)$/m.exec(about)[1];
  return [WASM, host].flatMap((target) => ["--filter-platform", target]);
}

function ofCrate({ name, version, license, repository, manifest_path }) {
  const folder = dirname(manifest_path);
  const files = readdirSync(folder);
  const texts = alternatives(license ?? "").map((offered) => {
    const text = textOf(offered, folder, files);
    if (text === undefined) {
      throw new Error(
        `${name} ${version} (${license}) brings no text of its license: look for it in ${repository} and give it an entry in tools/notices.mjs`,
      );
    }
    return text;
  });
  return { name: `${name} ${version}`, license, home: repository, texts };
}

function textOf(offered, folder, files) {
  for (const [license, pattern] of LICENSES) {
    if (!offered.includes(license)) continue;
    const name =
      files.find((file) => pattern.test(file)) ??
      (offered.length === 1 ? files.find((file) => ONLY.test(file)) : null);
    if (name) return clean(readFileSync(join(folder, name), "utf8"));
    if (license === NAMELESS) {
      return clean(readFileSync("LICENSE-APACHE", "utf8"));
    }
  }
  return undefined;
}

function ofFiles({ name, license, home, files }) {
  const texts = files.map((file) => clean(readFileSync(file, "utf8")));
  return { name, license, home, texts };
}

/** A text, the same however its file ends lines. */
function clean(text) {
  return text
    .replace(/\r\n/g, "\n")
    .replace(/[ \t]+$/gm, "")
    .replace(/^\n+|\n+$/g, "");
}

function cargo(args) {
  return execFileSync("cargo", args, { encoding: "utf8", maxBuffer: 2 ** 26 });
}
