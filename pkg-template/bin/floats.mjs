// Floats of 16 and 32 bits in the bytes of files.

/** The steps of 16-bit floats, by their exponents. */
const STEPS = Float64Array.from(
  { length: 31 },
  (_, exponent) => 2 ** (Math.max(exponent, 1) - 25),
);

/** The number of the bits of a 16-bit float. */
export function floatOf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  const steps = exponent === 0 ? fraction : 1024 + fraction;
  return sign * steps * STEPS[exponent];
}

/** The numbers in bytes of a file, in 32 bits, by safetensors' names of formats. */
export const WIDEN = {
  F32: ({ buffer, byteOffset, length }) =>
    new Float32Array(buffer.slice(byteOffset, byteOffset + length)),
  // Loops, because `from` takes ten times as long for a typed array.
  F16(bytes) {
    const bits = halves(bytes);
    const floats = new Float32Array(bits.length);
    for (let i = 0; i < bits.length; i += 1) floats[i] = floatOf(bits[i]);
    return floats;
  },
  BF16(bytes) {
    const bits = halves(bytes);
    const words = new Uint32Array(bits.length);
    for (let i = 0; i < bits.length; i += 1) words[i] = bits[i] << 16;
    return new Float32Array(words.buffer);
  },
};

const halves = ({ buffer, byteOffset, length }) =>
  new Uint16Array(buffer.slice(byteOffset, byteOffset + length));

/** The bytes of 32-bit floats. */
export const bytesOf = ({ buffer, byteOffset, byteLength }) =>
  Buffer.from(buffer, byteOffset, byteLength);
