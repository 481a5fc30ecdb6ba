// The calls made inside `explain`: planned by the core, and never sent.
//
// It keeps them only so that they can be rejected at the end. The plan itself,
// and its text, are the core's.

import { about } from "./answer.js";
import type { Core } from "./core.js";
import { FramebatchError, fromCore } from "./errors.js";
import type { Call } from "./call.js";

/** One `explain`, while it runs. */
export class Explained {
  /** What was called so far. */
  readonly calls: Call[] = [];

  /** Runs `make`, and returns the plan of what it called. */
  run(core: Core, make: () => unknown): string {
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

  /** Adds a call; nobody need catch what is never sent. */
  add(call: Call): void {
    call.promise.catch(ignoreAborted);
    this.calls.push(call);
  }
}

/** What a call made inside `explain` rejects with. */
export function unsent(call: Call): FramebatchError {
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
