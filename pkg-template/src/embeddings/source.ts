// Where the files of a model come from: a folder on the web, or what the page has.
//
// It gives bytes as they arrive, and keeps what came from the web in the browser's
// cache. What files hold is not looked at here.

import { FramebatchError, invalid, kindOf, tagOf } from "../errors.js";

/** A file that the page has. */
export type FileData = ArrayBuffer | Uint8Array | Blob;

/** Files by their names in the folder, such as `1_Pooling/config.json`. */
export type ModelFiles =
  Readonly<Record<string, FileData>> | ReadonlyMap<string, FileData>;

/** The address of a folder, or its files. */
export type ModelSource = string | URL | ModelFiles;

/** A file while it is read. */
export interface OpenFile {
  /** Bytes, where that is known before they arrive. */
  readonly size: number | undefined;
  /** The next bytes; undefined at the end. */
  read(): Promise<Uint8Array | undefined>;
  /** No more of it is wanted. */
  cancel(): void;
}

/** A model's folder. */
export interface Folder {
  /** Begins to read a file; undefined where there is none of that name. */
  open(name: string): Promise<OpenFile | undefined>;
  /** What it gave is no model, and must not be found again. */
  forget(): Promise<void>;
}

/** How messages about loading begin. */
export const ABOUT = "embedder";

/** The browser's cache of models; `caches.delete` with this name empties it. */
const CACHE = "framebatch-models";

/** The folder of a source. Throws `invalid-input` for what is none. */
export function folderOf(
  source: ModelSource,
  signal: AbortSignal,
  isCached: boolean,
): Folder {
  const tag = tagOf(source);
  if (tag === "String" || tag === "URL") {
    return new WebFolder(addressOf(source as string), signal, isCached);
  }
  if (tag === "Map") {
    const files = source as ReadonlyMap<string, FileData>;
    return new GivenFolder((name) => files.get(name));
  }
  if (typeof source === "object" && source !== null) {
    const files = source as Readonly<Record<string, FileData>>;
    return new GivenFolder((name) =>
      Object.hasOwn(files, name) ? files[name] : undefined,
    );
  }
  throw invalid(
    ABOUT,
    `give the address of a model's folder, or its files by name, got ${kindOf(source)}`,
  );
}

function addressOf(source: string): URL {
  const page = globalThis.document?.baseURI ?? globalThis.location?.href;
  try {
    const address = new URL(source, page);
    if (!address.pathname.endsWith("/")) address.pathname += "/";
    return address;
  } catch (cause) {
    throw new FramebatchError(
      "invalid-input",
      `${ABOUT}: '${source}' is no address of a folder`,
      { cause },
    );
  }
}

class GivenFolder implements Folder {
  constructor(private readonly find: (name: string) => FileData | undefined) {}

  // What is wrong rejects, as where files are fetched: others are opened beside it.
  async open(name: string): Promise<OpenFile | undefined> {
    const data = this.find(name);
    if (data === undefined) return undefined;
    const tag = tagOf(data);
    if (tag === "Blob" || tag === "File") {
      const blob = data as Blob;
      return streamed(blob.stream(), blob.size, (cause) =>
        failed(`${name} could not be read`, cause),
      );
    }
    const isBytes = tag === "Uint8Array";
    if (!isBytes && tag !== "ArrayBuffer") {
      throw invalid(
        ABOUT,
        `${name} must be an ArrayBuffer, a Uint8Array or a Blob, got ${kindOf(data)}`,
      );
    }
    let rest: Uint8Array | undefined = isBytes
      ? (data as Uint8Array)
      : new Uint8Array(data as ArrayBuffer);
    return {
      size: rest.length,
      read() {
        const bytes = rest;
        rest = undefined;
        return Promise.resolve(bytes);
      },
      cancel() {},
    };
  }

  forget(): Promise<void> {
    return Promise.resolve();
  }
}

/** The error of a folder without a file that every model has. */
export const missing = (name: string): Error =>
  invalid(
    ABOUT,
    `${name} is missing; give the folder of a model as Hugging Face has it`,
  );

const MISSING = 404;
const NO_FILE = { status: MISSING };

class WebFolder implements Folder {
  private readonly cache: Promise<Cache | undefined>;
  /** What was looked for, and what is being written. */
  private readonly asked: URL[] = [];
  private readonly writes: Promise<unknown>[] = [];
  /** A file could not be had; what is kept is as good as it was. */
  private isUnreachable = false;

  constructor(
    private readonly base: URL,
    private readonly signal: AbortSignal,
    isCached: boolean,
  ) {
    this.cache = isCached ? openCache() : Promise.resolve(undefined);
  }

  async open(name: string): Promise<OpenFile | undefined> {
    const address = new URL(name, this.base);
    this.asked.push(address);
    const cache = await this.cache;
    const kept = await cache?.match(address).catch(() => undefined);
    const response = kept ?? (await this.fetch(name, address));
    if (kept === undefined && cache !== undefined) {
      // Where there is no room it is not kept, and this load goes on.
      const write = cache.put(address, response.clone());
      this.writes.push(write.catch(() => {}));
    }
    if (response.status === MISSING) return undefined;
    const { body, headers, type } = response;
    // Compressed on the way, the length is not that of the file. Of another origin the
    // length is to be seen, and whether it is compressed is not.
    const length =
      headers.has("content-encoding") || type === "cors"
        ? null
        : headers.get("content-length");
    return streamed(
      body ?? new Blob([]).stream(),
      length === null ? undefined : +length,
      (cause) => {
        this.signal.throwIfAborted();
        // What was kept and is damaged is to be forgotten.
        if (kept === undefined) this.isUnreachable = true;
        return failed(`${name} broke off on its way from ${address}`, cause);
      },
    );
  }

  async forget(): Promise<void> {
    if (this.isUnreachable) return;
    const cache = await this.cache;
    await Promise.all(this.writes);
    for (const address of this.asked) await cache?.delete(address);
  }

  private async fetch(name: string, url: URL): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(url, { signal: this.signal });
    } catch (cause) {
      this.signal.throwIfAborted();
      this.isUnreachable = true;
      throw failed(`${name} could not be fetched from ${url}`, cause);
    }
    const { status, headers } = response;
    // Servers of applications answer what they lack with their page.
    const isPage = headers.get("content-type")?.startsWith("text/html");
    // Kept as well: without a network nobody could say that it is not there.
    if (status === MISSING || isPage) return new Response(null, NO_FILE);
    if (response.ok) return response;
    this.isUnreachable = true;
    throw invalid(ABOUT, `${name}: ${url} was answered with status ${status}`);
  }
}

function failed(problem: string, cause: unknown): Error {
  return new FramebatchError(
    "invalid-input",
    `${ABOUT}: ${problem} (${(cause as Error).message})`,
    { cause },
  );
}

// There is none in insecure contexts, and some browsers refuse it.
async function openCache(): Promise<Cache | undefined> {
  try {
    return await caches.open(CACHE);
  } catch {
    return undefined;
  }
}

function streamed(
  stream: ReadableStream<Uint8Array>,
  size: number | undefined,
  broken: (cause: unknown) => Error,
): OpenFile {
  const reader = stream.getReader();
  return {
    size,
    async read() {
      try {
        return (await reader.read()).value;
      } catch (cause) {
        throw broken(cause);
      }
    },
    // Not awaited: while the cache reads the same bytes it would wait for that.
    cancel: () => void reader.cancel().catch(() => {}),
  };
}
