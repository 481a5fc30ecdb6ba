// The outside world that decides when a batch is sent: frames, timers, tasks.
//
// Clocks get their environment as an argument, so that tests can hold time in their
// hands. Nothing is looked up before a session opens, so a server can import this file.

import { messageChannel, setLooseTimer } from "./node.js";

/** A message port; Node's can let go of the process. */
export interface Port {
  onmessage: ((event: MessageEvent) => void) | null;
  postMessage(message: unknown): void;
  close(): void;
  ref?(): void;
  unref?(): void;
}

/** What of `document` a clock needs. */
export interface Page {
  readonly hidden: boolean;
  addEventListener(type: "visibilitychange", listener: () => void): void;
  removeEventListener(type: "visibilitychange", listener: () => void): void;
}

/** What a clock needs of where it runs. */
export interface Environment {
  /** Milliseconds on the clock that the core uses too. */
  now(): number;
  setTimer(callback: () => void, milliseconds: number): unknown;
  /** The same for what nobody waits for: in Node such a timer keeps no process alive. */
  setLooseTimer(callback: () => void, milliseconds: number): unknown;
  clearTimer(timer: unknown): void;
  channel(): { port1: Port; port2: Port };
  /** Undefined where there are no animation frames. */
  readonly frames:
    | {
        request(callback: (time: number) => void): number;
        cancel(frame: number): void;
        /**
         * The time that the callbacks of the newest frame are told, also before the first
         * of them runs. Undefined or null where that is not known.
         */
        newest(): number | null | undefined;
        /**
         * Runs a function behind the callbacks of the frame that is being drawn, before
         * other tasks. `false` where the browser cannot be asked for that.
         */
        behind(run: () => void): boolean;
      }
    | undefined;
  /** Undefined where nothing can be hidden: a worker, Node. */
  readonly page: Page | undefined;
}

/** What of `scheduler` a clock needs; some browsers have none. */
interface TaskScheduler {
  postTask(run: () => void, options: { priority: "user-blocking" }): unknown;
}

/** The environment this script runs in. */
export function hostEnvironment(): Environment {
  const hasFrames = typeof requestAnimationFrame === "function";
  return {
    now: () => performance.now(),
    setTimer: (callback, milliseconds) => setTimeout(callback, milliseconds),
    setLooseTimer,
    clearTimer: (timer) => clearTimeout(timer as number | undefined),
    channel: messageChannel,
    frames: hasFrames
      ? {
          request: (callback) => requestAnimationFrame(callback),
          cancel: (frame) => cancelAnimationFrame(frame),
          newest: () =>
            globalThis.document?.timeline?.currentTime as number | null,
          behind(run) {
            const { scheduler } = globalThis as { scheduler?: TaskScheduler };
            scheduler?.postTask(run, { priority: "user-blocking" });
            return scheduler !== undefined;
          },
        }
      : undefined,
    page: typeof document === "undefined" ? undefined : document,
  };
}

/** Resolves in a task of its own, so that what the page has to do comes first. */
export function nextTask(environment: Environment): Promise<void> {
  return new Promise((resolve) => {
    const task = new EndOfTask(environment, () => {
      task.close();
      resolve();
    });
    task.post();
  });
}

/**
 * Runs a function at the end of the current task: as the next task, by a message
 * to ourselves. Unlike a timer this is not delayed, and unlike a microtask it
 * lets everything in the current task make its calls first.
 */
export class EndOfTask {
  /** Whether a run is asked for that has not come yet. */
  posted = false;
  private ports: { port1: Port; port2: Port } | undefined;

  constructor(
    private readonly environment: Environment,
    private readonly run: () => void,
  ) {}

  /** Asks for one run. Asking again before it comes changes nothing. */
  post(): void {
    if (this.posted) return;
    this.posted = true;
    const ports = (this.ports ??= this.connect());
    // Node stays alive for a message on its way, and not for an open channel.
    ports.port1.ref?.();
    ports.port2.postMessage(null);
  }

  /** Closes the channel; a run that was asked for does not come. */
  close(): void {
    if (this.ports === undefined) return;
    this.ports.port1.onmessage = null;
    this.ports.port1.close();
    this.ports.port2.close();
    this.ports = undefined;
  }

  private connect(): { port1: Port; port2: Port } {
    const ports = this.environment.channel();
    ports.port1.onmessage = () => {
      this.posted = false;
      ports.port1.unref?.();
      this.run();
    };
    return ports;
  }
}
