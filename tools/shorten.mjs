// Gives the functions that the WebAssembly imports short names.
//
// wasm-bindgen names each after its signature and a hash, in the module and again
// in the glue: 5 KB gzip of the package. Nothing else is changed, and both files
// must agree on every name or this fails.

/**
 * Renames the imports of `wasm` (bytes) and the same names in `glue` (text).
 * @returns {{ wasm: Uint8Array, glue: string }}
 */
export function shorten(wasm, glue) {
  const names = new Map();
  const parts = [wasm.subarray(0, 8)];
  for (let at = 8; at < wasm.length;) {
    const id = wasm[at];
    const [size, start] = readNumber(wasm, at + 1);
    const body = wasm.subarray(start, start + size);
    const IMPORTS = 2;
    const written = id === IMPORTS ? renameImports(body, names) : body;
    parts.push(Uint8Array.of(id), writeNumber(written.length), written);
    at = start + size;
  }
  return { wasm: Buffer.concat(parts), glue: renameIn(glue, names) };
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
    const short = `_${names.size.toString(36)}`;
    names.set(name, short);
    parts.push(
      body.subarray(at, afterModule),
      writeNumber(short.length),
      Buffer.from(short),
      body.subarray(afterName, end),
    );
    at = end;
  }
  return Buffer.concat(parts);
}

// In the glue each import is a property of one object, and stands there once.
function renameIn(glue, names) {
  const seen = new Set();
  const renamed = glue.replace(
    /^(\s+)(__wb\w+)(?=: function|\()/gm,
    (whole, indent, name) => {
      const short = names.get(name);
      if (short === undefined) return whole;
      seen.add(name);
      return indent + short;
    },
  );
  const missing = [...names.keys()].filter((name) => !seen.has(name));
  if (missing.length > 0) {
    throw new Error(`the glue has no ${missing.join(", ")}`);
  }
  return renamed;
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

function writeNumber(value) {
  const bytes = [];
  for (; value > 127; value >>>= 7) bytes.push((value & 127) | 128);
  return Uint8Array.from([...bytes, value]);
}
