// The folder that a caller names: an address on the web, or files that the page has.
//
// Files of the page are read here; folders on the web, in `web-folder.ts`.

import { FramebatchError, invalid, kindOf, tagOf } from "../checks/errors.js";
import { builtin, type FileHandle } from "../platform/node.js";
import {
  ABOUT,
  failed,
  type FileData,
  type Folder,
  type ModelSource,
  type OpenFile,
  streamed,
} from "./source.js";
import { WebFolder } from "./web-folder.js";

/** Bytes of a file on a disk that are read at once. */
const PORTION = 1 << 18;

/** The folder of a source. Throws `invalid-input` for what is none. */
export function folderOf(
  source: ModelSource,
  signal: AbortSignal,
  isCached: boolean,
): Folder {
  const tag = tagOf(source);
  if (tag === "String" || tag === "URL") {
    const path = pathOf(source as string);
    if (path !== undefined) return new DiskFolder(path);
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

/** The path of a source on a disk, where there is no page that addresses belong to. */
function pathOf(source: string | URL): string | undefined {
  const text = String(source);
  const hasPage = "document" in globalThis || "location" in globalThis;
  if (hasPage || builtin("node:fs/promises") === undefined) return undefined;
  if (text.startsWith("file:")) {
    try {
      return builtin("node:url")!.fileURLToPath(text);
    } catch (cause) {
      throw noFolder(text, cause);
    }
  }
  // One letter is a disk of Windows.
  return /^[a-z][a-z\d+.-]+:/i.test(text) ? undefined : text;
}

function addressOf(source: string): URL {
  const page = globalThis.document?.baseURI ?? globalThis.location?.href;
  try {
    const address = new URL(source, page);
    if (!address.pathname.endsWith("/")) address.pathname += "/";
    // The query is left out; addresses without a hierarchy throw here.
    return new URL(".", address);
  } catch (cause) {
    throw noFolder(source, cause);
  }
}

function noFolder(source: string, cause: unknown): FramebatchError {
  return new FramebatchError(
    "invalid-input",
    `${ABOUT}: '${source}' is no address of a folder`,
    { cause },
  );
}

class GivenFolder implements Folder {
  readonly contents = new Map<string, Promise<Uint8Array | undefined>>();

  constructor(private readonly find: (name: string) => FileData | undefined) {}

  // Rejects and never throws, as fetching does: other files are opened at the same time.
  async open(name: string): Promise<OpenFile | undefined> {
    return this.opened(name, this.find(name));
  }

  protected opened(
    name: string,
    data: FileData | undefined,
  ): OpenFile | undefined {
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
    const read = (): Promise<Uint8Array | undefined> => {
      const bytes = rest;
      rest = undefined;
      return Promise.resolve(bytes);
    };
    return { size: rest.length, read, lend: read, cancel() {} };
  }

  /** Files of the page are not revalidated, and not cached. */
  async confirm(): Promise<void> {}

  keep(): void {}

  async abandon(): Promise<void> {}
}

/** A folder on a disk, in Node. */
class DiskFolder extends GivenFolder {
  constructor(readonly place: string) {
    super(() => undefined);
  }

  // In portions: whole, a file would be in memory twice, and Node reads none beyond 2 GiB.
  override async open(name: string): Promise<OpenFile | undefined> {
    const fail = (cause: unknown): FramebatchError =>
      failed(`${name} could not be read`, cause);
    try {
      const { open } = builtin("node:fs/promises")!;
      const file = await open(`${this.place}/${name}`);
      try {
        const { size } = await file.stat();
        return streamed(streamOf(file), size, fail);
      } catch (error) {
        await file.close();
        throw error;
      }
    } catch (cause) {
      if ((cause as { code?: string }).code === "ENOENT") return undefined;
      throw fail(cause);
    }
  }
}

/** The bytes of a file, which is closed at their end and where nobody wants more of them. */
function streamOf(file: FileHandle): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      async pull(stream) {
        const bytes = new Uint8Array(PORTION);
        let length = 0;
        try {
          length = (await file.read(bytes)).bytesRead;
        } finally {
          if (length === 0) await file.close();
        }
        if (length > 0) stream.enqueue(bytes.subarray(0, length));
        else stream.close();
      },
      cancel: () => file.close(),
    },
    { highWaterMark: 0 },
  );
}
