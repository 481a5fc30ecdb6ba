// A session in a worker, for a page: a session of this thread that does what the page logs.
//
// How calls are replayed is in `replay.ts`, how their answers go back in `outbox.ts`.

import { FramebatchError } from "../checks/errors.js";
import {
  type Core,
  type CoreFacts,
  type DeviceEvent,
  type Notify,
  type Settle,
} from "../core/core.js";
import type { CoreHome } from "../core/core-home.js";
import { loadCore } from "../core/core-instance.js";
import { checkPlatform } from "../core/webgpu.js";
import type { Stats } from "../metrics/stats.js";
import { hostEnvironment } from "../platform/environment.js";
import { begin } from "../session/bring-up.js";
import type { CalibrationHost } from "../session/calibrator.js";
import type { Calls } from "../session/calls.js";
import { sizesOf } from "./batch-sizes.js";
import { Outbox } from "./outbox.js";
import {
  type Leaving,
  type Opening,
  PROTOCOL,
  type Request,
  type State,
} from "./protocol.js";
import { Replay } from "./replay.js";
import { failureOf } from "./replayed-operands.js";

/** Opens a session for a page, if a message asks for that; others are of somebody else. */
export function connect(message: unknown): void {
  const opening = message as Partial<Opening> | null;
  if (typeof opening?.framebatch !== "number") return;
  const { port } = opening;
  if (opening.framebatch === PROTOCOL) {
    new HostedSession(opening as Opening);
    return;
  }
  const failure = {
    code: "unsupported" as const,
    message:
      "the worker's script is of another version of framebatch than the page's; serve both from one package",
  };
  const news = [{ type: "ended", failure }];
  port?.postMessage({ news, state: undefined, arenas: [] });
}

/** Events of which the page is told, and those behind which all its tensors are filled again. */
const TOLD = ["lost", "restored", "fallback", "relieved", "regained"];
const FILLED = ["restored", "fallback"];

/** A session of a page. */
class HostedSession {
  private readonly outbox: Outbox;
  private readonly session: Calls;
  private readonly kept: Map<string, string>;
  private core: Core | undefined;
  private home: CoreHome | undefined;
  private replay: Replay | undefined;

  constructor({ options, kept, port }: Opening) {
    this.kept = new Map(kept);
    this.outbox = new Outbox(
      (report, owned) => port.postMessage(report, owned),
      () => this.state(),
    );
    port.onmessage = ({ data }: MessageEvent<Request | Leaving>) =>
      this.hear(data);
    // Where the platform tells that the page is gone.
    port.addEventListener("close", () => this.leave());
    void this.greet();
    const environment = hostEnvironment();
    this.session = begin("open", options, {
      home: async ({ engine, wasm }) => {
        if (engine === "gpu") checkPlatform();
        return (this.home = this.around(await loadCore(wasm)));
      },
      // What the page's frames are to the session, the page's requests tell.
      environment: { ...environment, frames: undefined, page: undefined },
      calibration: this.calibration(),
      isQuiet: true,
    });
    this.session.join({
      open: (core) => this.open(core),
      hear() {},
      close: () => this.close(),
    });
  }

  private async greet(): Promise<void> {
    this.outbox.add({ type: "hello", lock: await holdLock() });
  }

  private open(core: Core): void {
    this.core = core;
    this.replay = new Replay(this.session, core, this.outbox);
    const { timeOrigin } = performance;
    const ask = (model: number, item: number): number =>
      core.optimal_batch_size(model, item);
    const opened = { timeOrigin, ...sizesOf(ask) };
    this.outbox.add({ type: "opened", opened });
  }

  private hear(message: Request | Leaving): void {
    if (message === "leave") return this.leave();
    if (this.replay === undefined || this.session.ended !== undefined) return;
    try {
      this.replay.run(message);
      if (message.isRestored) this.core!.resume();
    } catch (thrown) {
      this.session.fail("replay", thrown);
    }
  }

  // The page has gone, or its session is over.
  private leave(): void {
    this.session.end(new FramebatchError("disposed", "the page has left"));
  }

  private close(): void {
    this.replay?.end();
    const failure = failureOf(this.session.ended);
    this.outbox.add({ type: "ended", failure });
    // The page closes the port when it has heard: a port that closes by itself is a worker's end.
    this.outbox.send();
  }

  private calibration(): CalibrationHost {
    const { kept, outbox } = this;
    return {
      store: {
        getItem: (key) => kept.get(key) ?? null,
        setItem(key, text) {
          kept.set(key, text);
          outbox.add({ type: "keep", key, text });
        },
      },
      whenIdle: (callback) => void setTimeout(callback),
    };
  }

  /** A home whose core tells the page, too. */
  private around(home: CoreHome): CoreHome {
    return {
      memory: home.memory,
      add: (tenant) => home.add(tenant),
      remove: (tenant) => home.remove(tenant),
      condemn: (error) => home.condemn(error),
      callOut: (run) => home.callOut(run),
      Core: {
        open: (config, settle, notify) =>
          home.Core.open(config, this.settling(settle), this.telling(notify)),
      },
    };
  }

  private settling(settle: Settle): Settle {
    return (table, count, source, message, last) => {
      const { outbox, replay } = this;
      outbox.begin(this.wordsOf(table, count));
      settle(table, count, source, message, last);
      const isMeasured = last && replay?.isMeasuring && this.core !== undefined;
      outbox.end(last, isMeasured ? this.facts() : undefined);
    };
  }

  private telling(notify: Notify): Notify {
    return (event, message) => {
      notify(event, message);
      if (event === "returned") this.outbox.touch();
      if (!TOLD.includes(event)) return;
      const own = event as DeviceEvent;
      this.outbox.add({ type: "event", event: own, message });
      // A page whose session is still opening has no tensors.
      if (FILLED.includes(event)) this.core?.wait();
    };
  }

  /** Words of the results in a table. */
  private wordsOf(table: number, count: number): number {
    const words = new Uint32Array(this.home!.memory.buffer, table * 4);
    let sum = 0;
    for (let at = 2; at < count * 4; at += 4) sum += words[at];
    return sum;
  }

  private facts(): CoreFacts | undefined {
    const facts = this.core!.facts();
    return facts && this.replay!.measured.ofPage(facts);
  }

  private state(): State | undefined {
    const { core, replay, session } = this;
    if (core === undefined || session.ended !== undefined) return undefined;
    try {
      const header = core.header();
      const flights = new Uint32Array(this.home!.memory.buffer)[header + 2];
      return {
        seen: replay!.seen,
        room: core.desired_size(),
        flights,
        passed: replay!.passed,
        lost: replay!.lost,
        stats: core.stats() as Stats,
        info: core.info(),
      };
    } catch (thrown) {
      session.fail("state", thrown);
      return undefined;
    }
  }
}

/** The lock that the worker holds while it lives, by which pages hear of its end. */
let lock: Promise<string | undefined> | undefined;

function holdLock(): Promise<string | undefined> {
  lock ??= new Promise((resolve) => {
    const locks = globalThis.navigator?.locks;
    if (locks === undefined) return resolve(undefined);
    const name = `framebatch worker ${crypto.randomUUID()}`;
    locks
      .request(name, () => {
        resolve(name);
        return new Promise(() => {});
      })
      .catch(() => resolve(undefined));
  });
  return lock;
}
