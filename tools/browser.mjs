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
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
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

// A software adapter compiles and computes on the CPU; a protocol call may wait.
const protocolTimeout = 300_000;

/**
 * The browser; close what comes back. It is the one that runs at BROWSER_AT
 * (tools/with-browser.mjs), or one of its own where there is none, or where it needs other
 * options: the names in `loopback` lead to this machine, without being secure contexts,
 * `switches` are more of Chromium's.
 */
export async function launch({ loopback = [], switches = [] } = {}) {
  const running = process.env.BROWSER_AT;
  if (running && loopback.length + switches.length === 0) {
    try {
      return await connect(running);
    } catch (error) {
      console.error(`no browser at ${running}, one of its own: ${error}`);
    }
  }
  return start({ loopback, switches });
}

/** A browser that others started: what is closed are the pages that were opened here. */
async function connect(browserWSEndpoint) {
  const browser = await puppeteer.connect({
    browserWSEndpoint,
    protocol: BROWSER === "firefox" ? "webDriverBiDi" : "cdp",
    protocolTimeout,
  });
  const others = new Set(await browser.pages());
  browser.close = async () => {
    const pages = await browser.pages();
    await Promise.all(
      pages.filter((page) => !others.has(page)).map((page) => page.close()),
    );
    await browser.disconnect();
  };
  return browser;
}

/** Starts a browser for other processes, one after another: where it is, and what ends it. */
export async function startForOthers() {
  const browser = await start({ loopback: [], switches: [] });
  const at = browser.wsEndpoint();
  const child = browser.process();
  // Firefox has one session at a time.
  await browser.disconnect();
  const close = async () => {
    const ended = child.exitCode === null && once(child, "exit");
    child.kill();
    await ended;
    // The folder of its profile is left.
    await browser.close();
  };
  return { at, close };
}

async function start({ loopback, switches }) {
  const options = {
    ...OPTIONS[BROWSER]({ loopback, switches }),
    protocolTimeout,
    // From a cold disk and on busy cores it takes longer than puppeteer's 30 s.
    timeout: 120_000,
  };
  if (BROWSER === "firefox") return launchFirefox(options);
  return launchTwice(options);
}

async function launchTwice(options) {
  try {
    return await puppeteer.launch(options);
  } catch (error) {
    console.error(`the browser did not start, once more: ${error}`);
    return puppeteer.launch(options);
  }
}

/** Each browser has a profile of its own: a copy of one that Firefox has filled, which takes it three seconds. */
async function launchFirefox(options) {
  const userDataDir = mkdtempSync(join(tmpdir(), "framebatch-firefox-"));
  cpSync(await filledProfile(options), userDataDir, {
    recursive: true,
    // A link that says which process has the profile.
    filter: (path) => !path.endsWith("/lock"),
  });
  const browser = await launchTwice({ ...options, userDataDir });
  const close = browser.close.bind(browser);
  browser.close = async () => {
    await close();
    rmSync(userDataDir, { recursive: true, force: true });
  };
  return browser;
}

/** The folder of a profile that this very Firefox has filled; it is made where there is none. */
async function filledProfile(options) {
  const { mtimeMs } = statSync(options.executablePath);
  const target = fileURLToPath(new URL("../target/", import.meta.url));
  const kept = join(target, `firefox-profile-${Math.round(mtimeMs)}`);
  if (existsSync(kept)) return kept;
  const userDataDir = mkdtempSync(join(target, "firefox-"));
  await (await launchTwice({ ...options, userDataDir })).close();
  try {
    renameSync(userDataDir, kept);
  } catch (error) {
    // Another process was faster.
    rmSync(userDataDir, { recursive: true, force: true });
    if (!existsSync(kept)) throw error;
  }
  return kept;
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
