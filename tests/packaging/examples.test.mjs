// What documents hold of the code: every option and every error code is told, each example
// has an environment that runs it, and those of Node run here.
//
// Other examples are run by tests/e2e (docs, snippets, libraries) and by `cargo test --doc`.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

const run = promisify(execFile);
const read = (name) => readFileSync(name, "utf8");

const PAGES = [
  ...["README.md", "pkg-template/README.md"],
  ...readdirSync("docs")
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

/** The blocks of code of a page, each with its language. */
const blocks = (page) =>
  [...read(page).matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(
    ([, language, code]) => ({ page, language, code }),
  );
const ALL = PAGES.flatMap(blocks);

/** What runs each language; a picture in letters has none. */
const RUN_BY = {
  "": "nothing: no code",
  html: "here, and tests/e2e/snippets.test.mjs",
  js: "tests/e2e/docs.test.mjs",
  jsx: "tests/e2e/snippets.test.mjs and libraries.test.mjs",
  mjs: "here",
  rust: "cargo test --doc",
  sh: "here, as far as it needs no network",
  svelte: "tests/e2e/libraries.test.mjs",
  ts: "tests/e2e/docs.test.mjs, tests/databases",
  vue: "tests/e2e/libraries.test.mjs",
};

test("each example names an environment that runs it", () => {
  const unknown = ALL.filter(({ language }) => !(language in RUN_BY));
  assert.deepEqual(unknown, []);
  const withJsx = ALL.filter(({ language }) => language === "jsx");
  assert.deepEqual(
    withJsx.map(({ page }) => page),
    ["docs/libraries.md", "docs/react.md", "docs/start.md"],
  );
});

test("every page with Rust is compiled", () => {
  const library = read("src/lib.rs");
  const pages = new Set(
    ALL.filter(({ language }) => language === "rust").map(({ page }) => page),
  );
  const missing = [...pages].filter(
    (page) => !library.includes(`include_str!("../${page}")`),
  );
  assert.ok(pages.size > 5);
  assert.deepEqual(missing, []);
});

/** Commands that need a network, or a program that the page says to install. */
const KNOWN_COMMANDS = [
  /^npm create vite@latest my-app -- --template vanilla$/,
  /^npm install framebatch$/,
  /^npm run dev$/,
  /^cargo new my-app$/,
  /^cargo add framebatch$/,
  /^cd my-app$/,
  // Of Hugging Face's command, which needs a network.
  /^hf download \S+ --local-dir \S+$/,
  // Run by convert.test.mjs and convert-gguf.test.mjs, whose words follow.
  /^npx framebatch convert \S+ \S+( --gguf \S+)?$/,
];

test("commands are known, and those of make are there", () => {
  const makefile = read("Makefile");
  const commands = ALL.filter(({ language }) => language === "sh")
    .flatMap(({ code }) => code.trim().split("\n"))
    .map((line) => line.replace(/\s*#.*$/, ""))
    .filter((line) => line !== "");
  const unknown = commands.filter((command) => {
    const [, target] = /^make (\w+)$/.exec(command) ?? [];
    if (target) return !new RegExp(`^${target}:`, "m").test(makefile);
    return !KNOWN_COMMANDS.some((known) => known.test(command));
  });
  assert.ok(commands.length > 5);
  assert.deepEqual(unknown, []);
});

test("import maps name files of the package", () => {
  const maps = ALL.filter(({ language }) => language === "html").map(
    ({ code }) => /<script type="importmap">(.*?)<\/script>/s.exec(code)[1],
  );
  assert.ok(maps.length >= 3);
  for (const map of maps) {
    for (const path of Object.values(JSON.parse(map).imports)) {
      const file = path.replace(/^\.?\/node_modules\/framebatch/, "pkg");
      assert.ok(existsSync(file), path);
    }
  }
});

let folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "framebatch-examples-"));
  await mkdir(join(folder, "node_modules"));
  await symlink(resolve("pkg"), join(folder, "node_modules/framebatch"));
});
after(() => rm(folder, { recursive: true }));

const OF_NODE = ALL.filter(({ language }) => language === "mjs");
/** Needs a package with WebGPU: tests/matrix has it. */
const withDawn = ({ code }) => code.includes('from "webgpu"');

/** A test within a test would answer its runner in the runner's own words. */
const { NODE_TEST_CONTEXT: _, ...env } = process.env;

for (const [at, { page, code }] of OF_NODE.entries()) {
  if (withDawn({ code })) continue;
  test(`${page}: example ${at + 1} of Node`, async () => {
    const file = join(folder, `${at}.mjs`);
    await writeFile(file, code);
    const { stdout } = await run(process.execPath, [file], { env });
    const prints = [...code.matchAll(/console\.log.*; \/\/ (.*)$/gm)];
    if (code.includes("node:test")) assert.match(stdout, /^. pass [1-9]/m);
    else assert.equal(stdout.trim(), prints.map(([, text]) => text).join("\n"));
  });
}

test("what needs Dawn is run by the matrix", () => {
  assert.equal(OF_NODE.filter(withDawn).length, 1);
  const runtimes = read("tests/matrix/environments/runtimes.mjs");
  assert.match(runtimes, /from "webgpu"/);
});

