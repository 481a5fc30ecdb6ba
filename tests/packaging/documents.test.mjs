// What the documents promise of themselves: links and files that are there, a README that
// is short, one accuracy table, a glossary in order.
//
// The examples of documents are run by tests/e2e (docs, snippets, libraries) and by
// `cargo test --doc`; those of Node, and which options and codes are told, by examples.test.mjs.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { PAGES } from "../../tools/address.mjs";

const DOCS = readdirSync("docs", { recursive: true })
  .filter((name) => name.endsWith(".md"))
  .map((name) => `docs/${name}`)
  .sort();
const DOCUMENTS = [
  ...["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"],
  ...["CHANGELOG.md", "pkg-template/README.md"],
  ...DOCS,
];
/** Pages that say how things are; decisions are dated, and say how things were. */
const OF_NOW = DOCUMENTS.filter((name) => !name.startsWith("docs/decisions/2"));

const read = (name) => readFileSync(name, "utf8");
const words = (text) => text.split(/\s+/).filter(Boolean).length;
const lines = (text) => text.split("\n").length - 1;

/** What a document links to, without what lies on the web; code is no link. */
function links(text) {
  const prose = text
    .replace(/```.*?```/gs, "")
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ""));
  const inline = [...prose.matchAll(/\]\(([^)\s]+)\)/g)];
  const references = [...prose.matchAll(/^\[[^\]]+\]: (\S+)$/gm)];
  return [...inline, ...references]
    .map(([, link]) => link)
    .filter((link) => !/^https?:/.test(link));
}

/** The anchors of a document's headings, as forges make them. */
function anchors(text) {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

for (const name of DOCUMENTS) {
  test(`${name} links to what is there`, () => {
    const missing = links(read(name)).filter((link) => {
      const [path, anchor] = link.split("#");
      const file = path === "" ? name : join(dirname(name), path);
      if (!existsSync(file)) return true;
      return anchor !== undefined && !anchors(read(file)).includes(anchor);
    });
    assert.deepEqual(missing, []);
  });
}

for (const name of OF_NOW) {
  test(`${name} names files that are there`, () => {
    const roots =
      "benches|docs|examples|pkg-template|shaders|src|tests|tools|www";
    // Capitals stand for any name; what has braces is not read; `make` makes www/dist.
    const paths = new RegExp(`\`((?:${roots})/[-\\w./]+)\``, "g");
    const named = [...read(name).matchAll(paths)].map(([, path]) => path);
    const missing = named.filter(
      (path) =>
        !/[A-Z]{3}/.test(path) && path !== "www/dist" && !existsSync(path),
    );
    assert.deepEqual(missing, []);
  });
}

test("the README is short", () => {
  const text = read("README.md");
  assert.ok(lines(text) <= 150, `${lines(text)} lines`);
  assert.ok(words(text) <= 1500, `${words(text)} words`);
});

test("every page is found from the README or the lists of documents and decisions", () => {
  const from = ["README.md", "docs/README.md", "docs/decisions/README.md"];
  const found = from.flatMap((name) =>
    links(read(name)).map((link) =>
      normalize(join(dirname(name), link.split("#")[0])),
    ),
  );
  assert.deepEqual(
    DOCS.filter((page) => !found.includes(page)),
    [],
  );
});

test("a page of the npm package links to pages of the package alone", () => {
  for (const page of PAGES) {
    const outside = links(read(page))
      .map((link) => link.split("#")[0])
      .filter((path) => path !== "" && !PAGES.includes(`docs/${path}`));
    assert.deepEqual(outside, [], page);
  }
  for (const page of PAGES) {
    assert.ok(
      read("pkg-template/README.md").includes(`\`${page}\``) ||
        page === "docs/native.md",
      page,
    );
  }
});

test("the accuracy of tensor operations is that of the kernels", () => {
  const table = (text) => text.filter((line) => /^\| (?!---)/.test(line));
  const source = read("src/kernel/generated/mod.rs")
    .split("\n")
    .filter((line) => line.startsWith("//! "))
    .map((line) => line.slice("//! ".length));
  const [, page] = read("docs/tensors.md").split("<!-- accuracy");
  const shown = page.split("\n### ")[0].split("\n");
  assert.ok(table(source).length > 10);
  assert.deepEqual(table(shown), table(source));
});

test("the glossary has each word once, in order", () => {
  const terms = [
    ...read("docs/glossary.md").matchAll(/^- \*\*(.+?)\*\*: \S/gm),
  ];
  const named = terms.map(([, term]) => term);
  const inOrder = [...new Set(named)].sort((a, b) => a.localeCompare(b, "en"));
  assert.ok(named.length > 40);
  assert.deepEqual(named, inOrder);
});
