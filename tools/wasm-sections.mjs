// Reads and writes the parts of a WebAssembly module: sections, numbers, texts.

/** The sections: number, content, and the whole with its head. */
export function* sections(wasm) {
  for (let at = 8; at < wasm.length;) {
    const [size, start] = readNumber(wasm, at + 1);
    const end = start + size;
    yield {
      id: wasm[at],
      body: wasm.subarray(start, end),
      whole: wasm.subarray(at, end),
    };
    at = end;
  }
}

/** What a section imports, only functions: module and type as they stand there, and name. */
export function* imports(body) {
  const FUNCTION = 0;
  let [left, at] = readNumber(body, 0);
  for (; left > 0; left -= 1) {
    const [, afterModule] = readText(body, at);
    const [name, afterName] = readText(body, afterModule);
    if (body[afterName] !== FUNCTION) {
      throw new Error(`the import ${name} is not a function`);
    }
    const [, end] = readNumber(body, afterName + 1);
    yield {
      module: body.subarray(at, afterModule),
      name,
      type: body.subarray(afterName, end),
    };
    at = end;
  }
}

/** The functions of a section of code: content, and the whole with its size. */
export function* functions(section) {
  let [left, at] = readNumber(section, 0);
  for (; left > 0; left -= 1) {
    const [size, start] = readNumber(section, at);
    const end = start + size;
    yield {
      body: section.subarray(start, end),
      whole: section.subarray(at, end),
    };
    at = end;
  }
}

/** The bytes of data at an address, if one segment holds all of them. */
export function readData(segments, start, length) {
  for (const { address, bytes } of segments) {
    const at = start - address;
    if (at >= 0 && at + length <= bytes.length) {
      return bytes.subarray(at, at + length);
    }
  }
  return undefined;
}

/** The segments of data; each has a constant address, in the one memory there is. */
export function segments(wasm) {
  const { body } = [...sections(wasm)].find(({ id }) => id === 11);
  const segments = [];
  let [left, at] = readNumber(body, 0);
  for (; left > 0; left -= 1) {
    const [CONST, END] = [0x41, 0x0b];
    const [address, afterAddress] = readNumber(body, at + 2);
    if (
      body[at] !== 0 ||
      body[at + 1] !== CONST ||
      body[afterAddress] !== END
    ) {
      throw new Error("a data segment lies at no constant address");
    }
    const [size, start] = readNumber(body, afterAddress + 1);
    segments.push({ address, bytes: body.subarray(start, start + size) });
    at = start + size;
  }
  return segments;
}

/** A section of this number, with its head. */
export function section(id, body) {
  return Buffer.concat([Uint8Array.of(id), writeNumber(body.length), body]);
}

/** The text at a place, and where it ends. */
export function readText(bytes, at) {
  const [length, start] = readNumber(bytes, at);
  const end = start + length;
  return [Buffer.from(bytes.subarray(start, end)).toString(), end];
}

/** The unsigned number at a place, and where it ends. */
export function readNumber(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7, at += 1) {
    value |= (bytes[at] & 127) << shift;
    if (bytes[at] < 128) return [value >>> 0, at + 1];
  }
}

/** A text with its length. */
export function writeText(text) {
  const bytes = Buffer.from(text);
  return Buffer.concat([writeNumber(bytes.length), bytes]);
}

/** An unsigned number. */
export function writeNumber(value) {
  const bytes = [];
  for (; value > 127; value >>>= 7) bytes.push((value & 127) | 128);
  return Uint8Array.from([...bytes, value]);
}
