// Floats of 16 and 32 bits in the bytes of files.

/** The number of the bits of a 16-bit float. */
export function floatOf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent < 31) return sign * (1024 + fraction) * 2 ** (exponent - 25);
  return fraction === 0 ? sign * Infinity : NaN;
}

/** The numbers in bytes of a file, in 32 bits, by safetensors' names of formats. */
export const WIDEN = {
  F32: ({ buffer, byteOffset, length }) =>
    new Float32Array(buffer.slice(byteOffset, byteOffset + length)),
  F16: (bytes) => Float32Array.from(halves(bytes), floatOf),
  BF16(bytes) {
    const words = Uint32Array.from(halves(bytes), (bits) => bits << 16);
    return new Float32Array(words.buffer);
  },
};

const halves = ({ buffer, byteOffset, length }) =>
  new Uint16Array(buffer.slice(byteOffset, byteOffset + length));

/** The bytes of 32-bit floats. */
export const bytesOf = ({ buffer, byteOffset, byteLength }) =>
  Buffer.from(buffer, byteOffset, byteLength);
