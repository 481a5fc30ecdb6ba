// The calls made inside `explain` and `warmup`: planned by the core, and never sent.
//
// Calls are kept only to be rejected at the end. The plan, its text, and what is compiled
// for it are made by the core.

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
      // An async function goes on after the dry run, and then rejects as its calls do.
      Promise.resolve(make()).catch(ignoreAborted);
    } catch (error) {
      this.ask((core) => core.end_explain());
      throw error;
    }
    return this.ask(end);
  }

  /** Rejects the calls that were made; the core has forgotten them. */
  reject(tickets: Tickets): void {
    for (const call of this.calls) {
      if (tickets.take(call.ticket) === undefined) continue;
      call.promise.catch(ignore); // A page need not catch what is never sent.
      const why = `${about(call)}: made inside ${this.name}, which plans calls and sends none`;
      call.reject(new FramebatchError("aborted", why));
    }
  }

  /** Adds a call, unless it was refused and thereby answered. */
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

/** Begins a dry run. Throws while the session opens, or while another one runs. */
export function beginDryRun(
  name: string,
  core: Core | undefined,
  running: DryRun | undefined,
): DryRun {
  if (core === undefined) {
    throw invalid(name, "the session is still opening; await gpu.ready first");
  }
  if (running !== undefined) {
    throw invalid(name, "it cannot be used inside another explain or warmup");
  }
  return new DryRun(core, name);
}

/** The operands of a warm-up, of which there are none: the core gives it a ticket by itself. */
export class WarmupOperands extends Operands {
  readonly rows = 0;
  readonly elements = 0;
  readonly isEmpty = false;

  constructor() {
    super({ name: "warmup", gives: "float32", width: 1, option: undefined });
  }

  /** Never called. */
  write(): number {
    return 0;
  }
}

function ignore(): void {}

function ignoreAborted(error: unknown): void {
  if (error instanceof FramebatchError && error.code === "aborted") return;
  throw error;
}
