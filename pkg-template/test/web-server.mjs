// A server of one folder, the browser's cache and its locks, for tests of folders on the web.
//
// The server answers as one on the web does, conditions included; a test changes its files
// and says what else it answers.

export const SITE = "https://models.test/small/";

/** A stand-in of the global `name`; returns what puts the real one back. */
function stub(name, value) {
  const had = Object.getOwnPropertyDescriptor(globalThis, name);
  Object.defineProperty(globalThis, name, { value, configurable: true });
  return () => {
    delete globalThis[name];
    if (had !== undefined) Object.defineProperty(globalThis, name, had);
  };
}

/** A response with the address that it came from, as clones of it have. */
export function from(address, response) {
  const { clone } = response;
  return Object.defineProperties(response, {
    url: { value: address },
    clone: { value: () => from(address, clone.call(response)) },
  });
}

/** Puts everything in place; `restore` takes it away. */
export function webServer(files) {
  const it = {
    files,
    /** What is sent to tell versions apart: "etag", "last-modified" or "nothing". */
    validator: "etag",
    /** How some names are answered: an error, or what makes a response. */
    answers: {},
    /** What was asked: name, status, and what the request said of caches. */
    asked: [],
    /** Responses whose bodies were given up before their end. */
    given: [],
    /** Whether the page is of the server's origin. */
    isOwn: true,
    /** What writing to the cache throws. */
    full: undefined,
    kept: new Map(),
    locks: new Set(),
    names: (status) =>
      it.asked
        .filter((request) => request.status === status)
        .map(({ name }) => name)
        .sort(),
    /** What lies in the cache: the names of the list and those of files, sorted. */
    keptNames() {
      const keys = [...it.kept.keys()].map((url) => decodeURIComponent(url));
      const files = keys.filter((url) => url.includes("?framebatch-file="));
      return files.map((url) => url.replace(/.*=[^/]*\//, "")).sort();
    },
  };

  async function fetch(url, { signal, cache, headers = {} }) {
    signal?.throwIfAborted();
    const address = String(url);
    const name = address.startsWith(SITE)
      ? address.slice(SITE.length)
      : address;
    const request = { name, address, cache, headers, status: "none" };
    it.asked.push(request);
    const answer = it.answers[name];
    if (answer instanceof Error) throw answer;
    const response =
      answer === undefined
        ? file(name, headers, signal)
        : await answer(signal, headers, request);
    request.status = response.status;
    return from(address, response);
  }

  function file(name, conditions, signal) {
    if (!(name in it.files)) return new Response("none", { status: 404 });
    const bytes = it.files[name];
    const headers = { "content-length": bytes.length };
    const sum = bytes.reduce((sum, byte) => (sum * 31 + byte) % 1e9, 7);
    if (it.validator === "etag") headers.etag = `"${sum}"`;
    if (it.validator === "last-modified") {
      headers["last-modified"] = new Date(sum * 1000).toUTCString();
    }
    const isKnown =
      (headers.etag ?? 0) === conditions["if-none-match"] ||
      (headers["last-modified"] ?? 0) === conditions["if-modified-since"];
    if (isKnown) return new Response(null, { status: 304, headers });
    const start = (to) => {
      to.enqueue(bytes.slice());
      signal?.addEventListener("abort", () => {
        cancel();
        to.error(signal.reason);
      });
    };
    const pull = (to) => to.close();
    const cancel = () => void it.given.push(name);
    const how = { highWaterMark: 0 };
    const body = new ReadableStream({ start, pull, cancel }, how);
    return new Response(body, { headers });
  }

  const cache = {
    async match(url) {
      const known = it.kept.get(String(url));
      if (known === undefined) return undefined;
      return known.clone();
    },
    async put(url, response) {
      const { headers, status, url: at } = response;
      const bytes = await response.arrayBuffer();
      if (it.full !== undefined) throw it.full;
      it.kept.set(
        String(url),
        from(at, new Response(bytes, { headers, status })),
      );
    },
    delete: async (url) => it.kept.delete(String(url)),
    async keys(url, { ignoreSearch }) {
      const path = (url) => String(url).split("?")[0];
      if (!ignoreSearch) throw new Error("the fake ignores searches only");
      const keys = [...it.kept.keys()];
      return keys.flatMap((key) =>
        path(key) === path(url) ? [{ url: key }] : [],
      );
    },
  };

  const locks = {
    async request(name, { ifAvailable }, use) {
      if (!ifAvailable) throw new Error("the fake does not wait");
      if (it.locks.has(name)) return use(null);
      it.locks.add(name);
      try {
        return await use({ name });
      } finally {
        it.locks.delete(name);
      }
    },
  };

  const location = {
    get origin() {
      return it.isOwn ? new URL(SITE).origin : "https://page.test";
    },
  };
  const stubs = Object.entries({
    fetch,
    location,
    caches: { open: async () => cache },
    navigator: { locks },
  }).map(([name, value]) => stub(name, value));
  it.stub = (name, value) => void stubs.unshift(stub(name, value));
  it.restore = () => stubs.forEach((restore) => restore());
  return it;
}
