// The calls made inside `explain`: planned by the core, and never sent.
//
// It keeps them only so that they can be rejected at the end. The plan itself,
// and its text, are the core's.

import { about } from "./answer.js";
import type { Core } from "./core.js";
import { FramebatchError, fromCore, invalid } from "./errors.js";
import type { Call } from "./call.js";
import type { Tickets } from "./tickets.js";

/** One `explain`, while it runs. */
export class Explained {
  private readonly calls: Call[] = [];

  constructor(private readonly core: Core) {}

  /** Runs `make`, and returns the plan of what it called. */
  run(make: () => unknown): string {
    const { core } = this;
    ask(() => core.begin_explain());
    try {
      // An async function goes on later, and then rejects with its calls.
      Promise.resolve(make()).catch(ignoreAborted);
    } catch (error) {
      ask(() => core.end_explain());
      throw error;
    }
    return ask(() => core.end_explain());
  }

  /** Rejects what was called; the core has forgotten it. */
  reject(tickets: Tickets): void {
    for (const call of this.calls) {
      if (tickets.take(call.ticket) !== undefined) call.reject(unsent(call));
    }
  }

  /** Adds a call; nobody need catch what is never sent. */
  add(call: Call): void {
    call.promise.catch(ignoreAborted);
    this.calls.push(call);
  }
}

/** A new one; throws while the session opens, or another one runs. */
export function beginExplained(
  core: Core | undefined,
  running: Explained | undefined,
): Explained {
  if (core === undefined) {
    throw invalid(
      "explain",
      "the session is still opening; await gpu.ready first",
    );
  }
  if (running !== undefined) {
    throw invalid("explain", "it cannot be used inside itself");
  }
  return new Explained(core);
}

/** What a call made inside `explain` rejects with. */
function unsent(call: Call): FramebatchError {
  return new FramebatchError(
    "aborted",
    `${about(call)}: made inside explain, which plans calls and sends none`,
  );
}

function ask<Answer>(question: () => Answer): Answer {
  try {
    return question();
  } catch (thrown) {
    throw fromCore("explain", thrown);
  }
}

function ignoreAborted(error: unknown): void {
  if (error instanceof FramebatchError && error.code === "aborted") return;
  throw error;
}
