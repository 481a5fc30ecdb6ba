// The workers that sessions live in: one for the page, unless a session has a worker of its own.
//
// A worker is made for the first session, ends with the last, and is given up when it fails.
// What is said to it is not known here.

import { FramebatchError } from "../checks/errors.js";

/** A worker with the package's script, as a session may be given one. */
export type WorkerSource = Worker | URL | string | (() => Worker);

/** A session in a worker. */
export interface Inhabitant {
  /** The worker is no more. */
  died(error: FramebatchError): void;
}

/** A worker, and the sessions in it. */
export class WorkerHost {
  isDead = false;
  private readonly sessions = new Set<Inhabitant>();
  /** Whether its script has answered. */
  private hasAnswered = false;
  /** Ends the wait for the lock that the worker holds while it lives. */
  private watching: AbortController | undefined;

  constructor(
    readonly worker: Worker,
    /** Whether the worker ends with its last session. */
    private readonly isOurs: boolean,
  ) {
    worker.addEventListener("error", this.onError);
  }

  enter(session: Inhabitant): void {
    this.sessions.add(session);
  }

  leave(session: Inhabitant): void {
    this.sessions.delete(session);
    if (this.sessions.size === 0 && this.isOurs) this.close();
  }

  /** The script has answered, and holds a lock of this name, where there are locks. */
  answered(lock: string | undefined): void {
    this.hasAnswered = true;
    if (lock === undefined || this.watching !== undefined) return;
    this.watching = new AbortController();
    const { signal } = this.watching;
    // Nothing else tells that somebody terminated the worker.
    navigator.locks
      .request(lock, { signal }, () => this.die("its worker has ended"))
      .catch(() => {}); // It was given up.
  }

  /** The worker has ended, for this reason. */
  die(why: string): void {
    if (this.isDead) return;
    const error = new FramebatchError(
      "fatal",
      `the session ended with its worker (${why}); open a new one`,
    );
    this.close();
    for (const session of [...this.sessions]) session.died(error);
  }

  private close(): void {
    this.isDead = true;
    this.worker.removeEventListener("error", this.onError);
    this.watching?.abort();
    if (this.isOurs) this.worker.terminate();
  }

  // A worker whose script runs tells its sessions by itself what becomes of them.
  private readonly onError = ({ message }: ErrorEvent): void => {
    if (this.hasAnswered || this.isDead) return;
    const error = notStarted(message || "its script did not load");
    this.close();
    for (const session of [...this.sessions]) session.died(error);
  };
}

/** The page's own worker, and workers that were given. */
let own: WorkerHost | undefined;
const given = new WeakMap<Worker, WorkerHost>();

/** The error of a worker that could not be started. */
function notStarted(why: unknown): FramebatchError {
  return new FramebatchError(
    "unsupported",
    `the worker could not be started (${why}); ` +
      "serve worker-script.js of the package from the page's own origin, and give its address, or a worker, as the option worker",
    { cause: why },
  );
}

/** The host for a session: the page's, or one of what was given. */
export function hostOf(source: WorkerSource | undefined): WorkerHost {
  if (source === undefined) {
    if (own === undefined || own.isDead)
      own = new WorkerHost(started(start), true);
    return own;
  }
  if (typeof source === "function") return hostFor(started(source));
  if (typeof source === "string" || source instanceof URL) {
    const start = (): Worker => new Worker(source, { type: "module" });
    return new WorkerHost(started(start), true);
  }
  return hostFor(source);
}

/** What `start` gives: constructors of workers throw for other origins, and where there are none. */
function started(start: () => Worker): Worker {
  try {
    return start();
  } catch (error) {
    throw notStarted(error);
  }
}

function hostFor(worker: Worker): WorkerHost {
  let host = given.get(worker);
  if (host === undefined || host.isDead) {
    given.set(worker, (host = new WorkerHost(worker, false)));
  }
  return host;
}

// Bundlers know this form, and take the script along.
function start(): Worker {
  return new Worker(new URL("./worker-script.js", import.meta.url), {
    type: "module",
  });
}
