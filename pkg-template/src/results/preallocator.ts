// Makes the arrays of results before there are results.
//
// A new array costs several times the copy into it: memory must be found, and the pages
// of a large array are mapped only when they are first written. The main thread is idle
// between a batch and its answers, so arrays are made then, and answers only fill them.
// Arrays that the wait was too short for are made after the batch, for the next one; a
// batch of the CPU leaves no wait, so all of its arrays are made that way. Each
// array is handed out once. No call is answered here.

import type { Call } from "../calls/call.js";
import { ArrayPool } from "../memory/array-pool.js";
import type { Operand } from "../memory/arrays.js";
import { EndOfTask, type Environment } from "../platform/environment.js";
import type { PendingCalls } from "../queue/pending-calls.js";

/** About the length of a task, in milliseconds: polling and the page run in between. */
const TASK_MS = 0.25;
/** Arrays and pages made between two looks at the clock. */
const AT_ONCE = 16;
/** Bytes up to which an array lies on the engine's own heap, and is as cheap as its copy. */
const CHEAP_BYTES = 64;
/** Bytes of arrays that are made for one flush, at most. */
const MOST_BYTES = 2 ** 24;
/** The smallest size of a page of memory; larger pages are written more than once. */
const PAGE_BYTES = 4096;

/** Makes the arrays of one session's results. */
export class Preallocator {
  /** The tickets that were sent and may want arrays; `next` is the place of the next one. */
  private tickets: number[] = [];
  private next = 0;
  /** Bytes of arrays that may still be made for these tickets. */
  private left = 0;
  /** A new array, whose pages before byte `at` are written. */
  private pages: Uint8Array | undefined;
  private at = 0;
  /** The new array where it is for the pool, which gets an array only when all pages are written. */
  private stocking: Operand | undefined;
  readonly pool: ArrayPool;
  private readonly task: EndOfTask;

  constructor(
    private readonly environment: Environment,
    private readonly pending: PendingCalls,
    /** Batches in flight. */
    private readonly flights: () => number,
  ) {
    this.pool = new ArrayPool(environment);
    // Never in the task that sends: at its end the browser hands commands to the GPU.
    this.task = new EndOfTask(environment, () => this.step());
  }

  /** The queued calls were sent. */
  sent(): void {
    const { pending } = this;
    if (pending.size === 0 || this.flights() === 0) return;
    if (this.next === this.tickets.length) {
      this.drop();
      this.pool.expect();
    }
    this.left = MOST_BYTES;
    if (pending.large.length === 0) return;
    this.tickets =
      this.next === this.tickets.length
        ? pending.large
        : this.tickets.concat(pending.large);
    pending.large = [];
    this.task.post();
  }

  /** Results are about to be filled. Invariant: no page of these is written afterwards. */
  returning(): void {
    this.finish();
  }

  /** Gives a call that is about to be answered an array from the pool, if it has none. */
  supply(call: Call): void {
    const bytes = wantedBy(call);
    if (bytes > 0)
      call.array = this.pool.take(call.operands.method.gives, bytes);
  }

  /** Results were filled. */
  returned(): void {
    if (this.pool.isWanted) this.task.post();
  }

  /** Makes no more arrays. */
  dispose(): void {
    this.stocking = undefined;
    this.task.close();
    this.pool.clear();
  }

  private step(): void {
    const isIdle = this.flights() === 0;
    if (isIdle) this.drop();
    const until = this.environment.now() + TASK_MS;
    do {
      for (let n = 0; n < AT_ONCE; n += 1) {
        if (this.pages !== undefined) this.write(this.pages);
        else if (this.next < this.tickets.length) this.make();
        else if (!isIdle || !this.restock()) return;
      }
    } while (this.environment.now() < until);
    this.task.post();
  }

  private write(pages: Uint8Array): void {
    pages[this.at] = 0;
    this.at += PAGE_BYTES;
    if (this.at >= pages.length) this.finish();
  }

  // Writes no more pages; an array for the pool goes there.
  private finish(): void {
    const { stocking } = this;
    this.pages = undefined;
    this.stocking = undefined;
    if (stocking !== undefined) this.pool.put(stocking);
  }

  // Makes the array of the next pending call that wants one.
  private make(): void {
    const call = this.pending.get(this.tickets[this.next]);
    this.next += 1;
    if (call === undefined) return;
    const bytes = wantedBy(call);
    if (bytes === 0 || bytes > this.left) return;
    this.left -= bytes;
    call.array = this.pool.take(call.operands.method.gives, bytes);
    if (call.array !== undefined) return;
    try {
      call.array = call.operands.array(bytes / 4, call.terms);
      this.begin(call.array);
    } catch {
      // There is no memory now. Answers try again, and say so if there is none then.
      this.drop();
    }
  }

  private drop(): void {
    this.tickets = [];
    this.next = 0;
  }

  // Makes one array for the next batch; false when the pool has enough.
  private restock(): boolean {
    const array = this.pool.make();
    if (array === undefined) return false;
    this.stocking = array;
    this.begin(array);
    if (this.pages === undefined) this.finish();
    return true;
  }

  private begin({ buffer, byteLength }: Uint8Array | Float32Array): void {
    if (byteLength <= PAGE_BYTES) return;
    this.pages = new Uint8Array(buffer);
    this.at = 0;
  }
}

/** Bytes of the array that a call's answer still needs; 0 where that array is cheap. */
function wantedBy({ operands, elements, array, terms }: Call): number {
  const bytes = operands.method.gives === "float32" ? elements * 4 : elements;
  if (bytes <= CHEAP_BYTES || array !== undefined) return 0;
  return terms !== undefined && terms.into !== undefined ? 0 : bytes;
}
