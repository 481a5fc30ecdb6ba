// Opens sessions: a session of one's own, and the one that a page shares.
//
// Importing this file does nothing, so a server may import components that use sessions.
// What a session does is in `session.ts`.

import { FramebatchError, fromCore, isCoreFailure } from "../checks/errors.js";
import { clockFor } from "../clock/clock.js";
import { CompletionPoller } from "../clock/completion-polling.js";
import { isDevelopment, LonelyWarning } from "../clock/lonely-warning.js";
import { MainThreadBudget } from "../clock/main-thread-budget.js";
import { loadCore } from "../core/core-instance.js";
import { mark } from "../metrics/timeline.js";
import { nextTask, hostEnvironment } from "../platform/environment.js";
import { calibrationHost, Calibrator } from "./calibrator.js";
import { Calls } from "./calls.js";
import {
  checkOpenOptions,
  coreConfig,
  flushPolicy,
  type OpenOptions,
} from "./open-options.js";
import { Session } from "./session.js";

/**
 * Opens a session; resolves when its device is up.
 *
 * Rejects with a {@link FramebatchError}: `invalid-input` for an option that is
 * unknown or wrong, `unsupported`, `insecure-context` or `no-adapter` where
 * `engine: "gpu"` finds no GPU.
 *
 * @example
 * const gpu = await open({ engine: "auto" });
 * const halfway = await gpu.lerp(new Float32Array([0, 10]), new Float32Array([1, 20]), 0.5);
 * // Float32Array [0.5, 15]
 * await gpu.dispose();
 */
export async function open(options: OpenOptions = {}): Promise<Session> {
  const calls = begin("open", options);
  const session = new Session(calls);
  await session.ready;
  return session;
}

/**
 * The session that everything in a page shares, at once: calls wait until its
 * device is up. The first call's options count. If opening fails, the calls made
 * so far reject with the reason, and the next `shared()` starts anew.
 *
 * @example
 * const gpu = shared();
 * const turned = await gpu.slerp(new Float32Array([0, 0, 0, 1]), new Float32Array([0, 1, 0, 0]), 0.5);
 */
export function shared(options: OpenOptions = {}): Session {
  if (page === undefined || page.calls.ended !== undefined) {
    const calls = begin("shared", options);
    page = { calls, options, session: new Session(calls), warned: false };
  } else {
    compare(options, page);
  }
  return page.session;
}

/**
 * Whether this page can use a GPU. Sessions open without one too, on the CPU.
 *
 * @example
 * const gpu = await open({ engine: (await isSupported()) ? "gpu" : "cpu" });
 */
export async function isSupported(): Promise<boolean> {
  try {
    return (await navigator.gpu.requestAdapter()) !== null;
  } catch {
    // No `navigator`, no `gpu`, or a GPU process that would not answer.
    return false;
  }
}

interface Page {
  readonly calls: Calls;
  readonly options: OpenOptions;
  readonly session: Session;
  /** Whether the console was told of options that have no effect. */
  warned: boolean;
}

let page: Page | undefined;

/** The calls of a session that opens itself, and ends if it cannot. */
function begin(name: string, options: OpenOptions): Calls {
  const calls = new Calls();
  bringUp(name, options, calls).catch((error: unknown) => {
    // The core words a refusal to open in full.
    calls.end(
      isCoreFailure(error)
        ? new FramebatchError(error.code, error.message)
        : fromCore(name, error),
    );
  });
  return calls;
}

async function bringUp(
  name: string,
  options: OpenOptions,
  calls: Calls,
): Promise<void> {
  checkOpenOptions(name, options);
  if (options.engine === "gpu") checkPlatform();
  const instance = await loadCore(options.wasm);
  calls.moveIn(instance);
  const core = await instance.Core.open(
    coreConfig(options),
    calls.settle,
    calls.notify,
  );
  const environment = hostEnvironment();
  // Opening and the first calls are two tasks: the browser compiles much of the core in each.
  await nextTask(environment);
  const poller = new CompletionPoller(environment, {
    nudge: () => core.nudge(),
    echo() {
      const device = core.raw_device();
      device?.pushErrorScope("validation");
      return device?.popErrorScope();
    },
    owed: () => calls.owed,
  });
  if (options.devtools === true) calls.batchListeners.add(mark);
  const policy = flushPolicy(options);
  const byCaller = typeof policy === "function" || policy === "manual";
  const { page } = environment;
  calls.run({
    core,
    environment,
    clock: clockFor(policy, environment, {
      flush: () => calls.flushByClock(),
      due: (now) => calls.due(now),
      dueInFrames: (now) => calls.dueInFrames(now),
    }),
    budget: new MainThreadBudget(() => page?.hidden === false),
    poller,
    calibrator: new Calibrator(core, calibrationHost()),
    keyed: options.overflow === "latest",
    byCaller,
    warning:
      !byCaller && isDevelopment()
        ? new LonelyWarning((message) => console.warn(message))
        : undefined,
  });
}

function checkPlatform(): void {
  if (globalThis.isSecureContext === false) {
    throw new FramebatchError(
      "insecure-context",
      "WebGPU needs a secure context, and this page is not one; serve it over https or from localhost, or open with engine 'auto'",
    );
  }
  if (globalThis.navigator?.gpu === undefined) {
    throw new FramebatchError(
      "unsupported",
      "there is no WebGPU here (navigator.gpu is missing); open with engine 'auto' or 'cpu' to run on the CPU",
    );
  }
}

/** Warns once when a later `shared` asks for options that the page's session does not have. */
function compare(wanted: OpenOptions, page: Page): void {
  if (page.warned) return;
  for (const [name, value] of Object.entries(wanted)) {
    const has = page.options[name as keyof OpenOptions];
    // All sessions share one WebAssembly file, and its bytes would be a long text.
    if (name === "wasm" || JSON.stringify(value) === JSON.stringify(has)) {
      continue;
    }
    page.warned = true;
    console.warn(
      `framebatch: shared: the page's session was opened with ${name} ${JSON.stringify(has)}, so ${name} ${JSON.stringify(value)} has no effect; ` +
        "give the options to the first shared() of the page, or open() a session of your own",
    );
  }
}
