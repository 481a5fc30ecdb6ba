// Sends what is queued, and sees to it that the answers come soon.
//
// It tells everyone with a stake in when batches go: the clock, the nudger, the
// preparer, the warning about lonely batches. It knows how many calls are queued, and
// no call.

import type { Clock } from "../clock/clock.js";
import type { Nudger } from "../clock/completion-polling.js";
import type { LonelyWarning } from "../clock/lonely-warning.js";
import type { Core } from "../core/core.js";
import type { Environment, Page } from "../platform/environment.js";
import type { Tickets } from "../queue/tickets.js";
import { Preparer } from "../results/preallocator.js";
import type { Calibrator } from "./calibrator.js";

/** What a session's batches go by. */
export interface Pace {
  readonly around: Environment;
  readonly clock: Clock;
  readonly nudger: Nudger;
  readonly calibrator: Calibrator;
  /** Undefined where nobody would read it. */
  readonly warning: LonelyWarning | undefined;
}

/** The way out of one session. */
export class Sending {
  /** Calls taken since the last flush. */
  queued = 0;
  private readonly clock: Clock;
  private readonly nudger: Nudger;
  private readonly calibrator: Calibrator;
  readonly preparer: Preparer;
  private readonly page: Page | undefined;
  private readonly warning: LonelyWarning | undefined;

  constructor(
    private readonly core: Core,
    tickets: Tickets,
    { around, clock, nudger, calibrator, warning }: Pace,
    /** Hears what the core throws, and when. */
    private readonly fail: (doing: string, thrown: unknown) => void,
  ) {
    this.clock = clock;
    this.nudger = nudger;
    this.calibrator = calibrator;
    this.warning = warning;
    const flights = () => tickets.arena.flights;
    this.preparer = new Preparer(around, tickets.pending, flights);
    this.page = around.page;
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
    this.nudger.sent();
    this.preparer.sent();
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
    this.preparer.returning();
  }

  /** They were; `last` says that no more of their batch are on their way. */
  returned(last: boolean): void {
    if (last) {
      this.nudger.returned();
      this.calibrator.returned();
    }
    this.preparer.returned();
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
    this.nudger.dispose();
    this.calibrator.dispose();
    this.preparer.dispose();
  }
}
