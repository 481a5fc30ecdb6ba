// What a session does for its streams: their calls wait for no frame.
//
// Chunks in flight are counted, and meanwhile each task that made calls ends with a
// flush; other calls of that task go along. Chunks are taken in `stream.ts`.

import type { Priority } from "../checks/priority.js";
import type { Core } from "../core/core.js";
import { EndOfTask, type Environment } from "../platform/environment.js";
import type { Streaming } from "./stream.js";

/** What streams ask of the session's calls. */
interface StreamSession {
  readonly core: Core | undefined;
  /** The priority of calls that say none. */
  inherited: Priority | undefined;
  send(): void;
}

/** The streams of one session. */
export class Streams implements Streaming {
  private chunks = 0;
  /** Whether calls were made since the last flush. */
  private waiting = false;
  private task: EndOfTask | undefined;

  constructor(private readonly session: StreamSession) {}

  /** The session is open. */
  open(environment: Environment): void {
    this.task = new EndOfTask(environment, () => {
      if (this.waiting) this.session.send();
    });
    if (this.waiting) this.task.post();
  }

  begin(): void {
    this.chunks += 1;
  }

  end(): void {
    this.chunks -= 1;
  }

  run<Result>(priority: Priority | undefined, work: () => Result): Result {
    const { session } = this;
    const before = session.inherited;
    session.inherited = priority;
    try {
      return work();
    } finally {
      session.inherited = before;
    }
  }

  flush(): void {
    this.session.send();
  }

  fitting(bytes: number): number {
    return this.session.core?.optimal_batch_size(0, bytes) ?? 1;
  }

  /** A call was queued. Invoked for every call, so it must be cheap. */
  called(): void {
    if (this.chunks === 0) return;
    this.waiting = true;
    this.task?.post();
  }

  /** Every queued call was sent. */
  flushed(): void {
    this.waiting = false;
  }

  /** The session ended. */
  close(): void {
    this.task?.close();
  }
}
