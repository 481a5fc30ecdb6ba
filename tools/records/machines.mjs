// What kind of machine a record was made on, by its own fields.
//
// Two records are of one kind when they ran on the same adapter, both natively or both in
// one browser, with as many processors. Versions of browsers and drivers are not part of
// the kind: a row that a new one slows down is told, with both versions. The name of a
// record's file says nothing here.

import { isSoftware } from "./rows.mjs";

/** The kind, what it is called, and which versions were used. */
export function machineOf(record) {
  const { adapter = "no adapter", machine, browser, driver, cores } = record;
  const [, name, version] =
    /(Chrome|Firefox)\/([\d.]+)/.exec(browser ?? "") ?? [];
  const runsIn = browser === undefined ? "native" : (name ?? browser);
  return {
    // A browser may tell no more of a GPU than who made it; whoever kept the record may.
    adapter: (machine ?? adapter).toLowerCase(),
    runsIn,
    cores,
    software: isSoftware(record),
    version: version ?? driver,
  };
}

/** Records that do not tell their processors may be of any number. */
export function isSameKind(a, b) {
  const unknown = a.cores === undefined || b.cores === undefined;
  return (
    a.adapter === b.adapter &&
    a.runsIn === b.runsIn &&
    (unknown || a.cores === b.cores)
  );
}

/** For a person. */
export function described({ adapter, runsIn, cores, software }) {
  return (
    `${adapter}, ${runsIn}` +
    (cores === undefined ? "" : `, ${cores} cores`) +
    (software ? "; software: ratios to one batch by hand" : "")
  );
}
