// What the site changes of a document, so that one text serves the repository and the site.
//
// Links to pages and to kept records stay as they are. Links to other files of the repository
// go to its address, where it has one, and are plain text otherwise. Tables can be reached by
// the keyboard where they are wider than the screen, and two blocks of code in a row stand
// beside each other. The text itself is left alone.

import { existsSync } from "node:fs";
import { posix } from "node:path";
import { addressOf, COPIED, isPage, MADE } from "./pages.mjs";

/** As forges make them, so that one link holds on the site and in the repository. */
export const slugify = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");

/** A plugin of markdown-it, for documents of the repository at `root`. */
export function documents(md, { root, address }) {
  md.core.ruler.before("normalize", "repository", (state) => {
    state.src = withRepositoryLinks(state.src, state.env, address);
  });
  md.core.ruler.push("links", (state) => {
    for (const { children } of state.tokens) {
      if (children) relink(children, state.env, { root, address });
    }
  });
  md.core.ruler.push("beside", (state) => {
    state.tokens = paired(state.tokens, state.Token);
    state.tokens.forEach(asCorner);
    state.tokens.forEach(asSentence);
  });
  md.renderer.rules.table_open = () =>
    '<div class="scroll" role="group" aria-label="table" tabindex="0"><table>';
  md.renderer.rules.table_close = () => "</table></div>\n";
}

/** What stands between `<!-- repository:PATH -->` and `<!-- end -->` as a link. */
function withRepositoryLinks(text, env, address) {
  const marked =
    /<!-- repository:(\S*) -->(?:\[([^\]]*)\]\([^)]*\)|([^<[]*))<!-- end -->/g;
  return text.replace(marked, (_, path, linked, plain) => {
    const shown = linked ?? plain;
    const [, file] = /^\/(?:blob|tree)\/HEAD\/(.+)$/.exec(path) ?? [];
    if (file !== undefined && (isPage(file) || COPIED.test(file))) {
      return `[${shown}](${relative(env, file)})`;
    }
    return address === "" ? shown : `[${shown}](${address}${path})`;
  });
}

/** From the page that is read to a file of the repository. */
function relative({ relativePath }, file) {
  const path = posix.relative(posix.dirname(relativePath), file);
  return path.startsWith(".") ? path : `./${path}`;
}

/** Mends the links of one line of tokens. */
function relink(tokens, env, { root, address }) {
  const open = [];
  for (const token of tokens) {
    if (token.type === "link_open") {
      open.push(mended(token, env, { root, address }));
    } else if (token.type === "link_close" && !open.pop()) {
      hide(token);
    }
  }
}

/** Whether the link is still one. */
function mended(token, env, { root, address }) {
  const href = token.attrGet("href");
  if (/^(\w+:|#)/.test(href)) return true;
  const [path, anchor] = decodeURI(href).split("#");
  if (path.startsWith("/")) {
    // Beside the pages: what the router of the pages must leave to the browser.
    if (MADE.test(path.slice(1))) token.attrSet("target", "_self");
    return true;
  }
  const from = posix.dirname(env.relativePath ?? "");
  const file = posix.join(from, path);
  if (isPage(file)) {
    const suffix = anchor === undefined ? "" : `#${anchor}`;
    token.attrSet("href", `/${addressOf(file)}${suffix}`);
    return true;
  }
  if (COPIED.test(file)) {
    token.attrSet("target", "_self");
    return true;
  }
  if (!existsSync(posix.join(root, file))) {
    throw new Error(`${env.relativePath} links to ${href}`);
  }
  if (address === "") {
    hide(token);
    return false;
  }
  token.attrSet("href", `${address}/blob/HEAD/${file}`);
  return true;
}

function hide(token) {
  Object.assign(token, { type: "text", content: "", attrs: null, nesting: 0 });
}

/** The empty corner of a table is no heading of a column. */
function asCorner(token, at, tokens) {
  if (token.type !== "th_open" || tokens[at + 1].content !== "") return;
  token.tag = "td";
  tokens[at + 2].tag = "td";
}

/** Cells of more than this have the width of a sentence, also on a phone. */
const LONG = 50;

function asSentence(token, at, tokens) {
  if (token.type !== "td_open" || tokens[at + 1].content.length < LONG) return;
  token.attrJoin("class", "sentence");
}

/** Two blocks of code in a row, but no more, in one box. */
function paired(tokens, Token) {
  const box = (content) =>
    Object.assign(new Token("html_block", "", 0), { content });
  const isCode = (at) => tokens[at]?.type === "fence";
  return tokens.flatMap((token, at) => {
    const isFirst = isCode(at) && isCode(at + 1) && !isCode(at - 1);
    const isSecond = isCode(at) && isCode(at - 1) && !isCode(at - 2);
    const isPair = !isCode(at + (isFirst ? 2 : 1));
    if (isFirst && isPair) return [box('<div class="beside">\n'), token];
    if (isSecond && isPair) return [token, box("</div>\n")];
    return [token];
  });
}
