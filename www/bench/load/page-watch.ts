// What a load does to its page: the gaps between frames, and tasks that are too long.
//
// Frames are asked for all the time, so that the browser has one to draw.

/** Tasks over 50 ms, as the browser tells of them. */
export interface LongTasks {
  readonly count: number;
  readonly longest: number;
}

export class PageWatch {
  /** Milliseconds from frame to frame. */
  gaps: number[] = [];
  private last: number | undefined;
  private tasks: number[] = [];
  private readonly observer: PerformanceObserver | undefined;
  private frame: number;

  /** `animate` is called in each frame's callback. */
  constructor(private readonly animate: () => void = () => {}) {
    if (PerformanceObserver.supportedEntryTypes.includes("longtask")) {
      this.observer = new PerformanceObserver((list) => this.note(list));
      this.observer.observe({ type: "longtask" });
    }
    this.frame = requestAnimationFrame((time) => this.drawn(time));
  }

  /** Undefined where the browser does not tell. */
  get longTasks(): LongTasks | undefined {
    if (this.observer === undefined) return undefined;
    this.observer
      .takeRecords()
      .forEach(({ duration }) => this.tasks.push(duration));
    return { count: this.tasks.length, longest: Math.max(0, ...this.tasks) };
  }

  /** Forgets what it saw. */
  restart(): void {
    this.observer?.takeRecords();
    this.gaps = [];
    this.tasks = [];
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.observer?.disconnect();
  }

  private note(list: PerformanceObserverEntryList): void {
    for (const { duration } of list.getEntries()) this.tasks.push(duration);
  }

  private drawn(time: number): void {
    if (this.last !== undefined) this.gaps.push(time - this.last);
    this.last = time;
    this.animate();
    this.frame = requestAnimationFrame((next) => this.drawn(next));
  }
}
