// One app of the matrix: a folder with the package and an environment's own packages installed,
// the commands that run in it, the servers it starts and the pages it opens.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { openPage } from "../../tools/browser.mjs";

const run = promisify(execFile);
/** A first build of some environments compiles their own tools. */
const PATIENCE_MS = 300_000;
const QUIET = {
  NO_COLOR: "1",
  NEXT_TELEMETRY_DISABLED: "1",
  NG_CLI_ANALYTICS: "false",
  WRANGLER_SEND_METRICS: "false",
  DO_NOT_TRACK: "1",
};

export class App {
  #servers = [];

  /** `shared` has the browser, the packed package and the path of a newer Node. */
  constructor(cwd, shared) {
    this.cwd = cwd;
    this.shared = shared;
  }

  /** Writes the app's files, and installs its packages. */
  async make({ files = {}, packages = [], type = "module", manifest = {} }) {
    await mkdir(this.cwd, { recursive: true });
    const name = "framebatch-matrix-app";
    const json = { name, private: true, type, ...manifest };
    await this.write({ "package.json": JSON.stringify(json), ...files });
    for (const name of ["ask.js", "answers.js"]) {
      await cp(`tests/matrix/${name}`, join(this.cwd, name));
    }
    await this.exec("npm", [
      ...["install", "--no-audit", "--no-fund", "--prefer-offline"],
      ...["--legacy-peer-deps", this.shared.tarball, ...packages],
    ]);
  }

  async write(files) {
    for (const [name, text] of Object.entries(files)) {
      const path = join(this.cwd, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text);
    }
  }

  read(name) {
    return readFile(join(this.cwd, name), "utf8");
  }

  /** Runs a command to its end; what it printed. A program of the app's goes before others. */
  async exec(command, args, { env = {}, timeout = PATIENCE_MS } = {}) {
    try {
      const { stdout } = await run(command, args, {
        cwd: this.cwd,
        timeout,
        maxBuffer: 1 << 26,
        env: this.#env(env),
      });
      return stdout;
    } catch (error) {
      const said = `${error.stdout ?? ""}\n${error.stderr ?? ""}`.slice(-3000);
      throw new Error(
        `${command} ${args.join(" ")}: ${error.message}\n${said}`,
      );
    }
  }

  /** Starts a server of the environment's own; the address that it prints. */
  async start(command, args, { env = {} } = {}) {
    const child = spawn(command, args, {
      cwd: this.cwd,
      env: this.#env(env),
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#servers.push(child);
    let said = "";
    const address = new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`no address within time: ${said}`)),
        PATIENCE_MS,
      );
      const hear = (text) => {
        said += text;
        const [found] =
          /http:\/\/(localhost|127\.0\.0\.1):\d+/.exec(said) ?? [];
        if (found === undefined) return;
        clearTimeout(timer);
        resolve(found.replace("localhost", "127.0.0.1"));
      };
      child.stdout.setEncoding("utf8").on("data", hear);
      child.stderr.setEncoding("utf8").on("data", hear);
      child.once("exit", (code) => {
        clearTimeout(timer);
        reject(new Error(`${command} ended with ${code}: ${said}`));
      });
    });
    return address;
  }

  /** Ends the servers that were started. */
  async stop() {
    for (const child of this.#servers.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, "exit");
      process.kill(-child.pid, "SIGKILL");
      await ended;
    }
  }

  /** Opens a page; what it found, and the kilobytes (gzip) of the scripts and files it loaded. */
  async look(address, { browser = this.shared.browser } = {}) {
    const complaints = [];
    const page = await openPage(browser, (text) => complaints.push(text));
    const bodies = [];
    page.on("response", (response) => {
      if (/\.(wasm|[cm]?js)\b/.test(response.url())) {
        bodies.push(response.buffer().catch(() => Buffer.alloc(0)));
      }
    });
    try {
      await page.goto(address);
      const found = await page
        .waitForFunction(() => document.body?.dataset.found, {
          timeout: 60_000,
        })
        .then((handle) => handle.jsonValue())
        .catch(() => {
          throw new Error(`${address}: no answers; ${complaints.join("; ")}`);
        });
      const bytes = (await Promise.all(bodies)).map((b) => gzipSync(b).length);
      const sum = bytes.reduce((sum, length) => sum + length, 0);
      return { ...JSON.parse(found), kilobytes: Math.round(sum / 1000) };
    } finally {
      await page.close();
    }
  }

  #env(env) {
    const paths = [
      join(this.cwd, "node_modules", ".bin"),
      this.shared.newerNode,
    ];
    const PATH = [...paths.filter(Boolean), process.env.PATH].join(":");
    return { ...process.env, ...QUIET, ...env, PATH };
  }
}
