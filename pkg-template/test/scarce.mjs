// A page whose memory is short: arrays from so many bytes on cannot be made.

const KINDS = ["Float32Array", "Uint32Array", "Uint16Array", "Uint8Array"];
const typed = Object.getPrototypeOf(Float32Array.prototype);

/** Does `body`, in which an array of `least` bytes or more is refused as engines do it. */
export function scarce(least, body) {
  const kinds = KINDS.map((name) => [name, globalThis[name]]);
  const { slice } = typed;
  const refuse = (bytes) => {
    if (bytes < least) return;
    throw new RangeError("Array buffer allocation failed");
  };
  for (const [name, Kind] of kinds) {
    const construct = (target, args) => {
      const [first] = args;
      const isView = first instanceof ArrayBuffer;
      const length = typeof first === "number" ? first : (first?.length ?? 0);
      if (!isView) refuse(length * Kind.BYTES_PER_ELEMENT);
      return Reflect.construct(target, args);
    };
    globalThis[name] = new Proxy(Kind, { construct });
  }
  typed.slice = function (...range) {
    refuse(this.subarray(...range).byteLength);
    return slice.apply(this, range);
  };
  try {
    return body();
  } finally {
    for (const [name, Kind] of kinds) globalThis[name] = Kind;
    typed.slice = slice;
  }
}
