// A folder of files, for whoever reads a model: bytes by name, as they arrive.
//
// Where files come from is known in `folder.ts` and `web-folder.ts`; what files hold is
// not looked at here.

import { FramebatchError, invalid } from "../checks/errors.js";

/** A file that the page has. */
export type FileData = ArrayBuffer | Uint8Array | Blob;

/** Files by their names in the folder, such as `1_Pooling/config.json`. */
export type ModelFiles =
  Readonly<Record<string, FileData>> | ReadonlyMap<string, FileData>;

/** The address of a folder, in Node its path, or its files. */
export type ModelSource = string | URL | ModelFiles;

/** A file while it is read. */
export interface OpenFile {
  /** Bytes, where that is known before they arrive. */
  readonly size: number | undefined;
  /** The next bytes; undefined at the end. */
  read(): Promise<Uint8Array | undefined>;
  /** The same bytes, for whoever needs them only until the next ones are asked for. */
  lend(): Promise<Uint8Array | undefined>;
  /** No more of it is wanted. */
  cancel(): void;
}

/** A model's folder, for one load. */
export interface Folder {
  /** Where it is, for messages; undefined for files that the page has. */
  readonly place?: string;
  /** The bytes of files that were read whole, by name: a file that is read again gives the same. */
  readonly contents: Map<string, Promise<Uint8Array | undefined>>;
  /** Begins to read a file; undefined where there is none of that name. */
  open(name: string): Promise<OpenFile | undefined>;
  /** Throws unless what was read is of one version of the folder. */
  confirm(): Promise<void>;
  /** The load succeeded: its files are cached, as far as that is possible. */
  keep(): void;
  /** The load failed: none of the files that it fetched are cached. */
  abandon(): Promise<void>;
}

/** How messages about loading begin. */
export const ABOUT = "embedder";

/** The error of a folder without a file that every model has. */
export const missing = (name: string): Error =>
  invalid(
    ABOUT,
    `${name} is missing; give the folder of a model as Hugging Face has it`,
  );

/** An error with another one underneath. */
export function failed(problem: string, cause: unknown): FramebatchError {
  return new FramebatchError(
    "invalid-input",
    `${ABOUT}: ${problem} (${(cause as Error).message})`,
    { cause },
  );
}

/** Bytes that a stream is asked for at once: by one who lends them, and by one who gives them away. */
const LENT = 1 << 18;
const GIVEN = 1 << 16;

/** A stream as a file; `broken` says what an error on the way means. */
export function streamed(
  stream: ReadableStream<Uint8Array>,
  size: number | undefined,
  broken: (cause: unknown) => Error,
): OpenFile {
  const { reader, next } = portionsOf(stream);
  let lent = new ArrayBuffer(0);
  const portion = async (buffer: ArrayBuffer) => {
    try {
      return await next(buffer);
    } catch (cause) {
      throw broken(cause);
    }
  };
  return {
    size,
    read: () => portion(new ArrayBuffer(GIVEN)),
    async lend() {
      if (lent.byteLength === 0) lent = new ArrayBuffer(LENT);
      const bytes = await portion(lent);
      lent = (bytes?.buffer ?? lent) as ArrayBuffer;
      return bytes;
    },
    // The cache reads the same bytes: an awaited cancellation would wait for the cache.
    cancel: () => void reader.cancel().catch(() => {}),
  };
}

/** The reader of a stream, and what gives its next bytes. */
interface Portions {
  readonly reader: ReadableStreamGenericReader;
  next(buffer: ArrayBuffer): Promise<Uint8Array | undefined>;
}

/**
 * Bytes come in the buffer that is given, where a stream takes one. What a stream makes itself stays
 * until it is collected, and by then that may be as much as the whole file.
 */
function portionsOf(stream: ReadableStream<Uint8Array>): Portions {
  try {
    const reader = stream.getReader({ mode: "byob" });
    return {
      reader,
      async next(buffer) {
        const { done, value } = await reader.read(new Uint8Array(buffer));
        return done ? undefined : (value as Uint8Array);
      },
    };
  } catch {
    const reader = stream.getReader();
    return { reader, next: async () => (await reader.read()).value };
  }
}
