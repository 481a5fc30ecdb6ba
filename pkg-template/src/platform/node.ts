// What Node has and browsers do not, found at run time: a static import of `node:fs` would stop
// the bundlers of pages. Bun and Deno offer the same.

/** What of `node:fs/promises` is used. */
interface FileSystem {
  readFile(path: URL | string): Promise<Uint8Array<ArrayBuffer>>;
  open(path: string): Promise<FileHandle>;
}

/** What of an open file is used. */
export interface FileHandle {
  stat(): Promise<{ size: number }>;
  read(into: Uint8Array): Promise<{ bytesRead: number }>;
  close(): Promise<void>;
}

/** What of `node:events` is used. */
interface Events {
  setMaxListeners(most: number, target: EventTarget): void;
}

/** What of `node:module` is used. */
interface Modules {
  createRequire(from: string): { resolve(id: string): string };
}

/** What of `node:util` is used, where globals lack it, as in jsdom. */
interface Utilities {
  readonly TextDecoder: typeof TextDecoder;
  readonly TextEncoder: typeof TextEncoder;
}

/** What of `node:zlib` is used, where there is no `DecompressionStream`. */
interface Zlib {
  gunzipSync(bytes: Uint8Array): Uint8Array<ArrayBuffer>;
}

/** What of `node:worker_threads` is used, where globals lack it. */
interface Threads {
  readonly MessageChannel: typeof MessageChannel;
}

/** What of `node:url` is used. */
interface Addresses {
  fileURLToPath(address: string): string;
}

interface Builtins {
  "node:events": Events;
  "node:fs/promises": FileSystem;
  "node:module": Modules;
  "node:url": Addresses;
  "node:util": Utilities;
  "node:worker_threads": Threads;
  "node:zlib": Zlib;
}

/** What of `process` is used. */
interface Process {
  cwd(): string;
  getBuiltinModule?(name: string): unknown;
}

/** A timer of Node's, which can let go of the process. */
interface NodeTimer {
  unref?(): void;
}

function nodeProcess(): Process | undefined {
  return (globalThis as { process?: Process }).process;
}

/** A module of Node's own; undefined where there is none. */
export function builtin<Name extends keyof Builtins>(
  name: Name,
): Builtins[Name] | undefined {
  return nodeProcess()?.getBuiltinModule?.(name) as Builtins[Name] | undefined;
}

/** Where a file that a package exports lies, seen from the program's folder; undefined where it is not found. */
export function installedFile(id: string): string | undefined {
  try {
    return builtin("node:module")
      ?.createRequire(`${nodeProcess()!.cwd()}/`)
      .resolve(id);
  } catch {
    return undefined; // The package is not installed there, or that cannot be seen.
  }
}

/** A timer that keeps no process alive. */
export function setLooseTimer(
  callback: () => void,
  milliseconds?: number,
): unknown {
  const timer: unknown = setTimeout(callback, milliseconds);
  (timer as NodeTimer).unref?.();
  return timer;
}

/** `TextDecoder` and `TextEncoder`, also where a simulated page has none. */
export function textCodecs(): Utilities {
  return typeof TextDecoder === "function"
    ? { TextDecoder, TextEncoder }
    : builtin("node:util")!;
}

/** A message channel, also where a simulated page has none. */
export function messageChannel(): MessageChannel {
  const Channel =
    globalThis.MessageChannel ?? builtin("node:worker_threads")!.MessageChannel;
  return new Channel();
}

/** The globals that WebAssembly's glue uses. Its timers keep no process alive. */
export interface GlueGlobals extends Utilities {
  readonly setTimeout: typeof setLooseTimer;
}

export function glueGlobals(): GlueGlobals {
  return { ...textCodecs(), setTimeout: setLooseTimer };
}

/** The longest timer there is. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * Keeps a process alive, from its making until told otherwise: whoever awaits an answer waits
 * for more than the timers of this package, which let go of the process. Pages need no such
 * thing.
 */
export class ProcessHold {
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor() {
    this.set(true);
  }

  /** Holds the process, or lets go of it. */
  set(isHeld: boolean): void {
    if (isHeld === (this.timer !== undefined)) return;
    if (isHeld) {
      if (builtin("node:module") === undefined) return;
      this.timer = setInterval(() => {}, LONGEST_MS);
    } else {
      clearInterval(this.timer);
      this.timer = undefined;
    }
  }
}
