// Launches the one browser of the demo and the tests: Chromium, headless, with WebGPU.
//
// Its switches stand in webdriver.json, because wasm-pack reads them from there:
//   no-sandbox                      CI and containers run as root
//   enable-unsafe-webgpu, use-webgpu-adapter=swiftshader
//                                   WebGPU without a GPU, in software
//   disable-domain-blocking-…, disable-gpu-process-crash-limit
//                                   otherwise a page gets no adapter after two losses
//   disable-dev-shm-usage           containers have a small /dev/shm
//   the rest                        nothing but the page uses the network
//
// CHROME and CHROMEDRIVER name other programs than the system's.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import puppeteer from "puppeteer-core";

const common = JSON.parse(
  readFileSync(new URL("../webdriver.json", import.meta.url), "utf8"),
)["goog:chromeOptions"].args;

/** Starts the browser, with more switches if given. Close what comes back. */
export function launch({ switches = [], ...options } = {}) {
  return puppeteer.launch({
    executablePath: chrome(),
    args: [...common, ...switches],
    // SwiftShader compiles and computes on the CPU; a protocol call may wait for it.
    protocolTimeout: 300_000,
    ...options,
  });
}

/** Opens a page that tells everything it complains of to `report`. */
export async function openPage(browser, report = console.error) {
  const page = await browser.newPage();
  page.on("pageerror", (error) => report(`page: ${error.stack ?? error}`));
  page.on("console", (message) => {
    if (message.type() === "error") report(`page: ${message.text()}`);
  });
  return page;
}

/** The WebDriver that wasm-pack drives the browser by. */
export const chromedriver = () => find("CHROMEDRIVER", ["chromedriver"]);

const chrome = () => find("CHROME", ["chromium", "google-chrome"]);

function find(variable, names) {
  if (process.env[variable]) return process.env[variable];
  for (const name of names) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {
      // Not on PATH: the next name may be.
    }
  }
  throw new Error(`no ${names.join(" or ")} on PATH; set ${variable}`);
}
