// Builds the site: every page of this folder becomes a page of www/dist.
//
// `framebatch` is the built package as it is published; the site reaches into no
// source of the project.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vite";
import { keptRecords } from "../tools/records/kept.mjs";

const here = import.meta.dirname;
const pages = readdirSync(here, { recursive: true }).filter(
  (name) => name.endsWith(".html") && !/^(dist|parts|site)/.test(name),
);

/** Puts what pages share in the place of the comments that name it. */
const parts = {
  name: "parts",
  transformIndexHtml: {
    order: "pre",
    handler: (page) =>
      page.replace(/<!-- (parts\/\S+) -->/g, (_, part) =>
        readFileSync(join(here, part), "utf8"),
      ),
  },
};

/** The records that measured a row that the bench begins with, as `kept-records` of the bench. */
const records = {
  name: "records",
  resolveId: (id) => (id === "kept-records" ? `\0${id}` : undefined),
  load: (id) =>
    id === "\0kept-records"
      ? `export const RECORDS = ${JSON.stringify(keptRecords(join(here, "../benches/record")))};`
      : undefined,
};

export default defineConfig({
  // Relative addresses: the site works in any folder of any host.
  base: "./",
  plugins: [parts, records],
  resolve: {
    alias: [
      { find: /^framebatch$/, replacement: join(here, "../pkg/dist/index.js") },
      {
        find: /^framebatch\/(.+)$/,
        replacement: join(here, "../pkg/dist/$1.js"),
      },
    ],
  },
  build: {
    target: "es2022",
    rolldownOptions: { input: pages.map((page) => join(here, page)) },
  },
});
