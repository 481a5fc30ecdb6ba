// What the site is made of, read from docs/README.md: its groups of pages, with a line on each.
//
// The list is written once, in that document. This file adds the pages that are the site's
// own, and says where files of the repository lie on it. It builds nothing.

import { existsSync, readFileSync } from "node:fs";
import { posix } from "node:path";

/** The pages that are the site's alone, in `www/site`, and where they come in the list. */
const OWN = [
  { text: "Demos", link: "demos.md", about: "pages that run in your browser" },
  {
    text: "Benchmarks",
    link: "benchmarks.md",
    about: "measure your own machine, and what others measured",
  },
  {
    text: "API",
    link: "api.md",
    about: "every name of the package and of the crate",
  },
];
const OWN_TITLE = "Live, and by name";

/** The documents of the repository's root that are pages too. */
const ROOT = ["ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY"];

/** What `make site` copies as it is, and what other programs make. */
export const COPIED = /^benches\/record\/[^/]+\.(json|txt)$/;
export const MADE = /^(api|live)\//;

/** The guide of each entry of the package: both lead to each other. */
export const GUIDES = {
  index: "sessions",
  animation: "animation",
  embeddings: "embeddings",
  kernels: "kernels",
  search: "search",
  worker: "workers",
  react: "react",
  vue: "libraries",
  svelte: "libraries",
};

/** What programs import, by its source: `framebatch/chroma` of `libraries/chroma`. */
export const entryName = (source) =>
  source === "index"
    ? "framebatch"
    : `framebatch/${source.replace("libraries/", "")}`;

/** Where the API has an entry. */
export const apiOf = (source) =>
  `api/js/modules/${entryName(source).replace("/", "_")}.html`;

/** The entries that a page is the guide of. */
export const entriesOf = (file) =>
  Object.keys(GUIDES)
    .filter((source) => file === `docs/${GUIDES[source]}.md`)
    .map((source) => ({ name: entryName(source), link: `/${apiOf(source)}` }));

/** What is no page: patterns below the root of the repository. */
export const NO_PAGES = [
  "{src,core-web,embeddings-web,shaders,examples,proptest-regressions}/**",
  "{target,pkg,pkg-template,models,tests,tools}/**",
  "www/!(site)/**",
  "benches/!(record)/**",
];

/** Whether a file of the repository is a page of the site. */
export function isPage(file) {
  return (
    /^(docs|benches\/record|www\/site)\/.*\.md$/.test(file) ||
    ROOT.some((name) => file === `${name}.md`) ||
    file === "README.md"
  );
}

/** The address of a page below the site's base. */
export function addressOf(file) {
  if (file === "README.md") return "index.html";
  return file.replace(/^www\/site\//, "").replace(/\.md$/, ".html");
}

/** The groups of `docs/README.md`, and that of the site's own pages behind the first. */
export function groups(root) {
  const text = readFileSync(posix.join(root, "docs/README.md"), "utf8");
  const [, ...parts] = text.split(/^## /m);
  const listed = parts.map((part) => {
    const [title] = part.split("\n", 1);
    const lines = part.matchAll(/^- \[(.+?)\]\((\S+?)\): (.+)$/gm);
    const pages = Array.from(lines, ([, text, link, about]) => ({
      text,
      about,
      file: posix.join("docs", link),
    }));
    return { title, pages };
  });
  const own = OWN.map(({ link, ...page }) => ({
    ...page,
    file: `www/site/${link}`,
  }));
  listed.splice(1, 0, { title: OWN_TITLE, pages: own });
  const missing = listed
    .flatMap(({ pages }) => pages)
    .find(({ file }) => !existsSync(posix.join(root, file)));
  if (missing) throw new Error(`docs/README.md names ${missing.file}`);
  return listed;
}

/** What a page of the list is about, for search engines. */
export const aboutOf = (root, file) =>
  groups(root)
    .flatMap(({ pages }) => pages)
    .find((page) => page.file === file || page.file === `www/site/${file}`)
    ?.about;

/** The side bar, as VitePress takes it. */
export const sidebar = (root) =>
  groups(root).map(({ title, pages }) => ({
    text: title,
    items: pages.map(({ text, file }) => ({
      text,
      link: `/${addressOf(file)}`,
    })),
  }));

/** The text of `llms.txt`: the same list, with links to the pages as Markdown. */
export function llms(root, about) {
  const parts = groups(root).map(({ title, pages }) => {
    const lines = pages.map(({ text, file, about }) => {
      const address = addressOf(file).replace(/\.html$/, ".md");
      return `- [${text}](${address}): ${about}`;
    });
    return `## ${title}\n\n${lines.join("\n")}\n`;
  });
  return `# framebatch\n\n> ${about}\n\n${parts.join("\n")}`;
}
