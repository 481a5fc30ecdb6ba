// Sends what is queued, and sees to it that the answers come soon.
//
// It tells everyone with a stake in when batches go: the clock, the poller, the
// preallocator, the warning about lonely batches. It knows how many calls are queued, and
// no call.

import type { Clock } from "../clock/clock.js";
import type { CompletionPoller } from "../clock/completion-polling.js";
import type { LonelyWarning } from "../clock/lonely-warning.js";
import type { Core } from "../core/core.js";
import type { Environment, Page } from "../platform/environment.js";
import type { Tickets } from "../queue/tickets.js";
import { Preallocator } from "../results/preallocator.js";
import type { Calibrator } from "./calibrator.js";

/** What a session's batches go by. */
export interface SenderConfig {
  readonly environment: Environment;
  readonly clock: Clock;
  readonly poller: CompletionPoller;
  readonly calibrator: Calibrator;
  /** Undefined where nobody would read it. */
  readonly warning: LonelyWarning | undefined;
}

/** The way out of one session. */
export class Sender {
  /** Calls taken since the last flush. */
  queued = 0;
  private readonly clock: Clock;
  private readonly poller: CompletionPoller;
  private readonly calibrator: Calibrator;
  readonly preallocator: Preallocator;
  private readonly page: Page | undefined;
  private readonly warning: LonelyWarning | undefined;

  constructor(
    private readonly core: Core,
    tickets: Tickets,
    { environment, clock, poller, calibrator, warning }: SenderConfig,
    /** Hears what the core throws, and when. */
    private readonly fail: (doing: string, thrown: unknown) => void,
  ) {
    this.clock = clock;
    this.poller = poller;
    this.calibrator = calibrator;
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

  /** Sends what is queued; `atOnce` however many batches are on their way. */
  flush(atOnce: boolean): void {
    // Told first: a CPU core answers inside `flush`.
    this.queued = 0;
    this.clock.flushed();
    try {
      this.core.flush(atOnce);
      this.sent();
    } catch (thrown) {
      this.fail("flush", thrown);
    }
  }

  /** Batches may be on their way now. */
  sent(): void {
    this.poller.sent();
    this.preallocator.sent();
  }

  /** When it is due, in milliseconds of the clock; NaN is never. */
  due(now: number): number {
    try {
      return this.core.due(now);
    } catch (thrown) {
      this.fail("due", thrown);
      return NaN;
    }
  }

  /** The clock is about to flush, which the warning goes by. */
  warn(): void {
    if (this.queued > 0) this.warning?.sent(this.queued);
  }

  /** Results are about to be filled. */
  returning(): void {
    this.preallocator.returning();
  }

  /** They were; `last` says that no more of their batch are on their way. */
  returned(last: boolean): void {
    if (last) {
      this.poller.returned();
      this.calibrator.returned();
    }
    this.preallocator.returned();
    this.clock.settled();
  }

  // What nobody looks at leaves its memory to what they do look at.
  private readonly onVisibility = (): void => {
    if (!this.page!.hidden) return;
    try {
      this.core.trim();
    } catch (thrown) {
      this.fail("trim", thrown);
    }
  };

  /** Sends nothing any more. */
  dispose(): void {
    this.page?.removeEventListener("visibilitychange", this.onVisibility);
    this.clock.dispose();
    this.poller.dispose();
    this.calibrator.dispose();
    this.preallocator.dispose();
  }
}
