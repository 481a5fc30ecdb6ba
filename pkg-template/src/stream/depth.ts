// How many chunks of a stream are on their way at once, where the caller does not say.
//
// Numbers only: it knows no chunk, no session and no promise.

/** Chunks in flight until the first result tells their size. */
const UNKNOWN = 2;

/** One chunk is uploaded, one computed, one read back. */
const LEAST = 3;

/** Small chunks go several in a batch; with more than so many nothing is gained. */
const MOST = 64;

/** Bytes of chunks and results that keep the link and the GPU busy: some chunks of a batch each way. */
const ENOUGH = 16 << 20;

/**
 * Chunks for which `bytes` is what one and its result take, undefined while that is
 * not known and 0 where it has no bytes. `fitting` says how many the memory holds.
 */
export function depthFor(
  bytes: number | undefined,
  fitting: (bytes: number) => number,
): number {
  if (bytes === undefined) return UNKNOWN;
  if (bytes === 0) return LEAST;
  const wanted = Math.min(Math.max(LEAST, Math.ceil(ENOUGH / bytes)), MOST);
  return Math.max(1, Math.min(wanted, fitting(bytes)));
}

/** Bytes of arrays, of a list of them, or of an object that holds some; 0 for other things. */
export function bytesOf(value: unknown): number {
  const own = sizeOf(value);
  if (own !== undefined) return own;
  if (typeof value !== "object" || value === null) return 0;
  try {
    return Object.values(value).reduce<number>(
      (sum, part) => sum + (sizeOf(part) ?? 0),
      0,
    );
  } catch {
    return 0; // A getter of the caller's threw, which is no error of the stream.
  }
}

function sizeOf(value: unknown): number | undefined {
  const isBytes = ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
  return isBytes ? value.byteLength : undefined;
}
