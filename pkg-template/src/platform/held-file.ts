// A WebAssembly file that a script holds: gzip, as text.

import { builtin } from "./node.js";

/** The bytes of a file that is held as base64 of gzip. */
export async function unpacked(text: string): Promise<BufferSource> {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  // Simulated pages lack the stream, and have Node.
  const zlib = builtin("node:zlib");
  if (zlib !== undefined) return zlib.gunzipSync(packed);
  const stream = new Blob([packed]).stream();
  const whole = stream.pipeThrough(new DecompressionStream("gzip"));
  return new Response(whole).arrayBuffer();
}
