// A call that lays its own operands: of what does not come as two arrays and a `t`.
//
// Its promise, its ticket and its answer are those of every call.

import type { Arena } from "./arena.js";
import type { Element } from "./method.js";
import type { Terms } from "./call-options.js";

/** Such a call. */
export interface Laid {
  /** How it is named, answered, and its options checked. */
  readonly method: LaidMethod;
  /** Elements of its result; 0 where it has none. */
  readonly elements: number;
  /** Whether there is nothing to compute. */
  readonly isEmpty: boolean;
  /** Throws unless the call can be made. */
  check(about: string, terms: Terms | undefined): void;
  /** Copies what the caller may change: the session is not open yet. */
  keep(): void;
  /** Takes hold of what it needs until {@link release}. */
  hold(): void;
  /** Lays its operands at the cursor; returns its structure, and sets {@link rows}. */
  lay(arena: Arena): number;
  /** Rows of the call. */
  readonly rows: number;
  /** Lets go of what it held: it is answered. */
  release(): void;
}

/** What is known of its method. */
export interface LaidMethod {
  readonly name: string;
  readonly gives: Element;
  readonly width: number;
  readonly option: undefined;
}

/** What lives as long as the session, on the device too: told with the calls' own. */
export interface Companion<Core> {
  /** The session is open; nothing was entered yet. */
  open(core: Core): void;
  /** There is no device, or another one. */
  hear(event: "lost" | "restored" | "fallback"): void;
  /** The session has ended; the core has released everything. */
  close(): void;
}
