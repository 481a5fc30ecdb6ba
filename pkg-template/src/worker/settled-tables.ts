// The answers of a chunk as settle tables. A table has one message at most, so calls with
// different errors have tables of their own; their order stays.

import { CODES } from "../checks/errors.js";
import type { Failure, Settled } from "./protocol.js";

/** Answers that have one error, or none. */
export interface SettleTable {
  /** As `Settle` describes it, with the status that the error's code has. */
  readonly table: Uint32Array;
  readonly failure: Failure | undefined;
  /** Whether no more tables of the chunk follow. */
  readonly isEnd: boolean;
}

/** The tables of a chunk, one at least. */
export function* tablesOf({ table, errors }: Settled): Generator<SettleTable> {
  let from = 0;
  do {
    const error = table[from + 3];
    let end = from;
    while (end < table.length && table[end + 3] === error) end += 4;
    const own = table.slice(from, end);
    const failure = error > 0 ? errors[error - 1] : undefined;
    const status = failure === undefined ? 0 : CODES.indexOf(failure.code) + 1;
    for (let at = 3; at < own.length; at += 4) own[at] = status;
    yield { table: own, failure, isEnd: end === table.length };
    from = end;
  } while (from < table.length);
}
