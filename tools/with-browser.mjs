// Runs a command beside one browser for all of its processes, which take turns.
//
//   node tools/with-browser.mjs node --test tests/e2e/queue.test.mjs
//
// `launch` of tools/browser.mjs finds it by BROWSER_AT. Its pages are told apart by the ports of
// their servers, which are origins of their own.

import { spawn } from "node:child_process";
import { startForOthers } from "./browser.mjs";

const [program, ...args] = process.argv.slice(2);
const browser = await startForOthers();
const child = spawn(program, args, {
  stdio: "inherit",
  env: { ...process.env, BROWSER_AT: browser.at },
});
process.exitCode = await new Promise((resolve, reject) => {
  child.on("error", reject);
  child.on("close", (code) => resolve(code ?? 1));
});
await browser.close();
