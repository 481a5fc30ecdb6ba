// The records that are kept, and which of them measured a row before.
//
// Records hold some rows or all of them, so that each row has a history of its own: its
// measurements on one kind of machine, by date. Nothing is compared here.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parseNotes } from "./comparison.mjs";
import { HELD_SINCE } from "./limits.mjs";
import { isSameKind, machineOf } from "./machines.mjs";
import { rowsOf } from "./rows.mjs";

/** One record with its rows; undefined where the file is no finished record of the bench. */
export function load(file) {
  const record = JSON.parse(readFileSync(file, "utf8"));
  const found = rowsOf(record);
  if (found === undefined || record.quick || record.cancelled) return undefined;
  const notesFile = file.replace(/\.json$/, ".notes.md");
  const notes = existsSync(notesFile) ? readFileSync(notesFile, "utf8") : "";
  // The first native records have their day in the name alone.
  const date = record.date ?? basename(file).slice(0, 10);
  return {
    ...{ file, date, found },
    machine: machineOf(record),
    isHeld: date >= HELD_SINCE,
    // Other work beside it slows its rows down, and not all of them alike.
    isBusy: record.load > record.cores,
    load: record.load,
    ...{ notesFile, notes: parseNotes(notes) },
  };
}

/** All records of a folder, the oldest first, and the files that hold none. */
export function history(folder) {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .map((name) => join(folder, name));
  const loaded = files.map((file) => [file, load(file)]);
  return {
    records: loaded
      .flatMap(([, record]) => record ?? [])
      .sort((a, b) => (a.date < b.date ? -1 : a.date > b.date ? 1 : 0)),
    others: loaded
      .filter(([, record]) => record === undefined)
      .map(([file]) => file),
  };
}

/** The newest measurement of a row before this record, on the same kind of machine at rest. */
export function earlier(records, { file, date, machine }) {
  const before = records.filter(
    (record) =>
      record.file !== file &&
      record.date < date &&
      !record.isBusy &&
      isSameKind(record.machine, machine),
  );
  return (name) => {
    const has = ({ found }) => found.rows.some((row) => row.name === name);
    const record = before.findLast(has);
    const row = record?.found.rows.find((row) => row.name === name);
    return row && { ...row, from: record };
  };
}

/**
 * The record without the rows that a later one of its kind measured again: each row is
 * held where it was measured last. Undefined where no row is left.
 */
export function newestPart(records, record) {
  const later = records.filter(
    ({ file, date, isBusy, machine }) =>
      file !== record.file &&
      date > record.date &&
      !isBusy &&
      isSameKind(machine, record.machine),
  );
  const again = new Set(
    later.flatMap(({ found: { rows, failed, unheld } }) =>
      [...rows, ...failed, ...unheld].map(({ name }) => name),
    ),
  );
  const own = ({ name }) => !again.has(name);
  const found = Object.fromEntries(
    Object.entries(record.found).map(([list, rows]) => [
      list,
      rows.filter(own),
    ]),
  );
  const notes = new Map([...record.notes].filter(([name]) => !again.has(name)));
  const isEmpty = Object.values(found).every((rows) => rows.length === 0);
  return isEmpty && notes.size === 0 ? undefined : { ...record, found, notes };
}
