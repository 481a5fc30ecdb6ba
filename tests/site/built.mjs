// The site as `make site` leaves it: its pages, and what they refer to.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, posix } from "node:path";

export const SITE = "www/site/dist";
/** The folder of a host that the site was built for. */
export const BASE = process.env.SITE_BASE ?? "/";

/** What TypeDoc and rustdoc make, whose own links are theirs to hold. */
const isMade = (path) => path.startsWith("api/");

/** Every page, by its path in the site. */
export const PAGES = existsSync(SITE)
  ? readdirSync(SITE, { recursive: true })
      .map((name) => name.replaceAll("\\", "/"))
      .filter((name) => name.endsWith(".html") && !isMade(name))
      .sort()
  : [];

export const read = (path) => readFileSync(`${SITE}/${path}`, "utf8");

/** What a page refers to: links, scripts, styles and pictures. */
export function references(html) {
  const tags = html.replace(/<script(?![^>]*src=)[^>]*>.*?<\/script>/gs, "");
  return [...tags.matchAll(/<(\w+)\s[^>]*?(?:href|src)="([^"]*)"/g)].map(
    ([, tag, address]) => ({ tag, address: address.replaceAll("&amp;", "&") }),
  );
}

/** The file of the site that an address on a page leads to, and the place in it. */
export function target(page, address) {
  const [path, anchor] = decodeURIComponent(address).split("#");
  if (path === "") return { file: page, anchor };
  // Beside the site there is nothing.
  if (path.startsWith("/") && !path.startsWith(BASE)) return { file: path };
  const from = path.startsWith("/")
    ? path.slice(BASE.length)
    : posix.join(dirname(page), path);
  const file = from === "" || from.endsWith("/") ? `${from}index.html` : from;
  return { file: posix.normalize(file.replace(/\?.*$/, "")), anchor };
}

/** The places of a page that a link may lead to. */
export const anchors = (html) =>
  new Set([...html.matchAll(/\s(?:id|name)="([^"]+)"/g)].map(([, id]) => id));
