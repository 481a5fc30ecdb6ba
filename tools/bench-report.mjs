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
      "over that of `one-batch`; in parentheses, runs where there were fewer than 15." +
      (result.rows.some(({ rounds }) => rounds)
        ? " Of rounds that systems took turns for, the one in the middle."
        : "") +
      (software
        ? " Software adapter: only ratios to one batch by hand count."
        : ""),
    markdown(times(result)),
    ...inRounds(result),
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
