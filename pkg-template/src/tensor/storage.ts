// The data of a tensor: where it comes from, and what the device has of it.
//
// A record without a device and without a node: the node of a tensor may be collected
// while this is still needed, to release memory or to answer a pending call. How data
// is checked and copied is in `copy-in.ts`.

import { FramebatchError, subject } from "../checks/errors.js";
import type { Span } from "../memory/arrays.js";
import { RESIDENT } from "./codes.js";

/** Words from which on data lies on the device at once, and is not copied. */
export const LARGE = 16_384;

/** What to do where the page has no memory for a tensor. */
export const FEWER = "dispose of tensors, or make this one of fewer elements";

/** The core's number of a tensor that lies nowhere yet. */
export const NOWHERE = -1;

/** The home of data that is packed as f16 where that suits the device and the data. */
export const AUTO = -1;

/** The data of one tensor. */
export class TensorStorage {
  /** The core's number of it, or {@link NOWHERE}. */
  number = NOWHERE;
  /** Calls that took the data along. */
  uses = 0;
  /** Calls that still need it. */
  pins = 0;
  /** Disposed of, or collected. */
  dropped = false;
  /** Why the device has it no more. */
  failure: FramebatchError | undefined;

  constructor(
    /** Undefined once the device alone has it, or nobody needs it. */
    public data: Span | undefined,
    readonly words: number,
    /** Where it lies once it lies on the device, as a number of the wire or {@link AUTO}. */
    public home: number,
    /** The largest of its indexes; undefined where it holds floats. */
    readonly largest: number | undefined,
    readonly keep: boolean,
    readonly label: string | undefined,
    /** Elements of a row along the first axis; 0 where it must lie in one buffer. */
    readonly row = 0,
  ) {}

  /** Whether its next call finds it on the device. Data used twice is used often. */
  get isResident(): boolean {
    if (this.number !== NOWHERE) return true;
    const { words, uses, home } = this;
    return words > 0 && (words >= LARGE || uses > 0 || home > RESIDENT);
  }

  /** The data in an array of its own, for as long as there is any. */
  own(): Span["memory"] | undefined {
    const { data, words } = this;
    if (data === undefined) return undefined;
    const { memory, start } = data;
    // Shorter, it was detached.
    if (memory.length <= words) return memory;
    const own = memory.slice(start, start + words);
    this.data = { memory: own, start: 0, words };
    return own;
  }
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
