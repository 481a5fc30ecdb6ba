// Who answers a load: a system, open for several operations, that answers one call at a time.
//
// The systems of the bench answer all calls of a run together; here nobody knows which call
// is the last one. Nothing is timed or checked here.

import type { OpenOptions, Stats } from "framebatch";
import type { Call } from "../ops/op.ts";
import type { Named } from "../run.ts";
import type { System } from "../systems/system.ts";
import type { Kind } from "./mix.ts";

/** A system that is open for some kinds of calls. */
export interface Target {
  /** The answer of a call of the kind at this place. */
  ask(kind: number, call: Call): Promise<Float32Array>;
  /** What it counts of itself, where it does. */
  stats?(): Stats;
  close(): void | Promise<void>;
}

export interface Answering extends Named {
  /** The bound that its answers are held to. */
  readonly bound: System["bound"];
  /** What its sessions are opened with, where it is this package. */
  readonly options?: OpenOptions;
  /** Opens it in a session of its own. Throws where it lacks an operation, or what it runs on. */
  open(kinds: readonly Kind[]): Promise<Target>;
}
