// The fields of JSON files, checked as they are read.
//
// A wrong field is thrown as a sentence that names file and field. What fields mean is
// not known here.

import { FramebatchError, invalid, kindOf } from "../checks/errors.js";
import { textCodecs } from "../platform/node.js";
import { ABOUT, type Folder, type OpenFile } from "./source.js";

/** Bytes that a file of JSON or of words may have. */
const MOST = 64 << 20;

/** Objects and lists within each other. */
const MOST_DEPTH = 127;

/** An object in a file. */
export class Fields {
  constructor(
    /** The file, and where in it. */
    readonly location: string,
    private readonly values: Readonly<Record<string, unknown>>,
  ) {}

  /** An object; `what` says where it stands. */
  static of(place: string, value: unknown): Fields {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return new Fields(place, value as Record<string, unknown>);
    }
    throw invalid(ABOUT, `${place} must be an object, got ${kindOf(value)}`);
  }

  /** The object of a file that a folder need not have: no fields where it has none. */
  static ofFile(name: string, value: unknown): Fields {
    return Fields.of(name, value === undefined ? {} : value);
  }

  names(): string[] {
    return Object.keys(this.values);
  }

  get(name: string): unknown {
    return Object.hasOwn(this.values, name) ? this.values[name] : undefined;
  }

  /** An error about a field. */
  wrong(name: string, problem: string): FramebatchError {
    return invalid(ABOUT, `${this.location}: ${name} ${problem}`);
  }

  /** A whole number; `usual` where there is none. */
  whole(name: string, least: number, most: number, usual?: number): number {
    const value = this.get(name) ?? usual;
    const number = Number.isInteger(value) ? (value as number) : NaN;
    if (number >= least && number <= most) return number;
    throw this.wrong(
      name,
      `must be a whole number from ${least} to ${most}, got ${shown(value)}`,
    );
  }

  text(name: string, usual?: string): string {
    const value = this.get(name) ?? usual;
    if (typeof value === "string") return value;
    throw this.wrong(name, `must be a string, got ${shown(value)}`);
  }

  /** A token, which stands for itself or beside how it is to be matched. */
  token(name: string, usual: string): string {
    const value = this.get(name) ?? usual;
    if (typeof value === "string") return value;
    const has = typeof value === "object" && !Array.isArray(value);
    const content = has ? this.object(name)!.get("content") : undefined;
    if (typeof content === "string") return content;
    throw this.wrong(
      name,
      `must be a string, or have one as content, got ${shown(value)}`,
    );
  }

  flag(name: string, usual: boolean): boolean {
    const value = this.get(name) ?? usual;
    if (typeof value === "boolean") return value;
    throw this.wrong(name, `must be true or false, got ${shown(value)}`);
  }

  /** An object in a field; undefined where there is none. */
  object(name: string): Fields | undefined {
    const value = this.get(name) ?? undefined;
    if (value === undefined) return undefined;
    return Fields.of(`${this.location}: ${name}`, value);
  }

  list(name: string): readonly unknown[] {
    const value = this.get(name) ?? [];
    if (Array.isArray(value)) return value;
    throw this.wrong(name, `must be a list, got ${shown(value)}`);
  }
}

/** A file's bytes; undefined where the folder has none of that name. */
export function readBytes(
  folder: Folder,
  name: string,
): Promise<Uint8Array | undefined> {
  let bytes = folder.contents.get(name);
  if (bytes === undefined) {
    bytes = takeBytes(folder, name);
    folder.contents.set(name, bytes);
  }
  return bytes;
}

/** A file's text; undefined where the folder has none of that name. */
export async function readText(
  folder: Folder,
  name: string,
): Promise<string | undefined> {
  const bytes = await readBytes(folder, name);
  if (bytes === undefined) return undefined;
  try {
    return decode(bytes);
  } catch {
    throw invalid(ABOUT, `${name} is not UTF-8`);
  }
}

async function takeBytes(
  folder: Folder,
  name: string,
): Promise<Uint8Array | undefined> {
  const file = await folder.open(name);
  if (file === undefined) return undefined;
  try {
    return await whole(file);
  } finally {
    file.cancel();
  }

  async function whole(file: OpenFile): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let length = 0;
    for (;;) {
      const part = await file.read();
      if (part === undefined) break;
      length += part.length;
      if (length > MOST) {
        throw invalid(ABOUT, `${name} has more than ${MOST} bytes`);
      }
      parts.push(part);
    }
    return parts.length === 1
      ? parts[0]
      : new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
  }
}

/** What a file of JSON holds; undefined where the folder has none of that name. */
export async function readJson(folder: Folder, name: string): Promise<unknown> {
  const text = await readText(folder, name);
  return text === undefined ? undefined : parse(name, text);
}

/** A text as it stands, a mark of its byte order included. Throws for what is not UTF-8. */
export function decode(bytes: Uint8Array): string {
  const how = { fatal: true, ignoreBOM: true };
  const { TextDecoder } = textCodecs();
  return new TextDecoder("utf-8", how).decode(bytes);
}

/** What JSON says, where every reader says the same. Throws `invalid-input` otherwise. */
export function parse(place: string, text: string): unknown {
  try {
    const value = JSON.parse(text) as unknown;
    checkJson(value, 0);
    return value;
  } catch (cause) {
    throw new FramebatchError(
      "invalid-input",
      `${ABOUT}: ${place} is no JSON (${(cause as Error).message})`,
      { cause },
    );
  }
}

/** Refuses what `JSON.parse` takes and readers with texts of Unicode and finite numbers do not. */
function checkJson(value: unknown, depth: number): void {
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new RangeError("a number is too large");
  }
  if (typeof value === "string" && /\p{Surrogate}/u.test(value)) {
    throw new RangeError("a text has half of a surrogate pair");
  }
  if (typeof value !== "object" || value === null) return;
  if (depth === MOST_DEPTH) throw new RangeError("it is nested too deeply");
  for (const [name, field] of Object.entries(value)) {
    if (!Array.isArray(value)) checkJson(name, depth + 1);
    checkJson(field, depth + 1);
  }
}

/** The error for a kind of model that is not known here. */
export function unsupported(problem: string): FramebatchError {
  return new FramebatchError("unsupported", `${ABOUT}: ${problem}`);
}

/** A value in a message, cut where it is long. */
export function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value) ?? kindOf(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
