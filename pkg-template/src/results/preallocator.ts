// Makes the arrays of results before there are results.
//
// A new array costs several times what is copied into it: its memory must be found,
// and the pages of a large one are given only when they are first written. The main
// thread is idle between a batch and its answers, so arrays are made then, and the
// answers only fill them. What the wait was too short for is made after the batch,
// for the next one: all of it where the processor answers, which leaves no wait. Each
// array is handed out once; no call is answered here.

import type { Call } from "../calls/call.js";
import { ArrayPool } from "../memory/array-pool.js";
import type { Operand } from "../memory/arrays.js";
import { EndOfTask, type Environment } from "../platform/environment.js";
import type { PendingCalls } from "../queue/pending-calls.js";

/** A task takes about so long, in milliseconds: nudges and the page run in between. */
const TASK_MS = 0.25;
/** Arrays and pages made between two looks at the clock. */
const AT_ONCE = 16;
/** Up to so many bytes lie on the engine's own heap, which is as cheap as copying. */
const CHEAP_BYTES = 64;
/** Bytes made for what one flush sent. */
const MOST_BYTES = 2 ** 24;
/** Of a machine with larger ones, a page is written more than once. */
const PAGE_BYTES = 4096;

/** The results of one session, before they are there. */
export class Preallocator {
  /** The tickets that were sent and may want arrays, and which of them is next. */
  private tickets: number[] = [];
  private next = 0;
  /** Bytes that may still be made for them. */
  private left = 0;
  /** A new array, of which the pages before `at` are written. */
  private pages: Uint8Array | undefined;
  private at = 0;
  /** The same array where it is for the next batch: nobody has it while it is written. */
  private stocking: Operand | undefined;
  readonly pool: ArrayPool;
  private readonly task: EndOfTask;

  constructor(
    private readonly environment: Environment,
    private readonly pending: PendingCalls,
    /** Batches on their way. */
    private readonly flights: () => number,
  ) {
    this.pool = new ArrayPool(environment);
    // Not in the task that sends: at its end the browser hands the GPU its commands.
    this.task = new EndOfTask(environment, () => this.step());
  }

  /** What was queued has been sent. */
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

  /** Results are about to be filled. Invariant: no page of theirs is written afterwards. */
  returning(): void {
    this.finish();
  }

  /** Gives a call whose answer is here an array that lies ready, where it has none. */
  supply(call: Call): void {
    const bytes = wantedBy(call);
    if (bytes > 0)
      call.array = this.pool.take(call.operands.method.gives, bytes);
  }

  /** They were filled. */
  returned(): void {
    if (this.pool.isWanted) this.task.post();
  }

  /** Stops, whatever is on its way. */
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

  // Writes no more pages; whom the array is for may have it.
  private finish(): void {
    const { stocking } = this;
    this.pages = undefined;
    this.stocking = undefined;
    if (stocking !== undefined) this.pool.put(stocking);
  }

  // The array of the next call that is on its way.
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
      // No memory now. Whether there is some for the answer, the answer will show.
      this.drop();
    }
  }

  private drop(): void {
    this.tickets = [];
    this.next = 0;
  }

  // One array for the next batch; false when there are enough.
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

/** Bytes of the array that a call's answer needs and nobody made; 0 for one that is cheap. */
function wantedBy({ operands, elements, array, terms }: Call): number {
  const bytes = operands.method.gives === "float32" ? elements * 4 : elements;
  if (bytes <= CHEAP_BYTES || array !== undefined) return 0;
  return terms !== undefined && terms.into !== undefined ? 0 : bytes;
}
