// The site: every document of the repository as a page, by VitePress.
//
// Its pages are docs/, the documents of the root and the records of the bench, where they lie;
// www/site holds the few that are the site's own. SITE_BASE is the folder of the host that the
// site is served from. Nothing is loaded from other hosts. `make site` adds the demos, the API
// and what works offline (tools/site.mjs).

import { resolve } from "node:path";
import { defineConfig } from "vitepress";
import { repositoryAddress } from "../../../tools/address.mjs";
import { documents, slugify } from "../links.mjs";
import { aboutOf, entriesOf, NO_PAGES, sidebar } from "../pages.mjs";
import { PRODUCT } from "../product.mjs";

const root = resolve(import.meta.dirname, "../../..");
const base = process.env.SITE_BASE ?? "/";
const address = repositoryAddress(root);

/** Pages of wide tables, and of code beside code. */
const WIDE =
  /^(index|docs\/(configuration|measurements|migration)|benches\/.*)\.md$/;

export default defineConfig({
  base,
  lang: "en",
  title: "framebatch",
  description: PRODUCT,
  srcDir: root,
  srcExclude: NO_PAGES,
  outDir: "dist",
  cacheDir: "../../target/site-cache",
  rewrites: { "README.md": "index.md", "www/site/:page.md": ":page.md" },
  // Held by tests/site, with their anchors, and over all that is no page of VitePress.
  ignoreDeadLinks: [/\/(api|live)\//],
  // It would style the whole page thrice at its start; the theme does it where colors change.
  appearance: { disableTransition: false },
  head: [
    [
      "link",
      {
        rel: "icon",
        href: "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path d='M8 0 12 11 8 16 4 11z' fill='%23138a79'/></svg>",
      },
    ],
  ],
  markdown: {
    anchor: { slugify },
    languageAlias: { mjs: "js" },
    theme: {
      light: "github-light-high-contrast",
      dark: "github-dark-high-contrast",
    },
    config: (md) => documents(md, { root, address }),
  },
  themeConfig: {
    nav: [
      { text: "Start", link: "/docs/start.html" },
      { text: "Configuration", link: "/docs/configuration.html" },
      { text: "Demos", link: "/demos.html" },
      { text: "Benchmarks", link: "/benchmarks.html" },
      { text: "API", link: "/api.html" },
      { text: "Changelog", link: "/CHANGELOG.html" },
    ],
    sidebar: sidebar(root),
    outline: [2, 3],
    search: {
      provider: "local",
      options: {
        // Records are tables of numbers, which nobody looks for by a word.
        _render: (text, env, md) =>
          env.relativePath.startsWith("benches/") ? "" : md.render(text, env),
      },
    },
    ...(address !== "" && { socialLinks: [{ icon: "git", link: address }] }),
  },
  transformPageData(page) {
    const about = aboutOf(root, page.relativePath);
    if (about !== undefined) page.description = about;
    if (page.relativePath === "index.md") page.titleTemplate = false;
    page.frontmatter.entries = entriesOf(page.relativePath);
    if (!WIDE.test(page.relativePath)) return;
    Object.assign(page.frontmatter, { aside: false, pageClass: "wide" });
  },
  vite: {
    build: { chunkSizeWarningLimit: 2000 },
    resolve: {
      alias: [
        {
          find: /^.*\/VPSidebarGroup\.vue$/,
          replacement: resolve(import.meta.dirname, "theme/Groups.vue"),
        },
      ],
    },
  },
});
