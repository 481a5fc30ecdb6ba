// The built site: every link leads somewhere, nothing comes from another host, and what is
// listed for readers and for machines is there.

import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { test } from "node:test";
import { addressOf, apiOf, groups, GUIDES } from "../../www/site/pages.mjs";
import { anchors, PAGES, read, references, SITE, target } from "./built.mjs";

test("the site has every page of the list, and its own", () => {
  assert.ok(PAGES.length > 80, `${PAGES.length} pages; run make site`);
  const listed = groups(".").flatMap(({ pages }) => pages);
  const missing = listed
    .map(({ file }) => addressOf(file))
    .filter((path) => !PAGES.includes(path));
  assert.deepEqual(missing, []);
});

test("no link is dead", () => {
  const places = new Map();
  const placesOf = (file) => {
    if (!places.has(file)) places.set(file, anchors(read(file)));
    return places.get(file);
  };
  const dead = [];
  let count = 0;
  for (const page of PAGES) {
    for (const { address } of references(read(page))) {
      if (/^(\w+:|\/\/)/.test(address)) continue;
      count += 1;
      const { file, anchor } = target(page, address);
      const isThere =
        existsSync(`${SITE}/${file}`) && statSync(`${SITE}/${file}`).isFile();
      if (!isThere) dead.push(`${page}: ${address}`);
      else if (
        anchor &&
        file.endsWith(".html") &&
        !placesOf(file).has(anchor)
      ) {
        dead.push(`${page}: ${address} has no such place`);
      }
    }
  }
  assert.ok(count > 2000, `${count} links`);
  assert.deepEqual([...new Set(dead)], []);
});

test("nothing is loaded from another host", () => {
  const strange = PAGES.flatMap((page) =>
    references(read(page))
      .filter(({ tag }) => tag !== "a")
      .filter(({ address }) => /^(https?:)?\/\//.test(address))
      .map(({ address }) => `${page}: ${address}`),
  );
  assert.deepEqual(strange, []);
});

test("llms.txt names pages that are there, as they are written", () => {
  const links = [...read("llms.txt").matchAll(/\]\((\S+?)\)/g)];
  assert.ok(links.length > 20);
  const missing = links.filter(([, path]) => !existsSync(`${SITE}/${path}`));
  assert.deepEqual(missing, []);
});

test("the API and the guides lead to each other", () => {
  const leads = (from, to) =>
    references(read(from)).some(
      ({ address }) => target(from, address).file === to,
    );
  const pairs = Object.entries(GUIDES).map(([entry, guide]) => [
    apiOf(entry),
    `docs/${guide}.html`,
  ]);
  assert.ok(pairs.length > 5);
  for (const [api, guide] of pairs) {
    assert.ok(leads(api, guide), `${api} does not lead to ${guide}`);
    assert.ok(leads(guide, api), `${guide} does not lead to ${api}`);
  }
  assert.ok(leads("api/rust/framebatch/index.html", "docs/native.html"));
  assert.ok(leads("api.html", "api/rust/framebatch/index.html"));
});
