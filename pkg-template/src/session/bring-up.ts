// Brings sessions up: a session of one's own, and the one that a page shares.
//
// What the core of a session lives on comes in as an argument: `open.ts` has a WebAssembly
// instance, `worker/index.ts` a worker. What a session does is in `session.ts`.

import { FramebatchError, fromCore, isCoreFailure } from "../checks/errors.js";
import { clockFor } from "../clock/clock.js";
import { CompletionPoller } from "../clock/completion-polling.js";
import { isDevelopment, LonelyWarning } from "../clock/lonely-warning.js";
import { MainThreadBudget } from "../clock/main-thread-budget.js";
import type { FindHome } from "../core/core-home.js";
import type { Info } from "../metrics/stats.js";
import { mark } from "../metrics/timeline.js";
import {
  type Environment,
  nextTask,
  hostEnvironment,
} from "../platform/environment.js";
import {
  type CalibrationHost,
  calibrationHost,
  Calibrator,
} from "./calibrator.js";
import { Calls, NO_NEWS } from "./calls.js";
import { explainCpu } from "./cpu-reason.js";
import { optionWithoutEffect } from "./later-options.js";
import {
  checkOpenOptions,
  coreConfig,
  flushPolicy,
  type OpenOptions,
} from "./open-options.js";
import { Session } from "./session.js";

/** What a session runs in. */
export interface Surroundings<Options extends OpenOptions = OpenOptions> {
  readonly home: FindHome<Options>;
  /** Whether this is why no home was found, and it is too early to look again. */
  readonly isRemembered?: (error: unknown) => boolean;
  /** Options that `home` alone looks at. */
  readonly names?: Readonly<Record<string, true>>;
  /** Default: where this script runs. */
  readonly environment?: Environment;
  readonly calibration?: CalibrationHost;
  /** Whether another session's face warns of how calls are made. */
  readonly isQuiet?: boolean;
}

/** The session that a page shares, and what it was opened with. */
interface Shared<Options> {
  readonly calls: Calls;
  readonly options: Options;
  readonly session: Session;
  /** Whether the console was told of options that have no effect. */
  warned: boolean;
}

/** Opens the sessions of one entry of the package. */
export class Opener<Options extends OpenOptions> {
  private page: Shared<Options> | undefined;

  constructor(private readonly surroundings: Surroundings<Options>) {}

  /** A session of one's own; resolves when its device is up. */
  async open(options: Options): Promise<Session> {
    const calls = begin("open", options, this.surroundings);
    const session = new Session(calls);
    await session.ready;
    return session;
  }

  /** The session that everything in a page shares, at once. */
  shared(options: Options): Session {
    const { page } = this;
    const { names = {}, isRemembered = () => false } = this.surroundings;
    const ended = page?.calls.ended;
    if (page !== undefined && (ended === undefined || isRemembered(ended))) {
      compare(options, page, names);
      return page.session;
    }
    const calls = begin("shared", options, this.surroundings);
    const session = new Session(calls);
    this.page = { calls, options, session, warned: false };
    return session;
  }
}

/** The calls of a session that opens itself, and ends if it cannot. */
export function begin<Options extends OpenOptions>(
  name: string,
  options: Options,
  surroundings: Surroundings<Options>,
): Calls {
  const calls = new Calls();
  bringUp(name, options, calls, surroundings).catch((error: unknown) => {
    // The core words a refusal to open in full.
    const isRefused =
      !(error instanceof FramebatchError) && isCoreFailure(error);
    calls.end(
      isRefused
        ? new FramebatchError(error.code, error.message)
        : fromCore(name, error),
    );
  });
  return calls;
}

async function bringUp<Options extends OpenOptions>(
  name: string,
  options: Options,
  calls: Calls,
  surroundings: Surroundings<Options>,
): Promise<void> {
  checkOpenOptions(name, options, surroundings.names);
  const instance = await surroundings.home(options);
  calls.moveIn(instance);
  if (calls.ended !== undefined) return;
  const core = await instance.Core.open(
    coreConfig(options),
    calls.settle,
    calls.notify,
  );
  const { environment = hostEnvironment(), calibration = calibrationHost() } =
    surroundings;
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
    calibrator: new Calibrator(core, calibration),
    keyed: options.overflow === "latest",
    byCaller,
    warning:
      !byCaller && !surroundings.isQuiet && isDevelopment()
        ? new LonelyWarning((message) => console.warn(message))
        : undefined,
  });
  // The session may have been disposed of meanwhile; a quiet one leaves the telling to its page.
  if (calls.core === undefined || surroundings.isQuiet) return;
  const why = explainCpu((core.info() as Info).reason);
  if (why !== undefined) calls.deviceListeners.tell("fallback", why, NO_NEWS);
}

/** Warns once when a later `shared` asks for options that the page's session does not have. */
function compare<Options extends OpenOptions>(
  wanted: Options,
  page: Shared<Options>,
  own: Readonly<Record<string, true>>,
): void {
  if (page.warned) return;
  const compared = Object.entries(wanted).filter(([name]) => !(name in own));
  const warning = optionWithoutEffect(
    Object.fromEntries(compared),
    page.options,
  );
  if (warning === undefined) return;
  page.warned = true;
  console.warn(`framebatch: ${warning}`);
}
