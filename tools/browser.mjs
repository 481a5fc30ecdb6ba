// Launches the browser of the demo and the tests, headless, with WebGPU.
//
// Chromium, unless BROWSER=firefox asks for Firefox. Nothing here goes beyond
// loopback. CHROME, CHROMEDRIVER and FIREFOX name other programs than the system's.
//
// Chromium's switches stand in webdriver.json, because wasm-pack reads them there:
//   no-sandbox                      CI and containers run as root
//   enable-unsafe-webgpu, use-webgpu-adapter=swiftshader
//                                   WebGPU without a GPU, in software
//   disable-domain-blocking-…, disable-gpu-process-crash-limit
//                                   otherwise a page gets no adapter after two losses
//   disable-dev-shm-usage           containers have a small /dev/shm
//   the rest                        nothing but the page uses the network

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import puppeteer from "puppeteer-core";

/** The browser that BROWSER asks for: "chromium" or "firefox". */
export const BROWSER = process.env.BROWSER ?? "chromium";

const SWITCHES = JSON.parse(
  readFileSync(new URL("../webdriver.json", import.meta.url), "utf8"),
)["goog:chromeOptions"].args;

const PREFERENCES = {
  // WebGPU on whatever Vulkan driver there is; lavapipe will do.
  "dom.webgpu.enabled": true,
  "gfx.webgpu.ignore-blocklist": true,
  "gfx.webgpu.force-enabled": true,
  // Nothing but the page uses the network.
  "network.captive-portal-service.enabled": false,
  "network.connectivity-service.enabled": false,
  "services.settings.server": "data:,",
};

const OPTIONS = {
  chromium: ({ loopback, switches }) => ({
    executablePath: find("CHROME", ["chromium", "google-chrome"]),
    args: [
      ...SWITCHES,
      ...switches,
      ...loopback.map((name) => `--host-resolver-rules=MAP ${name} 127.0.0.1`),
    ],
    // A page that one comes back to is kept as in anybody's browser.
    ignoreDefaultArgs: ["--disable-back-forward-cache"],
  }),
  firefox: ({ loopback }) => ({
    browser: "firefox",
    executablePath: find("FIREFOX", ["firefox-esr", "firefox"]),
    extraPrefsFirefox: {
      ...PREFERENCES,
      "network.dns.localDomains": loopback.join(),
    },
  }),
};

/**
 * Starts the browser; close what comes back. The names in `loopback` lead to this
 * machine, without being secure contexts. `switches` are more of Chromium's.
 */
export async function launch({ loopback = [], switches = [] } = {}) {
  const options = {
    ...OPTIONS[BROWSER]({ loopback, switches }),
    // A software adapter compiles and computes on the CPU; a protocol call may wait.
    protocolTimeout: 300_000,
    // From a cold disk and on busy cores it takes longer than puppeteer's 30 s.
    timeout: 120_000,
  };
  try {
    return await puppeteer.launch(options);
  } catch (error) {
    console.error(`the browser did not start, once more: ${error}`);
    return puppeteer.launch(options);
  }
}

/** Opens a page that tells everything it complains of to `report`. */
export async function openPage(browser, report = console.error) {
  const page = await browser.newPage();
  // Software adapters share the cores with everything else.
  page.setDefaultTimeout(120_000);
  page.on("pageerror", (error) => report(`page: ${error.stack ?? error}`));
  page.on("console", (message) => {
    if (message.type() === "error") report(`page: ${message.text()}`);
  });
  return page;
}

/** V8's switch for an old processor, whose WebAssembly has no vectors. */
export const WITHOUT_VECTORS = ["--no-enable-sse4-1"];

/** The WebDriver that wasm-pack drives the browser by. */
export const chromedriver = () => find("CHROMEDRIVER", ["chromedriver"]);

function find(variable, names) {
  if (process.env[variable]) return process.env[variable];
  for (const name of names) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {
      // This name is not on PATH: the next one may be.
    }
  }
  throw new Error(`no ${names.join(" or ")} on PATH; set ${variable}`);
}
