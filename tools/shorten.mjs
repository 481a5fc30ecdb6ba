// Gives the functions that cross into the WebAssembly and out of it short names.
//
// wasm-bindgen names each after its signature and a hash, or after its place, in the
// module and again in the glue: 5 KB gzip of the package. The short ones follow the
// glue's order, so that two builds of one source can share their glue. Nothing else
// is changed, and module and glue must agree on every name or this fails.

/**
 * Renames the imports of `wasm` (bytes), its exported closures, and the same names in
 * `glue` (text).
 * @returns {{ wasm: Uint8Array, glue: string }}
 */
export function shorten(wasm, glue) {
  const names = new Map();
  const renamed = renameIn(glue, names);
  const parts = [wasm.subarray(0, 8)];
  for (let at = 8; at < wasm.length;) {
    const id = wasm[at];
    const [size, start] = readNumber(wasm, at + 1);
    const body = wasm.subarray(start, start + size);
    const rename = { 2: renameImports, 7: renameExports }[id];
    const written = rename ? rename(body, names) : body;
    parts.push(Uint8Array.of(id), writeNumber(written.length), written);
    at = start + size;
  }
  return { wasm: Buffer.concat(parts), glue: renamed };
}

// In the glue each import is a property of one object, and stands there once; a
// closure's export has a function of its name around it.
function renameIn(glue, names) {
  const short = (name) => {
    if (!names.has(name)) names.set(name, `_${names.size.toString(36)}`);
    return names.get(name);
  };
  return glue
    .replace(
      /^(\s+)(__wb\w+)(?=: function|\()/gm,
      (_, indent, name) => indent + short(name),
    )
    .replace(/\b__wasm_bindgen_func_elem_\d+\b/g, short);
}

function renameImports(body, names) {
  let [left, at] = readNumber(body, 0);
  const parts = [writeNumber(left)];
  for (; left > 0; left -= 1) {
    const [, afterModule] = readText(body, at);
    const [name, afterName] = readText(body, afterModule);
    const FUNCTION = 0;
    if (body[afterName] !== FUNCTION) {
      throw new Error(`the import ${name} is not a function`);
    }
    const [, end] = readNumber(body, afterName + 1);
    if (!names.has(name)) throw new Error(`the glue has no ${name}`);
    parts.push(body.subarray(at, afterModule), writeText(names.get(name)));
    parts.push(body.subarray(afterName, end));
    at = end;
  }
  return Buffer.concat(parts);
}

function renameExports(body, names) {
  let [left, at] = readNumber(body, 0);
  const parts = [writeNumber(left)];
  for (; left > 0; left -= 1) {
    const [name, afterName] = readText(body, at);
    const [, end] = readNumber(body, afterName + 1);
    parts.push(writeText(names.get(name) ?? name));
    parts.push(body.subarray(afterName, end));
    at = end;
  }
  return Buffer.concat(parts);
}

function readText(bytes, at) {
  const [length, start] = readNumber(bytes, at);
  const end = start + length;
  return [Buffer.from(bytes.subarray(start, end)).toString(), end];
}

function readNumber(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7, at += 1) {
    value |= (bytes[at] & 127) << shift;
    if (bytes[at] < 128) return [value >>> 0, at + 1];
  }
}

function writeText(text) {
  const bytes = Buffer.from(text);
  return Buffer.concat([writeNumber(bytes.length), bytes]);
}

function writeNumber(value) {
  const bytes = [];
  for (; value > 127; value >>>= 7) bytes.push((value & 127) | 128);
  return Uint8Array.from([...bytes, value]);
}
