// Sends one batch a frame while a page animates, and otherwise at the end of each task.
//
// A page animates that made a call in a callback of one of its last frames. Its calls go at
// the end of their frame, whoever made them. The calls of other pages go at the end of their
// task while the device is idle, and otherwise when the core says so or their frame ends.
// Both clocks exist without this file; here it is only chosen between them.

import type { Environment } from "../platform/environment.js";
import type { Clock, Clocked } from "./clock.js";
import { EagerClock } from "./eager-clock.js";
import { FrameClock } from "./frame-clock.js";

/** Frames for which a page counts as animating after a call in a frame callback. */
const ANIMATING_FRAMES = 10;

/** The clock behind `flush: "auto"`. */
export class AutoClock implements Clock {
  private readonly framed: FrameClock;
  private readonly eager: EagerClock;
  /** Frames that came while they were asked for, and the last of them in which a call was made. */
  private frames = 0;
  private lastWithCalls = -Infinity;
  /** Whether callbacks of a frame are running behind the clock's own. */
  private isInFrame = false;
  private readonly leaveFrame = () => (this.isInFrame = false);
  /** Whether it is known of the queued calls where the first of this frame was made. */
  private isNoted = false;
  /** The time of the frame that was the newest when that call was made. */
  private frameTime: number | null | undefined;
  /** Whether calls go at the end of their task. */
  private isEager = true;

  constructor(
    private readonly environment: Environment,
    batch: Clocked,
  ) {
    this.framed = new FrameClock(environment, batch, {
      began: (time) => this.began(time),
    });
    this.eager = new EagerClock(environment, batch);
  }

  called(): void {
    if (!this.isNoted) this.note();
    if (this.isEager) this.eager.called();
  }

  flushed(): void {
    this.isNoted = false;
    this.framed.flushed();
    this.eager.flushed();
  }

  settled(): void {
    if (this.isEager) this.eager.settled();
    else this.framed.settled();
  }

  dispose(): void {
    this.framed.dispose();
    this.eager.dispose();
  }

  private note(): void {
    this.isNoted = true;
    if (this.isInFrame) this.lastWithCalls = this.frames;
    else this.frameTime = this.environment.frames?.newest();
    const { framed } = this;
    const isAnimating = this.frames - this.lastWithCalls < ANIMATING_FRAMES;
    this.isEager = !isAnimating || !framed.comes;
    if (framed.comes) framed.called();
  }

  private began(time: number): void {
    this.frames += 1;
    // The call was made in a callback of this frame, ahead of the clock's own.
    if (this.isNoted && this.frameTime === time)
      this.lastWithCalls = this.frames;
    this.isNoted = false;
    this.isInFrame = this.environment.frames!.behind(this.leaveFrame);
  }
}
