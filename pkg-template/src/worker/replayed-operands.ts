// The operands of a call of the page's, as they lie in a request, and how the page hears what
// became of the call.
//
// How requests are gone through is in `replay.ts`.

import type { Call } from "../calls/call.js";
import type { CheckedOptions } from "../calls/call-options.js";
import { type CallMethod, Operands } from "../calls/operands.js";
import { FramebatchError, isCoreFailure } from "../checks/errors.js";
import { PRIORITIES } from "../checks/priority.js";
import type { Arena } from "../memory/arena.js";
import { LOOP_LIMIT } from "../memory/arrays.js";
import type { Results } from "../memory/results.js";
import { engineOf, type Failure, priorityOf } from "./protocol.js";

const CALL: CallMethod = {
  name: "call",
  gives: "float32",
  width: 1,
  option: undefined,
};
const ENGINES = [undefined, "gpu", "cpu"] as const;

/** What operands ask of the replay that they are part of. */
export interface Replaying {
  /** The core's number of a structure. Throws why there is none. */
  structureOf(page: number): number;
  /** The core's number of a tensor. Throws why the tensor is not there. */
  tensorOf(page: number): number;
  /** A call was answered. Throws where there is no memory for its result. */
  answered(
    ticket: number,
    results: Results,
    offset: number,
    words: number,
  ): void;
  /** A call was refused for this reason; without a reason, nobody is to hear of it. */
  refused(ticket: number, failure: Failure | undefined): void;
}

/** A call as it stands in a request. */
export interface Logged {
  readonly structure: number;
  readonly rows: number;
  readonly scalar: number;
  readonly operands: Uint32Array;
  /** The words of the arena that are numbers of tensors. */
  readonly names: Uint32Array;
  /** The word of the arena where the operands begin. */
  readonly start: number;
}

/** The operands of a call of the page's. */
export class ReplayedOperands extends Operands {
  readonly isEmpty = false;
  readonly elements = 0;
  readonly rows: number;
  /** Whether the page wants no answer any more. */
  isGivenUp = false;
  private readonly given: number;
  private logged: Logged | undefined;

  constructor(
    private readonly replay: Replaying,
    private readonly ticket: number,
    logged: Logged,
  ) {
    super(CALL);
    this.rows = logged.rows;
    this.given = logged.scalar;
    this.logged = logged;
  }

  override get scalar(): number {
    return this.given;
  }

  write(arena: Arena): number {
    const { structure, operands, names, start } = this.logged!;
    // The request is not kept for as long as the call.
    this.logged = undefined;
    const number = this.replay.structureOf(structure);
    for (const word of names) {
      operands[word - start] = this.replay.tensorOf(operands[word - start]);
    }
    const { length } = operands;
    const at = arena.reserve(length);
    const { words } = arena;
    if (length > LOOP_LIMIT) words.set(operands, at);
    else for (let i = 0; i < length; i += 1) words[at + i] = operands[i];
    return number;
  }

  // Fragments are put together here, and the whole is sent.
  override isAnswer(): boolean {
    return false;
  }

  override answer(
    _call: Call,
    results: Results,
    offset: number,
    words: number,
  ): undefined {
    this.replay.answered(this.ticket, results, offset, words);
  }

  override rejected(reason: unknown): void {
    const failure = this.isGivenUp ? undefined : failureOf(reason);
    this.replay.refused(this.ticket, failure);
  }
}

/** The options of a call, if they are not those that most calls have. */
export function termsOf(kind: number, key: number): CheckedOptions | undefined {
  const [engine, priority] = [engineOf(kind), priorityOf(kind)];
  if (engine === 0 && priority === 0 && key === 0) return undefined;
  return {
    width: 1,
    field: undefined,
    signal: undefined,
    deadlineMs: undefined,
    into: undefined,
    key: key === 0 ? undefined : String(key),
    engine: ENGINES[engine],
    now: false,
    priority: PRIORITIES[priority],
    onMetrics: undefined,
    label: undefined,
  };
}

/** An error as a message has it; the page says itself which call it is of. */
export function failureOf(reason: unknown): Failure {
  const isKnown = reason instanceof FramebatchError || isCoreFailure(reason);
  if (!isKnown) return { code: "fatal", message: String(reason) };
  const { code, message } = reason as Failure;
  return { code, message: message.replace(/^(call|warmup|explain): /, "") };
}
