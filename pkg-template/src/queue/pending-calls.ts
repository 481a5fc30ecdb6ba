// The calls that wait for an answer, found by ticket.
//
// Tickets only grow (and wrap at 2^32), so calls lie in a ring of slots and not in a
// map: finding a ticket costs one index. No call is answered here.

import type { Call } from "../calls/call.js";

/** Up to so many elements lie on the engine's own heap, which is as cheap as copying. */
const CHEAP_ELEMENTS = 16;

/** Slots of the smallest ring. */
const SMALLEST = 64;

/**
 * The entered calls, in a ring that grows to the widest span of open tickets, and
 * halves whenever it runs empty after a time when a quarter of it was enough.
 */
export class PendingCalls {
  /** Calls in the ring. */
  size = 0;
  /** The oldest ticket in the ring. */
  oldest = 0;
  /** Tickets of added calls whose results are worth an array made ahead. */
  large: number[] = [];
  private slots = ringOf(SMALLEST);
  /** The widest span since the ring was last empty. */
  private widest = 0;

  /** Adds a call under its ticket, which is newer than all others. */
  put(call: Call): void {
    const ticket = call.ticket;
    if (this.size === 0) this.oldest = ticket;
    if (call.elements > CHEAP_ELEMENTS) this.large.push(ticket);
    const span = ((ticket - this.oldest) >>> 0) + 1;
    if (span > this.widest) {
      this.widest = span;
      if (span > this.slots.length) this.grow(span);
    }
    this.slots[ticket & (this.slots.length - 1)] = call;
    this.size += 1;
  }

  /** The call of this ticket, if it is pending. */
  get(ticket: number): Call | undefined {
    const call = this.slots[ticket & (this.slots.length - 1)];
    return call?.ticket === ticket ? call : undefined;
  }

  /** Removes and returns the call of this ticket, if it is pending. */
  take(ticket: number): Call | undefined {
    const slots = this.slots;
    const mask = slots.length - 1;
    const call = slots[ticket & mask];
    if (call === undefined || call.ticket !== ticket) return undefined;
    slots[ticket & mask] = undefined;
    this.size -= 1;
    if (this.size === 0) this.shrink();
    else if (ticket === this.oldest) {
      let next = ticket + 1;
      while (slots[next & mask] === undefined) next += 1;
      this.oldest = next >>> 0;
    }
    return call;
  }

  /** Removes every call and returns them, the oldest first. */
  drain(): Call[] {
    const calls: Call[] = [];
    const mask = this.slots.length - 1;
    for (let ticket = this.oldest; this.size > 0; ticket += 1) {
      const call = this.slots[ticket & mask];
      if (call === undefined) continue;
      this.slots[ticket & mask] = undefined;
      this.size -= 1;
      calls.push(call);
    }
    return calls;
  }

  private grow(span: number): void {
    let length = this.slots.length;
    while (length < span) length *= 2;
    const slots = ringOf(length);
    for (const call of this.slots) {
      if (call !== undefined) slots[call.ticket & (length - 1)] = call;
    }
    this.slots = slots;
  }

  private shrink(): void {
    const { length } = this.slots;
    if (length > SMALLEST && this.widest <= length / 4) {
      this.slots = ringOf(length / 2);
    }
    this.widest = 0;
    if (this.large.length > 0) this.large = [];
  }
}

function ringOf(length: number): (Call | undefined)[] {
  return new Array(length).fill(undefined);
}
