// The calls made inside `explain` and `warmup`: planned by the core, and never sent.
//
// It keeps them only so that they can be rejected at the end. The plan itself, its
// text, and what is compiled for it are the core's.

import { ANSWERED, type Call } from "../calls/call.js";
import { about } from "../calls/call-errors.js";
import { Operands } from "../calls/operands.js";
import { FramebatchError, fromCore, invalid } from "../checks/errors.js";
import type { Core } from "../core/core.js";
import type { Tickets } from "../queue/tickets.js";

/** One `explain` or `warmup`, while it runs. */
export class DryRun {
  private readonly calls: Call[] = [];

  constructor(
    private readonly core: Core,
    private readonly name: string,
  ) {}

  /** Runs `make`, and returns what `end` makes of its calls. */
  run<Outcome>(make: () => unknown, end: (core: Core) => Outcome): Outcome {
    this.ask((core) => core.begin_explain());
    try {
      // An async function goes on later, and then rejects with its calls.
      Promise.resolve(make()).catch(ignoreAborted);
    } catch (error) {
      this.ask((core) => core.end_explain());
      throw error;
    }
    return this.ask(end);
  }

  /** Rejects what was called; the core has forgotten it. */
  reject(tickets: Tickets): void {
    for (const call of this.calls) {
      if (tickets.take(call.ticket) === undefined) continue;
      call.promise.catch(ignore); // Nobody need catch what is never sent.
      const why = `${about(call)}: made inside ${this.name}, which plans calls and sends none`;
      call.reject(new FramebatchError("aborted", why));
    }
  }

  /** Adds a call. One that was refused is none of these: its caller heard. */
  add(call: Call): void {
    if (call.ticket !== ANSWERED) this.calls.push(call);
  }

  private ask<Answer>(question: (core: Core) => Answer): Answer {
    try {
      return question(this.core);
    } catch (thrown) {
      throw fromCore(this.name, thrown);
    }
  }
}

/** A new one; throws while the session opens, or another one runs. */
export function beginDryRun(
  name: string,
  core: Core | undefined,
  running: DryRun | undefined,
): DryRun {
  if (core === undefined) {
    throw invalid(name, "the session is still opening; await gpu.ready first");
  }
  if (running !== undefined) {
    throw invalid(name, "it cannot be used inside itself");
  }
  return new DryRun(core, name);
}

/** What waits for a warm-up is a call without operands: its ticket is the core's. */
export class WarmupOperands extends Operands {
  readonly rows = 0;
  readonly elements = 0;
  readonly isEmpty = false;

  constructor() {
    super({ name: "warmup", gives: "float32", width: 1, option: undefined });
  }

  write(): number {
    throw new Error("a warm-up has nothing to write");
  }
}

function ignore(): void {}

function ignoreAborted(error: unknown): void {
  if (error instanceof FramebatchError && error.code === "aborted") return;
  throw error;
}
