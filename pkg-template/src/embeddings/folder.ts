// The folder that a caller names: an address on the web, or files that the page has.
//
// Files of the page are read here; folders on the web, in `web-folder.ts`.

import { FramebatchError, invalid, kindOf, tagOf } from "../checks/errors.js";
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
    // The query is left out; addresses without a hierarchy throw here.
    return new URL(".", address);
  } catch (cause) {
    throw new FramebatchError(
      "invalid-input",
      `${ABOUT}: '${source}' is no address of a folder`,
      { cause },
    );
  }
}

class GivenFolder implements Folder {
  readonly contents = new Map<string, Promise<Uint8Array | undefined>>();

  constructor(private readonly find: (name: string) => FileData | undefined) {}

  // Rejects and never throws, as fetching does: other files are opened at the same time.
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

  /** Files of the page are not revalidated, and not cached. */
  async confirm(): Promise<void> {}

  keep(): void {}

  async abandon(): Promise<void> {}
}
