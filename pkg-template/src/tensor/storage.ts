// The storage of a tensor: its data, and where this lies on the device.
//
// A record without a device and without a node: the node of a tensor may be collected
// while its storage is still needed, to release memory or to answer a pending call. How
// data is checked and copied is in `copy-in.ts`.

import { FramebatchError, subject } from "../checks/errors.js";
import type { StorageOptions } from "../checks/storage-options.js";
import type { TensorBuffer } from "../core/core.js";
import type { Span } from "../memory/arrays.js";
import { PACKED, RESIDENT } from "./codes.js";
import type { Recomputation } from "./recomputation.js";
import { Snapshots } from "./snapshots.js";

/** Words from which on data lies on the device at once, and is not copied. */
export const LARGE = 16_384;

/** What to do where the page has no memory for a tensor. */
export const FEWER = "dispose of tensors, or make this one of fewer elements";

/** The largest of indexes that the page does not have: no axis counts as too short. */
export const UNKNOWN = -1;

/** The number of a tensor that the core does not have. */
export const NOWHERE = -1;

/** The home of data that is packed as f16 where that suits the device and the data. */
export const AUTO = -1;

/**
 * What a tensor holds on the device: the page's data; or what the first call that writes
 * the tensor is going to store there; or what calls stored there, which no page has.
 */
export type Contents = "data" | "expected" | "stored";

/** The data of one tensor, in the page and on the device. */
export class TensorStorage {
  /** The core's number of the tensor, or {@link NOWHERE}. */
  number = NOWHERE;
  /** Calls that the data traveled with. */
  uses = 0;
  /** Pending calls that need the data. */
  pins = 0;
  /** Whether the tensor was disposed of, or its node collected. */
  dropped = false;
  /** Where the data lies in a buffer of the page; undefined for data that came from an array. */
  place: TensorBuffer | undefined;
  /** Why the device does not have the data any more. */
  failure: FramebatchError | undefined;
  contents: Contents = "data";
  /** How what calls stored there is computed again; undefined where that cannot be. */
  recomputation: Recomputation | undefined;
  /** Whether it is known when the tensor's node is collected. */
  isWatched = false;
  /** Pending calls that write the tensor. */
  writes = 0;
  /** Whether calls write the tensor, which is on the device then. */
  isTarget = false;
  /** Whether the data goes with its call, however long it is. */
  isPassing = false;
  /** Whether no other tensor may share the buffer. */
  readonly hasOwnBuffer: boolean;
  /** What the page keeps of what calls wrote; undefined unless asked for, and once dropped. */
  snapshots: Snapshots | undefined;

  constructor(
    /** The page's own data; undefined once only the device has it, or nobody needs it. */
    public data: Span | undefined,
    readonly words: number,
    /** How the device keeps the data, as a number of the wire or {@link AUTO}. */
    public home: number,
    /** The largest index of the data; undefined for floats. */
    public largest: number | undefined,
    readonly keep: boolean,
    readonly label: string | undefined,
    /** Elements of a row along the first axis; 0 where all data must lie in one buffer. */
    readonly row = 0,
    { ownBuffer = false, snapshotEvery }: StorageOptions = {},
  ) {
    this.hasOwnBuffer = ownBuffer;
    if (snapshotEvery !== undefined) {
      this.snapshots = new Snapshots(snapshotEvery);
    }
  }

  /** Whether the next call finds the data on the device: data that is used twice is used often. */
  get isResident(): boolean {
    if (this.number !== NOWHERE) return true;
    const { words, uses, home, place } = this;
    if (this.isTarget || this.isPassing) return this.isTarget;
    const isLong = words >= LARGE || place !== undefined;
    return words > 0 && (isLong || uses > 0 || home > RESIDENT);
  }

  /** Calls that one after another led to the data; without end where it cannot be had again. */
  get depth(): number {
    const { contents, recomputation, data, keep, place } = this;
    if (contents !== "data") return recomputation?.depth ?? Infinity;
    return keep && data !== undefined && place === undefined ? 0 : Infinity;
  }

  /** A call is going to write all of the tensor, which holds nothing until then. */
  expect(): void {
    this.contents = "expected";
    this.data = undefined;
    this.failure = undefined;
  }

  /** A call that was going to write the tensor is rejected, and wrote nothing. */
  abandon(reason: unknown): void {
    if (this.contents === "expected") this.failure = lostError(this, reason);
  }

  /**
   * A call wrote the tensor. Invariant: the page's data is older from here on, and neither
   * travels with calls nor restores the tensor, but as a snapshot.
   */
  store(recomputation: Recomputation | undefined): void {
    const { snapshots, contents, keep } = this;
    if (snapshots !== undefined && contents === "data" && keep) {
      snapshots.data = this.data;
    }
    this.contents = "stored";
    this.data = undefined;
    // What a later call wrote stands, though an earlier one failed.
    this.failure = undefined;
    this.recomputation = recomputation;
  }

  /** The data in an array of its own; undefined where the page has none. */
  own(): Span["memory"] | undefined {
    const { data, words } = this;
    if (data === undefined) return undefined;
    const { memory, start } = data;
    // A shorter array was detached.
    if (memory.length <= words) return memory;
    const own = memory.slice(start, start + words);
    this.data = { memory: own, start: 0, words };
    return own;
  }
}

/** Bytes of a block of 64 numbers, by the homes of data that lies in blocks. */
export const BLOCK_BYTES: Readonly<Partial<Record<number, number>>> = {
  [PACKED.int8]: 68,
  [PACKED.int4]: 36,
};

/** Whether a page's data is in the format in which the device keeps it. */
export function isPacked(memory: Span["memory"], home: number): boolean {
  return (
    memory instanceof Uint16Array ||
    (memory instanceof Uint32Array && BLOCK_BYTES[home] !== undefined)
  );
}

/** Bytes that a tensor takes of its buffer. */
export function bytesOf({ words, home }: TensorStorage): number {
  const block = BLOCK_BYTES[home];
  if (block !== undefined) return Math.ceil(words / 64) * block;
  return home === RESIDENT ? words * 4 : Math.ceil(words / 2) * 4;
}

/** The same up to a multiple of 16: kernels read so many bytes at a time. */
export function paddedBytesOf(storage: TensorStorage): number {
  return Math.ceil(bytesOf(storage) / 16) * 16;
}

/** The error of whatever reads a tensor that went with the device. */
export function lostError(
  { label }: TensorStorage,
  cause: unknown,
): FramebatchError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new FramebatchError(
    "device-lost",
    `${subject("tensor", label)}: its data was lost with the device, and could not be restored (${why}); make it anew`,
    { cause },
  );
}

/** The error of whatever is asked of a tensor that was disposed of. */
export function disposedError(
  about: string,
  label: string | undefined,
): FramebatchError {
  return new FramebatchError(
    "disposed",
    `${about}: ${subject("the tensor", label)} is disposed; make it anew`,
  );
}
