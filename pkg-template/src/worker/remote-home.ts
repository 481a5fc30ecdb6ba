// What a remote core lives on: a port to its session in a worker.
//
// A session has a home of its own. What its messages mean is known to `remote-core.ts`.

import { FramebatchError, fromCore } from "../checks/errors.js";
import type { Core, Notify, Settle, WasmSource } from "../core/core.js";
import type { CoreHome, Tenant } from "../core/core-home.js";
import { calibrationHost } from "../session/calibrator.js";
import { flushPolicy, type OpenOptions } from "../session/open-options.js";
import {
  type Failure,
  type Leaving,
  type News,
  type Opening,
  PROTOCOL,
  type Report,
} from "./protocol.js";
import { RemoteCore } from "./remote-core.js";
import { RequestLog } from "./request-log.js";
import type { Inhabitant, WorkerHost } from "./worker-hosts.js";

/** How keys begin under which a page keeps what is measured. */
const KEPT = "framebatch ";

/** The home of one session's core. */
export class RemoteHome implements CoreHome, Inhabitant {
  readonly Core = {
    open: (_config: object, settle: Settle, notify: Notify): Promise<Core> =>
      this.open(settle, notify),
  };
  private readonly log = new RequestLog();
  private readonly port: MessagePort;
  private readonly far: MessagePort;
  private tenant: Tenant | undefined;
  private core: RemoteCore | undefined;
  /** Ends the opening, while that lasts. */
  private refuse: ((reason: unknown) => void) | undefined;
  private hasLeft = false;

  constructor(
    private readonly host: WorkerHost,
    private readonly options: OpenOptions,
  ) {
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    this.far = port2;
    host.enter(this);
  }

  get memory(): { readonly buffer: ArrayBuffer } {
    return this.log.memory;
  }

  add(tenant: Tenant): void {
    this.tenant = tenant;
  }

  remove(): void {
    this.leave();
  }

  condemn(error: FramebatchError): void {
    this.died(error);
  }

  callOut(run: () => void): void {
    run();
  }

  died(error: FramebatchError): void {
    this.refuse?.(error);
    this.core?.end(error);
    this.leave();
    this.tenant?.end(error);
  }

  private async open(settle: Settle, notify: Notify): Promise<Core> {
    const { port } = this;
    const options = await crossing(this.options);
    return new Promise<Core>((resolve, reject) => {
      if (this.hasLeft) return;
      this.refuse = reject;
      port.onmessage = ({ data }: MessageEvent<Report>) => {
        if (this.hasLeft) return;
        if (this.core !== undefined) return this.hear(this.core, data);
        const core = this.begin(data, settle, notify);
        if (core === undefined) return;
        this.core = core;
        this.refuse = undefined;
        resolve(core);
      };
      port.onmessageerror = () =>
        this.host.die("a message of it could not be read");
      // Where the platform tells that the other end is gone.
      port.addEventListener("close", () => {
        if (!this.hasLeft) this.host.die("its port was closed");
      });
      const opening: Opening = {
        framebatch: PROTOCOL,
        options,
        kept: keptEntries(),
        port: this.far,
      };
      this.host.worker.postMessage(opening, [this.far]);
    });
  }

  // News that come before the session is open.
  private begin(
    { news, state }: Report,
    settle: Settle,
    notify: Notify,
  ): RemoteCore | undefined {
    let core: RemoteCore | undefined;
    for (const one of news) {
      if (one.type === "event") notify(one.event, one.message);
      if (one.type === "opened") {
        core = new RemoteCore({
          log: this.log,
          opened: one.opened,
          state: state!,
          settle,
          notify,
          options: this.options,
          post: (request, owned) => this.port.postMessage(request, owned),
        });
      }
      this.note(one);
    }
    return core;
  }

  private hear(core: RemoteCore, report: Report): void {
    try {
      core.hear(report);
      for (const one of report.news) this.note(one);
    } catch (thrown) {
      // Calls of which the page does not hear would wait for ever.
      this.died(fromCore("worker", thrown));
    }
  }

  private note(news: News): void {
    if (news.type === "hello") this.host.answered(news.lock);
    else if (news.type === "keep") keep(news.key, news.text);
    else if (news.type === "ended") this.end(news.failure);
  }

  private end({ code, message }: Failure): void {
    this.died(new FramebatchError(code, message));
  }

  private leave(): void {
    if (this.hasLeft) return;
    this.hasLeft = true;
    const leaving: Leaving = "leave";
    this.port.postMessage(leaving);
    this.port.close();
    this.host.leave(this);
  }
}

/** The options as a message may have them. */
async function crossing(options: OpenOptions): Promise<OpenOptions> {
  const { wasm, devtools: _devtools, ...rest } = options;
  const policy = flushPolicy(options);
  const own: OpenOptions = { ...rest };
  if (typeof policy === "function") own.flush = "manual";
  if (wasm !== undefined) own.wasm = await crossingWasm(wasm);
  return own;
}

// Addresses are those of the page, and what a page has begun to load is loaded here.
async function crossingWasm(wasm: WasmSource): Promise<WasmSource> {
  if (typeof wasm === "string" || wasm instanceof URL) {
    return new URL(wasm, globalThis.document?.baseURI).href;
  }
  if (wasm instanceof Request) return (await fetch(wasm)).arrayBuffer();
  return wasm instanceof Response ? wasm.arrayBuffer() : wasm;
}

function keptEntries(): [string, string][] {
  const { store } = calibrationHost();
  const kept: [string, string][] = [];
  try {
    for (const key of Object.keys(store ?? {})) {
      const text = key.startsWith(KEPT) && store!.getItem(key);
      if (text) kept.push([key, text]);
    }
  } catch {
    // The page may not read what it keeps.
  }
  return kept;
}

function keep(key: string, text: string): void {
  try {
    calibrationHost().store?.setItem(key, text);
  } catch {
    // The store is full, or closed to the page: the next visit measures again.
  }
}
