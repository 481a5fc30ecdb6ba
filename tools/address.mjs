// The address of the repository. Cargo.toml's `repository` is the one place for it, and
// the npm manifest and the documents take it from there.
//
//   node tools/address.mjs      writes it to the documents
//
// In a document the text between `<!-- repository:PATH -->` and `<!-- end -->` becomes a
// link to PATH below the address, and plain text while there is no address. Paths are
// those of GitHub; on another forge the documents need other ones. This names no
// address of its own, and publishes nothing.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The documents that a reader finds outside of the repository, or comes from there. */
export const DOCUMENTS = [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "pkg-template/README.md",
  "docs/animation.md",
  "docs/concepts.md",
  "docs/configuration.md",
  "docs/performance.md",
];

/** The pages of `docs/` that go into the npm package, in a folder of that name. */
export const PAGES = [
  ...["animation", "concepts", "configuration", "embeddings", "environments"],
  ...[
    "kernels",
    "libraries",
    "native",
    "operations",
    "performance",
    "react",
    "recovery",
  ],
  ...["search", "sessions", "streams", "tensors", "troubleshooting"],
  "workers",
].map((name) => `docs/${name}.md`);

/** Where npm's manifest and README lie in the repository. */
const DIRECTORY = "pkg-template";

/** What `[package]` of a Cargo.toml has under `key`, if it is a text. */
export function cargoField(manifest, key) {
  const section = /^\[package\]\n(.*?)(?=^\[|$(?![^]))/ms.exec(manifest)?.[1];
  return new RegExp(`^${key} = "(.*)"$`, "m").exec(section ?? "")?.[1];
}

/** The address in `root`'s Cargo.toml; empty while it is unknown. */
export function repositoryAddress(root) {
  const manifest = readFileSync(join(root, "Cargo.toml"), "utf8");
  const address = cargoField(manifest, "repository");
  if (address === undefined) {
    throw new Error('[package] of Cargo.toml lacks `repository = ""`');
  }
  return address;
}

/** What npm's manifest says of an address; nothing while it is unknown. */
export function npmFields(address) {
  if (address === "") return {};
  return {
    homepage: `${address}#readme`,
    bugs: `${address}/issues`,
    repository: {
      type: "git",
      url: `git+${address}.git`,
      directory: DIRECTORY,
    },
  };
}

/** A document with its links to the repository. */
export function linked(document, address) {
  const marked =
    /(<!-- repository:(\S*) -->)(?:\[([^\]]*)\]\([^)]*\)|([^<[]*))(<!-- end -->)/g;
  return document.replace(marked, (_, start, path, text, plain, end) => {
    const shown = text ?? plain;
    const link = address === "" ? shown : `[${shown}](${address}${path})`;
    return start + link + end;
  });
}

/** The documents in `root` whose links are not those of its Cargo.toml, and what they should hold. */
export function staleDocuments(root) {
  const address = repositoryAddress(root);
  return DOCUMENTS.flatMap((name) => {
    const text = readFileSync(join(root, name), "utf8");
    const expected = linked(text, address);
    return expected === text ? [] : [{ name, expected }];
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { name, expected } of staleDocuments(".")) {
    writeFileSync(name, expected);
    console.log(`${name} has the repository's address`);
  }
}