/** The names of an interface's own members. */
function members(file, name) {
  const source = read(file);
  const body = new RegExp(`export interface ${name}\\b.*?^}`, "ms").exec(
    source,
  );
  assert.ok(body, `${file} has no ${name}`);
  return [...body[0].matchAll(/^  (\w+)\??:/gm)].map(([, member]) => member);
}

/** The public fields of a struct. */
function fields(file, name) {
  const body = new RegExp(`pub struct ${name} \\{.*?^\\}`, "ms").exec(
    read(file),
  );
  assert.ok(body, `${file} has no ${name}`);
  return [...body[0].matchAll(/^    pub (\w+):/gm)].map(([, field]) => field);
}

/** What stands in code in a column of the tables of a part of a page. */
function column(page, part, at) {
  const [, text] = read(page).split(`<!-- ${part} -->`);
  const [tables] = text.split("<!-- end of");
  const rows = tables
    .split("\n")
    .filter((line) => /^\| (?![-o]{3})/.test(line));
  return rows.flatMap((line) => {
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    const named = /^`([^`]+)`/.exec(cells[at + 1]);
    return named ? [named[1]] : [];
  });
}

const SRC = "pkg-template/src";
const sorted = (names) => [...names].sort();

test("every option of open and shared is told, in both faces", () => {
  const names = [
    ...members(`${SRC}/session/open-options.ts`, "OpenOptions"),
    ...members(`${SRC}/worker/index.ts`, "WorkerOptions"),
  ];
  assert.ok(names.length > 20);
  const page = "docs/configuration.md";
  assert.deepEqual(sorted(column(page, "options: open", 0)), sorted(names));

  const configs = fields("src/native/config.rs", "Config");
  assert.deepEqual(sorted(configs), [
    ...["adapter", "batch", "engine", "gpu", "stall_ms"],
  ]);
  const rust = [
    ...configs.filter((name) => name !== "batch" && name !== "gpu"),
    ...fields("src/batch/config.rs", "BatchConfig").map((x) => `batch.${x}`),
    ...fields("src/device/gpu/open.rs", "GpuOptions").map((x) => `gpu.${x}`),
  ];
  const told = column(page, "options: open", 1);
  // A preset is no field.
  assert.deepEqual(sorted(told), sorted([...rust, "Preset::…"]));
});

test("every option of calls is told", () => {
  const page = "docs/configuration.md";
  const names = members(`${SRC}/calls/call-options.ts`, "CallOptions");
  assert.deepEqual(sorted(column(page, "options: call", 0)), sorted(names));

  const text = read(page);
  const more = [
    ["calls/call-options.ts", "LerpOptions"],
    ["calls/call-options.ts", "GradientsOptions"],
    ["calls/call-options.ts", "ComputeOptions"],
    ["checks/storage-options.ts", "StorageOptions"],
    ["tensor/input.ts", "TensorOptions"],
    ["stream/stream.ts", "StreamOptions"],
    ["kernels/run-all.ts", "RunAllOptions"],
    ["metrics/profile.ts", "ProfileOptions"],
  ].flatMap(([file, name]) => members(`${SRC}/${file}`, name));
  assert.ok(more.length > 12);
  const missing = more.filter((name) => !text.includes(`| \`${name}\` `));
  assert.deepEqual(missing, []);
});

test("the presets are those of the core", () => {
  const source = read("src/batch/config.rs");
  const [, all] = /pub enum Preset \{(.*?)^\}/ms.exec(source);
  const presets = [...all.matchAll(/^    (\w+),$/gm)].map(([, name]) =>
    name.toLowerCase(),
  );
  const [, part] = read("docs/configuration.md").split("## Presets by use");
  const [table] = part.split("| use ");
  const told = [...table.matchAll(/^\| `(\w+)` /gm)].map(([, name]) => name);
  assert.deepEqual(told, presets);
});

test("every error code is told, with what to do", () => {
  const source = read(`${SRC}/checks/errors.ts`);
  const [, list] = /export const CODES = \[(.*?)\]/s.exec(source);
  const codes = [...list.matchAll(/"([\w-]+)"/g)].map(([, code]) => code);
  assert.ok(codes.length > 10);
  const [, text] = read("docs/troubleshooting.md").split("<!-- codes -->");
  const [table] = text.split("<!-- end of codes -->");
  const rows = [...table.matchAll(/^\| `([\w-]+)` +\|([^|]+)\|([^|]+)\|$/gm)];
  assert.deepEqual(sorted(rows.map(([, code]) => code)), sorted(codes));
  for (const [, code, meaning, advice] of rows) {
    assert.ok(meaning.trim().length > 10 && advice.trim().length > 10, code);
  }
  const reasons = read(`${SRC}/metrics/stats.ts`);
  const [, union] = /export type CpuReason =(.*?);/s.exec(reasons);
  for (const [, reason] of union.matchAll(/"([\w-]+)"/g)) {
    assert.match(text, new RegExp(`^\\| \`"${reason}"\` `, "m"));
  }
});
