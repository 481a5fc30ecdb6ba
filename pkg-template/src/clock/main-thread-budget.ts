// Bounds the main thread's time that batches take at the ends of tasks.
//
// Each batch costs the main thread something however few calls it has, so a page that is
// called faster than that would do nothing but send batches. Beyond the budget calls wait,
// and batches grow. What a batch cost is told here; nothing is measured or sent.

/** A stretch of time with a budget: about a frame, in milliseconds. */
const WINDOW_MS = 16;

/** Milliseconds of a window that batches may take, of a GPU and of the CPU. */
const GPU_MS = 6;
const CPU_MS = 4;

/** The budget of one session. */
export class MainThreadBudget {
  private since = -Infinity;
  /** When the newest batch ended. */
  private last = -Infinity;
  private gpu = 0;
  private cpu = 0;

  /** `hasPage`: the CPU is to leave a page time for itself. */
  constructor(private readonly hasPage: () => boolean) {}

  /** A batch of a GPU took so long, until now. */
  spendOnGpu(milliseconds: number, now: number): void {
    this.open(now - milliseconds);
    this.gpu += milliseconds;
    this.last = now;
  }

  /** The CPU took so long for a batch, until now. */
  spendOnCpu(milliseconds: number, now: number): void {
    this.open(now - milliseconds);
    this.cpu += milliseconds;
    this.last = now;
  }

  /** When a batch that is due may go. */
  after(due: number): number {
    const isSpent =
      this.gpu >= GPU_MS || (this.cpu >= CPU_MS && this.hasPage());
    if (!isSpent) return due;
    // A batch may outlast the window; the page gets as long as the batches took, too.
    const rest = Math.min(WINDOW_MS, this.gpu + this.cpu);
    return Math.max(due, this.since + WINDOW_MS, this.last + rest);
  }

  private open(now: number): void {
    if (now - this.since < WINDOW_MS) return;
    this.since = now;
    this.gpu = 0;
    this.cpu = 0;
  }
}
