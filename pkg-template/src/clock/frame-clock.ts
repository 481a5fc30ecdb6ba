// Sends one batch at the end of each animation frame that has calls.
//
// A frame callback of the clock's own posts a task, and that task flushes: calls made
// between frames and in any callback of a frame go out together, in that frame. Where
// no frame will come (a hidden page, Node, a page that the browser does not draw), the
// end of the current task takes the frame's place. The clock does not look at the
// queue: how full it is, the core knows.

import { EndOfTask, type Environment } from "../platform/environment.js";
import type { Clock, Clocked } from "./clock.js";
import { FlushTimer } from "./flush-timer.js";

/** How long the clock keeps asking for frames after the last call, in milliseconds. */
const ARMED_MS = 1000;

/** How long a visible page's frame may take before tasks take the place of frames, in milliseconds. */
const MISSING_MS = 100;

/** Hears of the frames that a clock asked for. */
export interface FrameListener {
  /** The callbacks of a frame are running; `time` is what all of them are told. */
  began(time: number): void;
}

/** The clock behind `flush: "frame"`. */
export class FrameClock implements Clock {
  /** When the newest batch got its first call. */
  private since = 0;
  /** Whether a frame is asked for that has not come yet. */
  private asked = false;
  private frame = 0;
  /** Whether a frame that is asked for failed to come, so that tasks take the place of frames until it comes. */
  private missing = false;
  private watch: unknown;
  private readonly task: EndOfTask;
  private readonly timer: FlushTimer;

  constructor(
    private readonly environment: Environment,
    private readonly batch: Clocked,
    private readonly listener?: FrameListener,
  ) {
    this.task = new EndOfTask(environment, () => {
      if (listener !== undefined) this.askLast();
      this.send();
    });
    this.timer = new FlushTimer(environment, {
      flush: () => batch.flush(),
      due: (now) => batch.dueInFrames(now),
    });
    environment.page?.addEventListener("visibilitychange", this.onVisibility);
  }

  called(): void {
    if (this.timer.isWaiting) return;
    this.since = this.environment.now();
    if (this.drawn) {
      this.ask();
      if (this.missing) this.task.post();
      else this.expectFrame(MISSING_MS);
    } else {
      this.task.post();
    }
    this.timer.ask();
  }

  flushed(): void {
    this.timer.sent();
  }

  settled(): void {
    this.timer.askAgain();
  }

  dispose(): void {
    const { environment } = this;
    if (this.asked) environment.frames?.cancel(this.frame);
    environment.clearTimer(this.watch);
    environment.page?.removeEventListener(
      "visibilitychange",
      this.onVisibility,
    );
    this.task.close();
    this.timer.dispose();
  }

  /** Whether frames come, as far as is known. */
  get comes(): boolean {
    return this.drawn && !this.missing;
  }

  /** Whether the browser draws the page, so that frames should come. */
  private get drawn(): boolean {
    const { frames, page } = this.environment;
    return frames !== undefined && page?.hidden !== true;
  }

  private ask(): void {
    if (this.asked) return;
    this.asked = true;
    this.frame = this.environment.frames!.request(this.onFrame);
  }

  // Behind the callbacks that others asked for as theirs ran, so that calls of these come
  // before the clock hears of the frame.
  private askLast(): void {
    if (!this.asked) return;
    this.environment.frames!.cancel(this.frame);
    this.asked = false;
    this.ask();
  }

  private readonly onFrame = (time: number): void => {
    this.asked = false;
    this.missing = false;
    this.listener?.began(time);
    // The task of the last frame has not run: the calls of that frame must not wait for two.
    if (this.task.posted) this.send();
    const sinceLast = this.environment.now() - this.since;
    if (!this.timer.isWaiting && sinceLast >= ARMED_MS) return;
    this.ask();
    this.task.post();
  };

  private readonly onVisibility = (): void => {
    if (this.environment.page!.hidden) this.send();
  };

  private expectFrame(milliseconds: number): void {
    this.watch ??= this.environment.setTimer(this.onWatch, milliseconds);
  }

  // One timer serves many batches: it is set again, and not cleared, when its batch has gone.
  private readonly onWatch = (): void => {
    this.watch = undefined;
    if (!this.timer.isWaiting || !this.drawn) return;
    const left = this.since + MISSING_MS - this.environment.now();
    if (left > 0) return this.expectFrame(left);
    this.missing = true;
    this.send();
  };

  private send(): void {
    if (this.timer.isWaiting) this.batch.flush();
  }
}
