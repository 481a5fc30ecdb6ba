// Lets the site be read without a network, once it was open: a service worker.
//
// The documents are kept at once, everything else when it is first looked at. Pages come
// from the network while there is one, so that nobody reads an old one; files whose names
// hold their content come from what is kept. What is no part of the site, such as a model
// beside it, passes by.

/** Written by tools/site.mjs: a version, the documents' files, how other paths begin, and what is left alone. */
const { version, ahead, later, never } = SITE_FILES;

const KEPT = `framebatch-site-${version}`;
const base = new URL("./", self.location.href).pathname;
const isAhead = new Set(ahead);

self.addEventListener("install", (event) => {
  event.waitUntil(keepAhead());
});

async function keepAhead() {
  const cache = await caches.open(KEPT);
  await cache.addAll(ahead.map((path) => base + path));
  await self.skipWaiting();
}

self.addEventListener("activate", (event) => {
  event.waitUntil(dropOthers());
});

async function dropOthers() {
  for (const name of await caches.keys()) {
    if (name.startsWith("framebatch-site-") && name !== KEPT) {
      await caches.delete(name);
    }
  }
  await self.clients.claim();
}

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== self.location.origin) return;
  if (!pathname.startsWith(base)) return;
  const path = pathname.slice(base.length).replace(/(^|\/)$/, "$1index.html");
  if (!isAhead.has(path) && !isLater(path)) return;
  const isNamedByContent = /(^|\/)assets\//.test(path);
  event.respondWith(
    isNamedByContent ? keptFirst(request) : networkFirst(request, base + path),
  );
});

const begins = (path, starts) => starts.some((start) => path.startsWith(start));
const isLater = (path) => begins(path, later) && !begins(path, never);

async function keptFirst(request) {
  const cache = await caches.open(KEPT);
  return (await cache.match(request)) ?? keep(cache, request, request.url);
}

async function networkFirst(request, address) {
  const cache = await caches.open(KEPT);
  try {
    return await keep(cache, request, address);
  } catch (error) {
    const kept = await cache.match(address);
    if (kept === undefined) throw error;
    return kept;
  }
}

async function keep(cache, request, address) {
  const response = await fetch(request);
  if (response.ok) await cache.put(address, response.clone());
  return response;
}
