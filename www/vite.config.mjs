// Builds the site: every page of this folder becomes a page of www/dist.
//
// `framebatch` is the built package as it is published; the site reaches into no
// source of the project.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vite";

const here = import.meta.dirname;
const pages = readdirSync(here, { recursive: true }).filter(
  (name) => name.endsWith(".html") && !name.startsWith("dist"),
);

export default defineConfig({
  // Relative addresses: the site works in any folder of any host.
  base: "./",
  resolve: { alias: { framebatch: join(here, "../pkg/dist/index.js") } },
  build: {
    target: "es2022",
    rolldownOptions: { input: pages.map((page) => join(here, page)) },
  },
});
