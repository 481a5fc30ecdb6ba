// A record of the bench page as Markdown: one table of times, one of what they are made of.

/** The whole text. */
export function report(result) {
  const { date, adapter, machine = adapter, software, ...rest } = result;
  const { browser, cores, seconds, load } = rest;
  const version = /(?:Chrome|Firefox)\/[\d.]+/.exec(browser)?.[0] ?? browser;
  const parts = [
    `# ${machine}, ${date.slice(0, 10)}`,
    `${version.replace("/", " ")}, ${cores} cores, ${seconds} s in all` +
      (load === undefined ? ". " : `, load ${digits(load)} before it began. `) +
      "Medians, in milliseconds unless a row says otherwise; `×` is the time " +
      `over that of ${compared(result.workloads)}; in parentheses, runs where there were fewer than 15.` +
      (result.rows.some(({ rounds }) => rounds)
        ? " Of rounds that systems took turns for, the one in the middle."
        : "") +
      (software
        ? " Software adapter: only ratios to one batch by hand count."
        : ""),
    markdown(times(result)),
    ...tails(result),
    ...inRounds(result),
    ...notes(result),
    "## What times are made of",
    ...result.workloads.flatMap((workload) => made(result, workload)),
    "## What was measured",
    list(result.workloads.map(({ name, about }) => [name, about])),
    list(Object.entries(result.systems)),
  ];
  return `${parts.join("\n\n")}\n`;
}

/** A workload a row, a system a column. */
function times({ workloads, systems, rows }) {
  const names = Object.keys(systems);
  const cell = (workload, system) => {
    const row = rows.find(
      (row) => row.workload === workload && row.system === system,
    );
    if (row === undefined) return "";
    if (row.problem !== undefined) return row.problem;
    const few = row.runs < 15 ? ` (${row.runs})` : "";
    const ratio =
      row.ratio === undefined || row.ratio === 1
        ? ""
        : ` × ${digits(row.ratio)}`;
    return `${digits(row.median)}${ratio}${few}`;
  };
  return [
    ["workload", ...names],
    ...workloads.map(({ name, unit }) => [
      unit ? `${name}, ${unit}` : name,
      ...names.map((system) => cell(name, system)),
    ]),
  ];
}

/** With what ratios compare, by the words of the workloads. */
function compared(workloads) {
  const all = workloads.map(({ compared }) => compared ?? "`one-batch`");
  return [...new Set(all)].join(" or ");
}

/** What one call in a hundred took longer than, where single calls were timed. */
function tails({ workloads, systems, rows }) {
  const names = Object.keys(systems);
  const own = workloads.filter(({ name }) =>
    rows.some(({ workload, p99 }) => workload === name && p99 !== undefined),
  );
  if (own.length === 0) return [];
  const cell = (workload, system) => {
    const { p99, p99Ratio } =
      rows.find((row) => row.workload === workload && row.system === system) ??
      {};
    if (p99 === undefined) return "";
    const ratio =
      p99Ratio === undefined || p99Ratio === 1 ? "" : ` × ${digits(p99Ratio)}`;
    return `${digits(p99)}${ratio}`;
  };
  const table = [
    ["99 of 100 below", ...names],
    ...own.map(({ name }) => [
      name,
      ...names.map((system) => cell(name, system)),
    ]),
  ];
  return ["## Tails", markdown(table)];
}

/** What is to be known of some rows. */
function notes({ rows }) {
  const own = rows.filter(({ note }) => note !== undefined);
  if (own.length === 0) return [];
  const lines = own.map(({ workload, system, note }) => [
    `${workload}, ${system}`,
    note,
  ]);
  return ["## Notes", list(lines)];
}

/** The medians of each round. */
function inRounds({ rows }) {
  const own = rows.filter(({ rounds }) => rounds);
  if (own.length === 0) return [];
  const most = Math.max(...own.map(({ rounds }) => rounds.length));
  const numbers = Array.from({ length: most }, (_, at) => `${at + 1}`);
  const table = [
    ["round", "system", ...numbers],
    ...own.map(({ workload, system, rounds }) => [
      workload,
      system,
      ...numbers.map((_, at) => (at in rounds ? digits(rounds[at]) : "")),
    ]),
  ];
  return ["## Round by round", markdown(table)];
}

function made({ rows }, { name }) {
  const own = rows.filter((row) => row.workload === name && row.parts);
  if (own.length === 0) return [];
  const names = [...new Set(own.flatMap(({ parts }) => Object.keys(parts)))];
  const table = [
    [name, ...names],
    ...own.map(({ system, parts }) => [
      system,
      ...names.map((part) => (part in parts ? digits(parts[part]) : "")),
    ]),
  ];
  return [markdown(table)];
}

/** Columns are aligned, so that it reads as a text too. */
function markdown([head, ...rows]) {
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((row) => row[column].length)),
  );
  const line = (cells) =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join(" | ")} |`;
  const rule = widths.map((width, i) =>
    i === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`,
  );
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}

const list = (entries) =>
  entries.map(([name, about]) => `- \`${name}\`: ${about}`).join("\n");

function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size < 0.1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0);
}
