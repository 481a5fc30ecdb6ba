// Serves folders on loopback, for the demo and the tests.
//
//   const site = await serve({ "/pkg/": "pkg", "/": "tests/e2e/pages" })
//   site.url  // http://127.0.0.1:PORT
//   await site.close()
//
// The server has no cache, no listing and no upload, and never leaves the folders it is given.

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize, resolve } from "node:path";

/** Headers for which browsers have fine clocks and shared memory, and tell how much memory a page uses. */
export const ISOLATED = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".wasm": "application/wasm",
};

/**
 * Starts a server for `mounts`, URL prefix to folder; the longest prefix wins.
 * `headers(path)` adds response headers, such as a content security policy;
 * `answer(request, response)` may answer in place of the folders, and says whether it did.
 */
export async function serve(
  mounts,
  { port = 0, headers = () => ({}), answer = () => false } = {},
) {
  const prefixes = Object.keys(mounts).sort((a, b) => b.length - a.length);

  const server = createServer(async (request, response) => {
    if (answer(request, response)) return;
    const path = decodeURIComponent(
      new URL(request.url, "http://loopback").pathname,
    );
    const file = await find(path);
    const type = file && TYPES[extname(file)];
    response.writeHead(file ? 200 : 404, {
      "content-type": type ?? "application/octet-stream",
      // With no-store, a browser would not keep the page for going back either.
      "cache-control": "no-cache",
      ...headers(path),
    });
    if (file) createReadStream(file).pipe(response);
    else response.end();
  });

  async function find(path) {
    const prefix = prefixes.find((candidate) => path.startsWith(candidate));
    if (prefix === undefined) return null;
    // Normalised as an absolute path, `..` cannot climb out of the folder.
    const inside = normalize(`/${path.slice(prefix.length)}`);
    const file = join(resolve(mounts[prefix]), inside);
    const found = await stat(file).catch(() => null);
    if (found?.isFile()) return file;
    const index = join(file, "index.html");
    return (await stat(index).catch(() => null))?.isFile() ? index : null;
  }

  await new Promise((done) => server.listen(port, "127.0.0.1", done));
  const bound = server.address().port;
  return {
    port: bound,
    url: `http://127.0.0.1:${bound}`,
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(done);
      }),
  };
}
