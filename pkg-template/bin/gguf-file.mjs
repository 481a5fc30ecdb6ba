// Reads a GGUF file: the tensors with their places, and a few words of the metadata.
//
// The format is that of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, in its versions 2
// and 3. A length of the file is compared with what the file has left before memory is taken for
// it. What tensors are for is not known here.

import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { FORMATS, OTHERS, numbersOf } from "./gguf-blocks.mjs";

/** A file's head holds a tokenizer's words, some MB; more than this is no head. */
const MOST_HEAD = 2 ** 26;
const MOST_ENTRIES = 2 ** 16;
const MOST_NAME = 2 ** 16 - 1;
const MOST_DIMS = 4;
const MOST_NESTING = 4;
/** Bytes that are read at a time. */
const WINDOW = 2 ** 16;

/** Bytes of a value of the metadata, by the number of its type; strings and arrays tell theirs. */
const VALUE_BYTES = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];
const [U16, U32, STRING, ARRAY] = [2, 4, 8, 9];

/** The metadata that is read; everything else is skipped. */
const WANTED = new Map([
  ["general.architecture", { type: STRING, read: (head) => head.string() }],
  ["general.alignment", { type: U32, read: (head) => head.u32() }],
  ["split.count", { type: U16, read: (head) => head.take(2).readUInt16LE() }],
]);

/**
 * Opens a file: `{ path, size, metadata, tensors, close }`, where a tensor is
 * `{ name, format, shape, read }` with the slowest dimension first, and `read()` gives its bytes.
 */
export function openGgufFile(path) {
  if (!statSync(path).isFile()) throw new Error(`${path}: this is no file`);
  const file = openSync(path);
  const close = () => closeSync(file);
  try {
    const { size } = fstatSync(file);
    const bytesAt = (from, length) => bytesOf(file, path, from, length);
    return { ...ggufFileOf(path, size, bytesAt), close };
  } catch (error) {
    close();
    throw error;
  }
}

/** The same, of `size` bytes, of which `bytesAt(from, length)` gives some. */
export function ggufFileOf(path, size, bytesAt) {
  const head = new Head(path, size, bytesAt);
  const { metadata, infos } = contentsOf(head);
  const tensors = placed(head, infos, metadata.get("general.alignment"));
  return { path, size, metadata, tensors };
}

function bytesOf(file, path, from, length) {
  const bytes = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const count = readSync(file, bytes, done, length - done, from + done);
    if (count === 0) throw new Error(`${path}: the file became shorter`);
    done += count;
  }
  return bytes;
}

/** The bytes of a file from its beginning on, in order, without any that are not there. */
class Head {
  at = 0;
  #window = Buffer.alloc(0);
  #from = 0;

  constructor(path, size, bytesAt) {
    this.path = path;
    this.size = size;
    this.bytesAt = bytesAt;
  }

  error(problem) {
    return new Error(`${this.path}: ${problem}`);
  }

  /** Throws unless so many bytes are left. */
  #check(count) {
    if (count > this.size - this.at) {
      throw this.error(
        `the file is truncated: ${this.size} bytes, of which ${count} are read from ${this.at} on`,
      );
    }
    if (this.at + count > MOST_HEAD) {
      throw this.error(`the metadata take more than ${MOST_HEAD} bytes`);
    }
  }

  skip(count) {
    this.#check(count);
    this.at += count;
  }

  /** The next bytes; they are the caller's until more are taken. */
  take(count) {
    this.#check(count);
    const end = this.#from + this.#window.length;
    if (this.at < this.#from || this.at + count > end) {
      const length = Math.min(Math.max(WINDOW, count), this.size - this.at);
      this.#window = this.bytesAt(this.at, length);
      this.#from = this.at;
    }
    const begin = this.at - this.#from;
    this.at += count;
    return this.#window.subarray(begin, begin + count);
  }

  u32() {
    return this.take(4).readUInt32LE();
  }

  /** A number of 64 bits. One from 2⁵³ on is rounded, and is more than any file holds. */
  u64() {
    const bytes = this.take(8);
    return bytes.readUInt32LE(4) * 2 ** 32 + bytes.readUInt32LE(0);
  }

  string() {
    const length = this.u64();
    if (length > MOST_NAME) {
      throw this.error(
        `a name of ${length} bytes; at most ${MOST_NAME} are known`,
      );
    }
    const bytes = this.take(length);
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch (cause) {
      throw this.error(`a name is no UTF-8: ${bytes.toString("latin1")}`, {
        cause,
      });
    }
  }

  /** A count of entries. */
  count(of) {
    const count = this.u64();
    if (count <= MOST_ENTRIES) return count;
    throw this.error(`${count} ${of}; at most ${MOST_ENTRIES} are known`);
  }
}

