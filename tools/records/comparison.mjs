// Compares rows of the bench with earlier ones, and with what notes say of them.
//
// A row is slower when it lost more than its limit *and* more than twice the spread of its
// rounds, the wider one of both records'. It passes with a note that says why; a note for
// a row that is not slower is an error, so that notes stay true. No file is read here.

import { limitOf } from "./limits.mjs";

/** Verdicts that fail. */
const FAILING = ["slower", "failed", "stale note"];

/**
 * A line for each row: `{ name, verdict, … }`.
 *
 * `now` is what `rowsOf` finds in the new record. `before` gives the earlier row of a name,
 * or undefined. `notes` are reasons by row. The verdict is one of: faster, same, slower;
 * "within spread", of a row beyond its limit that its own rounds differ as much as; noted;
 * new; failed, without an answer; "not held", which cannot be compared; "stale note".
 */
export function compare({ now, before, notes = new Map() }) {
  const lines = [
    ...now.rows.map((row) => compareRow(row, before(row.name), notes)),
    ...now.failed.map(({ name, problem }) => ({
      ...{ name, verdict: "failed", why: problem },
    })),
    ...now.unheld.map(({ name, why }) => ({ name, verdict: "not held", why })),
  ];
  const slower = lines.filter(({ verdict }) => verdict === "noted");
  const explained = new Set(slower.map(({ name }) => name));
  const stale = [...notes.keys()].filter((name) => !explained.has(name));
  return [
    ...lines,
    ...stale.map((name) => ({
      ...{ name, verdict: "stale note", why: "the row is not slower" },
    })),
  ];
}

/** Whether the line is a reason to stop. */
export function isFailing({ verdict }) {
  return FAILING.includes(verdict);
}

function compareRow(now, before, notes) {
  const { name } = now;
  if (before === undefined) return { name, now, verdict: "new" };
  if (before.unit !== now.unit) {
    const why = `it was in ${before.unit}, and is in ${now.unit}`;
    return { name, now, verdict: "not held", why };
  }
  const change = slowdown(now, before);
  const limit = limitOf(name);
  const noise = 2 * Math.max(...[now, before].map(relativeSpread));
  const line = { name, now, before, change, limit, noise };
  if (Math.abs(change) <= limit) return { ...line, verdict: "same" };
  if (Math.abs(change) <= noise) return { ...line, verdict: "within spread" };
  if (change < 0) return { ...line, verdict: "faster" };
  const why = notes.get(name);
  return { ...line, verdict: why === undefined ? "slower" : "noted", why };
}

/** How much more time it takes, as a share of what it took. */
function slowdown(now, before) {
  const ratio = now.value / before.value;
  return (now.better === "lower" ? ratio : 1 / ratio) - 1;
}

/** A record that kept no spread leaves that to the other one. */
function relativeSpread({ spread = 0, value }) {
  return spread / value;
}

/** Reasons by row, of a file whose list has a line ``- `row`: reason`` for each. */
export function parseNotes(text) {
  const notes = new Map();
  for (const line of text.split("\n")) {
    if (!line.startsWith("-")) continue;
    const [, name, reason] = /^- `([^`]+)`: (\S.*)$/.exec(line) ?? [];
    if (reason === undefined) {
      throw new Error(`a note is "- \`row\`: reason", not "${line}"`);
    }
    if (notes.has(name)) throw new Error(`there are two notes on ${name}`);
    notes.set(name, reason);
  }
  return notes;
}
