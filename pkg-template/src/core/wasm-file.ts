// Finds, reads and compiles a WebAssembly file of the package.
//
// Bundlers copy the file and rewrite its address, or do neither; then it may lie at one of a
// few other places, or an entry of the package holds it. Nothing is fetched by importing this
// file. What is said of a failure is in `load-failure.ts`.

import { FramebatchError, tagOf } from "../checks/errors.js";
import { builtin, installedFile } from "../platform/node.js";
import type { WasmSource } from "./core.js";
import {
  LoadFailure,
  nowhere,
  uncompiled,
  unfetched,
  unreadable,
  wrongAnswer,
  wrongBytes,
} from "./load-failure.js";

/** A WebAssembly file of the package. */
export interface WasmFile {
  /** Its name in the package's folder `wasm`. */
  readonly name: string;
  /** The entry of the package that holds it. */
  readonly inline: string;
  /** Whether no option says where it lies. */
  readonly hasNoOption?: true;
  /** Its address beside the package's scripts, as bundlers rewrite it. */
  readonly address: () => URL;
}

/** Compiles what an entry of the package holds. */
export type HeldFile = () => WasmSource | Promise<WasmSource>;

const held = new Map<string, HeldFile>();

/** From here on a file is taken from a script, and not fetched. */
export function hold(name: string, file: HeldFile): void {
  held.set(name, file);
}

/**
 * Compiles a file as {@link compile} does, and has it started. Rejects with `unsupported`.
 */
export async function compileAndStart<Started>(
  about: string,
  file: WasmFile,
  given: WasmSource | undefined,
  start: (module: WebAssembly.Module) => Promise<Started>,
): Promise<Started> {
  const module = await compile(about, file, given);
  try {
    return await start(module);
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new FramebatchError(
      "unsupported",
      `${about} could not be started: ${said}`,
      { cause },
    );
  }
}

/**
 * A file as a module: what was `given`, what a script holds, or the first place that has it.
 * Rejects with `unsupported`; the message begins with `about`.
 */
export async function compile(
  about: string,
  file: WasmFile,
  given: WasmSource | undefined,
): Promise<WebAssembly.Module> {
  const source = given ?? (await held.get(file.name)?.());
  const places = source === undefined ? placesOf(file) : [source];
  let first: unknown;
  for (const place of places) {
    try {
      return await moduleOf(file, place);
    } catch (error) {
      first ??= error;
      if (!(error instanceof LoadFailure && error.mayLieElsewhere)) break;
    }
  }
  first ??= nowhere(file);
  const said =
    first instanceof LoadFailure ? `${first.reason}; ${first.advice}` : first;
  const cause = first instanceof LoadFailure ? (first.cause ?? first) : first;
  throw new FramebatchError(
    "unsupported",
    `${about} could not be loaded: ${said}`,
    { cause },
  );
}

/** Servers of development that keep a package's scripts apart from its other files: Vite up to 7, Angular. */
const PREBUNDLED = /^(.*?)\/(?:node_modules\/)?\.[\w-]+\/(?:.*\/)?deps[^/]*\//;

/** Where a file may lie, the likeliest place first. */
function placesOf({ name, address }: WasmFile): (URL | string)[] {
  const places: (URL | string)[] = [];
  const url = import.meta.url;
  const apart = PREBUNDLED.exec(url ?? "");
  if (apart !== null) {
    places.push(`${apart[1]}/node_modules/framebatch/wasm/${name}`);
  }
  try {
    places.push(address());
    // Bundlers that leave addresses alone, behind which the file was copied.
    places.push(new URL(name, url));
  } catch {
    // Scripts that are no modules have no address.
  }
  const installed = installedFile(`framebatch/${name}`);
  if (installed !== undefined) places.push(installed);
  const canRead = builtin("node:fs/promises") !== undefined;
  return places.filter((place) => canRead || !isFile(`${place}`));
}

function isFile(address: string): boolean {
  return address.startsWith("file:");
}

async function moduleOf(
  file: WasmFile,
  source: WasmSource,
): Promise<WebAssembly.Module> {
  const found = await source;
  const tag = tagOf(found);
  if (tag === "WebAssembly.Module") return found as WebAssembly.Module;
  if (tag === "URL" || tag === "Request" || typeof found === "string") {
    return moduleOf(file, await read(file, found as URL | Request | string));
  }
  if (tag === "Response") return ofResponse(file, found as Response);
  if (!startsAsWasm(found as BufferSource)) throw wrongBytes(file);
  return compiled(file, WebAssembly.compile(found as BufferSource));
}

/** What lies at an address, or at a path where there are files. */
async function read(
  file: WasmFile,
  place: URL | Request | string,
): Promise<Response | BufferSource> {
  const address = tagOf(place) === "Request" ? "" : String(place);
  const fs = builtin("node:fs/promises");
  // One letter before the colon is a drive.
  const isPath = address !== "" && !/^\w[\w+.-]+:/.test(address);
  if (fs !== undefined && (isPath || isFile(address))) {
    try {
      return await fs.readFile(isPath ? address : new URL(address));
    } catch (cause) {
      throw unreadable(file, address, cause);
    }
  }
  try {
    return await fetch(place);
  } catch (cause) {
    throw unfetched(file, address || (place as Request).url, cause);
  }
}

async function ofResponse(
  file: WasmFile,
  response: Response,
): Promise<WebAssembly.Module> {
  if (!response.ok) throw wrongAnswer(file, response, false);
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("application/wasm")) {
    return compiled(file, WebAssembly.compileStreaming(response));
  }
  // Whoever serves the file as another type pays with an early start, and with nothing else.
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (!startsAsWasm(bytes)) {
    const isHtml = type.startsWith("text/html") || bytes[0] === 0x3c;
    throw wrongAnswer(file, response, isHtml);
  }
  return compiled(file, WebAssembly.compile(bytes));
}

async function compiled(
  file: WasmFile,
  compiling: Promise<WebAssembly.Module>,
): Promise<WebAssembly.Module> {
  try {
    return await compiling;
  } catch (cause) {
    throw uncompiled(file, cause);
  }
}

/** Whether bytes begin with the four that every WebAssembly file begins with. */
function startsAsWasm(bytes: BufferSource): boolean {
  const { buffer, byteOffset, byteLength } = ArrayBuffer.isView(bytes)
    ? bytes
    : { buffer: bytes, byteOffset: 0, byteLength: bytes.byteLength };
  if (byteLength < 4) return false;
  return new DataView(buffer, byteOffset).getUint32(0) === 0x0061736d;
}
