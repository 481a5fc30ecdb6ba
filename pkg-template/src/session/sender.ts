// Sends the queued calls, and tells all that have to do with when batches go and come:
// the clock, the poller, the preallocator, the calibrator, the warning about lonely calls.
//
// The sender knows how many calls are queued, and nothing of any call.

import type { Priority } from "../checks/priority.js";
import type { Clock } from "../clock/clock.js";
import type { CompletionPoller } from "../clock/completion-polling.js";
import type { LonelyWarning } from "../clock/lonely-warning.js";
import type { MainThreadBudget } from "../clock/main-thread-budget.js";
import { PriorityClock } from "../clock/priority-clock.js";
import type { Core } from "../core/core.js";
import type { Environment, Page } from "../platform/environment.js";
import type { Tickets } from "../queue/tickets.js";
import { Preallocator } from "../results/preallocator.js";
import type { Calibrator } from "./calibrator.js";

/** What a sender tells of batches. */
export interface SenderConfig {
  readonly environment: Environment;
  readonly clock: Clock;
  readonly budget: MainThreadBudget;
  readonly poller: CompletionPoller;
  readonly calibrator: Calibrator;
  /** Whether the caller decides when batches go, those of low priority too. */
  readonly byCaller: boolean;
  /** Undefined in production, and where the caller decides when batches go. */
  readonly warning: LonelyWarning | undefined;
}

/** Sends the batches of one session. */
export class Sender {
  /** Calls taken since the last flush. */
  queued = 0;
  /** Whether calls of low priority wait for a flush as those of normal priority do. */
  readonly flushesLow: boolean;
  private readonly clock: Clock;
  private readonly priorityClock: PriorityClock;
  private readonly budget: MainThreadBudget;
  private readonly environment: Environment;
  private readonly poller: CompletionPoller;
  private readonly calibrator: Calibrator;
  readonly preallocator: Preallocator;
  private readonly page: Page | undefined;
  private readonly warning: LonelyWarning | undefined;
  /** Whether the core is in `flush`, and when it or an answer began. */
  private isFlushing = false;
  private began = 0;

  constructor(
    private readonly core: Core,
    private readonly tickets: Tickets,
    {
      environment,
      clock,
      budget,
      poller,
      calibrator,
      byCaller,
      warning,
    }: SenderConfig,
    /** Hears of a defect: what was being done, and what the core threw. */
    private readonly fail: (doing: string, thrown: unknown) => void,
    /** Hears that calls went which the queue may have room for now. */
    private readonly turned: () => void = () => {},
  ) {
    this.environment = environment;
    this.clock = clock;
    this.priorityClock = new PriorityClock(environment, {
      turn: (goes) => this.turn(goes),
      freeFrom: (now) => budget.after(now),
    });
    this.budget = budget;
    this.poller = poller;
    this.calibrator = calibrator;
    this.flushesLow = byCaller;
    this.warning = warning;
    const flights = () => tickets.arena.flights;
    this.preallocator = new Preallocator(environment, tickets.pending, flights);
    this.page = environment.page;
    this.page?.addEventListener("visibilitychange", this.onVisibility);
  }

  /** A call was queued; the clock hears of it unless it is sent at once. */
  called(isNow: boolean): void {
    if (this.queued === 0) this.warning?.opened();
    this.queued += 1;
    if (!isNow) this.clock.called();
  }

  /** Calls that had waited for the core were queued. */
  replayed(): void {
    if (this.queued > 0) this.clock.called();
  }

  /** A call of another priority than normal was queued. */
  calledWith(priority: Priority): void {
    if (priority === "low" && this.flushesLow) this.clock.called();
    this.priorityClock.called(priority);
  }

  /** Sends the queued calls; `atOnce` however many batches are in flight. */
  flush(atOnce: boolean): void {
    // The clock is told first: a core on the CPU answers inside `flush`.
    this.queued = 0;
    this.clock.flushed();
    this.encode("flush", () => {
      this.core.flush(atOnce);
      this.sent();
    });
    this.priorityClock.flushed();
  }

  // Sends calls of high priority, and low work if it `goes`; whether low work waits.
  private turn(goes: boolean): boolean {
    let waits = false;
    this.encode("turn", () => {
      const { arena } = this.tickets;
      const owed = arena.owed;
      waits = this.core.turn(goes);
      // Where nothing went, batches on their way are timed from when they did.
      if (arena.owed > owed) this.sent();
    });
    this.turned();
    return waits;
  }

  // Has the core send batches, and counts what of the main thread it takes.
  private encode(doing: string, send: () => void): void {
    const owed = this.tickets.arena.owed;
    const began = this.environment.now();
    // What a listener makes of an answer may flush again.
    const isOuter = !this.isFlushing;
    this.isFlushing = true;
    try {
      send();
    } catch (thrown) {
      this.fail(doing, thrown);
    }
    if (!isOuter) return;
    this.isFlushing = false;
    const now = this.environment.now();
    const { budget } = this;
    if (this.tickets.arena.owed > owed) budget.spendOnGpu(now - began, now);
    else budget.spendOnCpu(now - began, now);
  }

  /** Batches may be in flight now. */
  sent(): void {
    this.poller.sent();
    this.preallocator.sent();
  }

  /** When the queued calls are due, in milliseconds of the clock; NaN is never. */
  due(now: number): number {
    try {
      return this.budget.after(this.core.due(now));
    } catch (thrown) {
      this.fail("due", thrown);
      return NaN;
    }
  }

  /** The same where the end of each frame flushes anyway. */
  dueInFrames(now: number): number {
    try {
      return this.core.due_in_frames(now);
    } catch (thrown) {
      this.fail("due", thrown);
      return NaN;
    }
  }

  /** The clock is about to flush: the warning counts the batch. */
  warn(): void {
    if (this.queued > 0) this.warning?.sent(this.queued);
  }

  /** Results are about to be filled. */
  returning(): void {
    if (!this.isFlushing) this.began = this.environment.now();
    this.preallocator.returning();
  }

  /** Results were filled; `last` says that no more chunks of their batch are in flight. */
  returned(last: boolean): void {
    if (last) {
      this.poller.returned();
      this.calibrator.returned();
    }
    this.preallocator.returned();
    this.clock.settled();
    this.priorityClock.settled();
  }

  /** A value that is tuned to the load is another one now. */
  tuned(): void {
    this.calibrator.remember();
  }

  /** Results were filled, and the main thread is free for what the page makes of them. */
  filled(): void {
    if (this.isFlushing) return;
    const now = this.environment.now();
    this.budget.spendOnGpu(now - this.began, now);
  }

  // A hidden page leaves memory to pages that are looked at.
  private readonly onVisibility = (): void => {
    if (!this.page!.hidden) return;
    try {
      this.core.trim();
    } catch (thrown) {
      this.fail("trim", thrown);
    }
  };

  /** The session ended: no more batches are sent. */
  dispose(): void {
    this.page?.removeEventListener("visibilitychange", this.onVisibility);
    this.clock.dispose();
    this.priorityClock.dispose();
    this.poller.dispose();
    this.calibrator.dispose();
    this.preallocator.dispose();
  }
}
