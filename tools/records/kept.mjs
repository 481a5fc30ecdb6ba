// The kept records that measured one of the five rows that the bench page begins with, small
// enough for a page: medians by workload and system.
//
// The page draws them beside what it measures. Nothing is compared here.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { machineOf } from "./machines.mjs";

const STORIES = new URL(
  "../../www/bench/stories/stories.json",
  import.meta.url,
);

/** The rows, with the workload and the systems of each. */
export const { stories, names } = JSON.parse(readFileSync(STORIES, "utf8"));

/** Those in `folder`, the one that measured the most first, of equals the newest. */
export function keptRecords(folder) {
  const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return files
    .map((file) => [file, JSON.parse(readFileSync(join(folder, file), "utf8"))])
    .map(([file, record]) => ({ file, record, medians: mediansOf(record) }))
    .filter(({ medians }) => Object.keys(medians).length > 1)
    .map(kept)
    .sort((a, b) => count(b) - count(a) || (a.name < b.name ? 1 : -1));
}

function kept({ file, record, medians }) {
  const { runsIn, version = "" } = machineOf(record);
  return {
    name: file.replace(/\.json$/, ""),
    adapter: record.machine ?? record.adapter ?? "",
    browser: `${runsIn} ${version.split(".")[0]}`.trim(),
    medians,
  };
}

/** Of the five rows, and of the systems that each shows. */
function mediansOf({ browser, rows }) {
  // Native records have the same names for other work.
  if (browser === undefined || !Array.isArray(rows)) return {};
  const found = stories.map(({ workload, systems }) => {
    const own = rows.filter(
      (row) =>
        row.workload === workload &&
        systems.includes(row.system) &&
        row.median > 0,
    );
    const medians = own.map(({ system, median }) => [
      system,
      Number(median.toPrecision(3)),
    ]);
    return [workload, Object.fromEntries(medians)];
  });
  return Object.fromEntries(
    found.filter(([, medians]) => Object.keys(medians).length > 1),
  );
}

const count = ({ medians }) =>
  Object.values(medians).reduce((sum, of) => sum + Object.keys(of).length, 0);
