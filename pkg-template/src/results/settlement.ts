// Answers the calls of a batch, or of one chunk of it, from the core's settle table.
//
// Each entry of the table names a ticket, whose call gets a result or an error of its
// own. What answers mean for the queue and the clocks, the session decides.

import { FramebatchError } from "../checks/errors.js";
import { FRAGMENT } from "../core/core.js";
import { Results } from "../memory/results.js";
import type { Memory } from "../memory/views.js";
import type { Tickets } from "../queue/tickets.js";
import { collect, deliver, refuse } from "./answer.js";
import type { Preallocator } from "./preallocator.js";

/** What `Settle` receives of a table. */
export interface Settlement {
  readonly table: number;
  readonly count: number;
  readonly source: ArrayBuffer | null;
  readonly message: string | undefined;
}

/** Answers every call that the table completes, in the table's order. */
export function settle(
  tickets: Tickets,
  preallocator: Preallocator,
  { table, count, source, message }: Settlement,
): void {
  const { arena } = tickets;
  const results = new Results(
    source === null ? arena.memory : { buffer: source },
  );
  const end = table + count * 4;
  for (let at = table; at < end; at += 4) {
    // Each entry is read before its call is taken: a call that gives up what it holds
    // enters the core, whose memory may grow.
    const { words } = arena;
    const status = words[at + 3];
    if (status === FRAGMENT) {
      addFragment(tickets, results, words, at);
      at += 4;
      continue;
    }
    const offset = words[at + 1];
    const length = words[at + 2];
    const call = tickets.takeAnswered(words[at]);
    if (call === undefined) continue;
    if (status !== 0) {
      refuse(call, status, message);
      continue;
    }
    preallocator.supply(call);
    deliver(call, results, offset, length);
  }
}

// The call is answered with the last fragment of its result, or once one fails.
function addFragment(
  tickets: Tickets,
  results: Results,
  words: Uint32Array,
  at: number,
): void {
  const call = tickets.pending.get(words[at]);
  if (call === undefined) return;
  const total = words[at + 5];
  const outcome = collect(call, results, {
    offset: words[at + 1],
    words: words[at + 2],
    at: words[at + 4],
    total,
  });
  if (outcome === undefined) return;
  tickets.take(call.ticket);
  if (outcome instanceof FramebatchError) call.reject(outcome);
  else if (call.operands.isAnswer(total)) call.resolve(outcome);
  else deliver(call, new Results(outcome as Memory), 0, total);
}
