// The listeners to what batches were, and where their time went.
//
// The core measures, and only while there is a listener: one of the session's, its
// timeline, or a call with `onMetrics`. Nothing is measured here.

import { ANSWERED, type Call } from "../calls/call.js";
import { invalid, kindOf, report } from "../checks/errors.js";
import type { Core } from "../core/core.js";
import type { BatchFacts, BatchListener } from "../metrics/batch-facts.js";

interface Asked {
  readonly call: Call;
  /** The call's ticket once it has one: a call forgets its ticket when it is answered. */
  ticket: number | undefined;
}

/** The listeners of one session. */
export class BatchListeners {
  /** Whether the core measures. */
  isOn = false;
  private core: Core | undefined;
  private readonly listeners = new Set<BatchListener>();
  /** Calls with `onMetrics` whose batches have not come back. */
  private asked: Asked[] = [];

  /** The session is open. */
  open(core: Core): void {
    this.core = core;
    this.turn();
  }

  /** Adds a listener; the function that comes back removes it. */
  add(listener: BatchListener): () => void {
    if (typeof listener !== "function") {
      throw invalid("on", `it takes a function, got ${kindOf(listener)}`);
    }
    this.listeners.add(listener);
    this.turn();
    return () => {
      this.listeners.delete(listener);
      this.turn();
    };
  }

  /** A call with `onMetrics` is about to be entered. */
  ask(call: Call): void {
    this.asked.push({ call, ticket: undefined });
    this.turn();
  }

  /** A call with `onMetrics` has its ticket. */
  entered(call: Call): void {
    const asked = this.asked.find((entry) => entry.call === call);
    if (asked !== undefined) asked.ticket = call.ticket;
  }

  /** A call was given up, or refused. */
  drop(call: Call): void {
    this.asked = this.asked.filter((entry) => entry.call !== call);
    this.turn();
  }

  /** All of a batch came back: tells the session's listeners and those of its calls. */
  collect(): void {
    const batch = this.core?.facts();
    if (batch === undefined) return;
    const { first, last, ...facts } = batch;
    const span = (last - first) >>> 0;
    const hear: BatchListener[] = [...this.listeners];
    this.asked = this.asked.filter(({ call, ticket }) => {
      const isAnswered = call.ticket === ANSWERED;
      // A pending call with a ticket in between waits for its kernel, and goes with a later batch.
      const isIn =
        isAnswered && (ticket === undefined || (ticket - first) >>> 0 <= span);
      if (isIn) hear.push(call.terms!.onMetrics!);
      // A call that was superseded or refused has no batch.
      const isOver =
        isAnswered && ticket !== undefined && (first - ticket) >>> 0 < 2 ** 31;
      return !isIn && !isOver;
    });
    this.turn();
    for (const listener of hear) tell(listener, facts);
  }

  /** The session ended. */
  close(): void {
    this.asked = [];
    this.core = undefined;
  }

  private turn(): void {
    const isOn = this.listeners.size > 0 || this.asked.length > 0;
    if (this.core === undefined || isOn === this.isOn) return;
    this.isOn = isOn;
    this.core.measure(isOn);
  }
}

function tell(listener: BatchListener, facts: BatchFacts): void {
  try {
    listener({ ...facts });
  } catch (error) {
    report(error); // Browsers report what a page's own event listeners throw, too.
  }
}