function contentsOf(head) {
  if (head.size < 24 || head.take(4).toString("latin1") !== "GGUF") {
    throw head.error("this is no GGUF file, or is truncated");
  }
  const version = head.u32();
  if (version !== 2 && version !== 3) {
    const isBigEndian = version !== 0 && version % 2 ** 16 === 0;
    throw head.error(
      isBigEndian
        ? "the file is for big-endian machines; only little-endian files are known"
        : `version ${version} of GGUF; only 2 and 3 are known`,
    );
  }
  const tensors = head.count("tensors");
  const entries = head.count("entries of metadata");
  const metadata = new Map();
  const keys = new Set();
  for (let i = 0; i < entries; i += 1) entry(head, keys, metadata);
  const infos = new Map();
  for (let i = 0; i < tensors; i += 1) {
    const info = infoOf(head);
    if (infos.has(info.name)) {
      throw head.error(`two tensors have the name '${info.name}'`);
    }
    infos.set(info.name, info);
  }
  if (infos.size === 0) throw head.error("the file has no tensors");
  return { metadata, infos: [...infos.values()] };
}

/** Reads an entry of the metadata, and keeps it if it is wanted. */
function entry(head, keys, metadata) {
  const key = head.string();
  if (keys.has(key)) throw head.error(`the metadata have '${key}' twice`);
  keys.add(key);
  const type = head.u32();
  const wanted = WANTED.get(key);
  if (wanted === undefined) return skipValue(head, type, 0);
  if (type !== wanted.type) {
    throw head.error(
      `the metadata '${key}' has type ${type} instead of ${wanted.type}`,
    );
  }
  metadata.set(key, wanted.read(head));
}

function skipValue(head, type, nesting) {
  if (type === STRING) return head.skip(head.u64());
  if (type === ARRAY) return skipArray(head, nesting);
  const bytes = VALUE_BYTES[type];
  if (bytes === undefined) {
    throw head.error(`metadata of type ${type} are not known`);
  }
  head.skip(bytes);
}

function skipArray(head, nesting) {
  if (nesting === MOST_NESTING) {
    throw head.error(
      `arrays of metadata are nested more than ${MOST_NESTING} deep`,
    );
  }
  const type = head.u32();
  const count = head.u64();
  const bytes = VALUE_BYTES[type];
  if (bytes !== undefined) return head.skip(bytes * count);
  // An element takes bytes, so that the loop ends with the file.
  for (let i = 0; i < count; i += 1) skipValue(head, type, nesting + 1);
}

function infoOf(head) {
  const name = head.string();
  const of = `tensor '${name}'`;
  const dims = head.u32();
  if (dims < 1 || dims > MOST_DIMS) {
    throw head.error(
      `${of} has ${dims} dimensions; 1 to ${MOST_DIMS} are known`,
    );
  }
  const shape = Array.from({ length: dims }, () => head.u64()).reverse();
  const type = head.u32();
  const offset = head.u64();
  const format = FORMATS.get(type);
  if (format === undefined) {
    const known = [...FORMATS.values()].map(({ name }) => name).join(", ");
    const other = OTHERS[type] ?? `ggml's type ${type}`;
    throw head.error(`${of} has numbers of ${other}; only ${known} are known`);
  }
  if (shape.includes(0)) throw head.error(`${of} has no numbers: [${shape}]`);
  if (shape.at(-1) % format.numbers !== 0) {
    throw head.error(
      `${of} has rows of ${shape.at(-1)} numbers; ${format.name} needs a multiple of ${format.numbers}`,
    );
  }
  const bytes = (numbersOf(shape) / format.numbers) * format.bytes;
  return { name, format, shape, offset, bytes };
}

/** Tensors that can be read, behind what was read of the file. */
function placed(head, infos, alignment = 32) {
  if (!(alignment > 0 && Number.isInteger(Math.log2(alignment)))) {
    throw head.error(`an alignment of ${alignment}; it must be a power of two`);
  }
  const data = Math.ceil(head.at / alignment) * alignment;
  let end = 0;
  for (const info of [...infos].sort((a, b) => a.offset - b.offset)) {
    const of = `tensor '${info.name}'`;
    if (info.offset % alignment !== 0) {
      throw head.error(
        `${of} is at ${info.offset}, which is no multiple of ${alignment}`,
      );
    }
    if (info.offset < end) {
      throw head.error(`${of} overlaps the tensor in front of it`);
    }
    end = info.offset + info.bytes;
    if (data + end > head.size) {
      throw head.error(
        `${of} ends at byte ${data + end}, but the file has ${head.size}: it is truncated`,
      );
    }
  }
  const { bytesAt } = head;
  return infos.map(({ name, format, shape, offset, bytes }) => {
    const read = () => bytesAt(data + offset, bytes);
    return { name, format, shape, read };
  });
}
