// Tells the tickets of a measured batch as the page numbers them.
//
// Both count in the order of calls, so a span of the core's is a span of the page's.

import type { CoreFacts } from "../core/core.js";

/** Calls that are remembered. */
const MOST = 2 ** 17;

/** The calls that were made while batches are measured. */
export class MeasuredTickets {
  private calls: { readonly core: number; readonly page: number }[] = [];

  /** A call was entered. */
  add(core: number, page: number): void {
    this.calls.push({ core, page });
    if (this.calls.length > MOST) this.calls = this.calls.slice(MOST / 2);
  }

  /** Facts with the tickets of the page; 0, which no call has, where none of its calls is in the batch. */
  ofPage(facts: CoreFacts): CoreFacts {
    const { calls } = this;
    const span = (facts.last - facts.first) >>> 0;
    const isIn = ({ core }: { core: number }) =>
      (core - facts.first) >>> 0 <= span;
    const own = calls.filter(isIn);
    const [first = 0, last = 0] = [own[0]?.page, own.at(-1)?.page];
    return { ...facts, first, last };
  }
}
