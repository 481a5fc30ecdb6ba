// A core that computes in a worker, as the face of the page knows it.
//
// This core numbers what the face asks for, and logs it; the worker does the same to a core of
// WebAssembly, which gives other numbers (`replay.ts`). What can only fail there fails the
// calls that need it. Messages are made in `request-log.ts`.

import { FramebatchError } from "../checks/errors.js";
import type { Core, CoreFacts, Notify, Settle, Twin } from "../core/core.js";
import type { OpenOptions } from "../session/open-options.js";
import type { Info, Stats } from "../metrics/stats.js";
import { batchSize, textBytes } from "./batch-sizes.js";
import {
  callOf,
  type Failure,
  type News,
  type Opened,
  type Order,
  type Report,
  type Request,
  type Sending,
  type Settled,
  type State,
  type Structure,
} from "./protocol.js";
import { Plans } from "./plans.js";
import type { RequestLog } from "./request-log.js";
import { tablesOf } from "./settled-tables.js";

type Explain = Parameters<Core["explain_kernels"]>[0];
type CompilerNews = News & { readonly type: "compiled" };

/** Milliseconds after which orders go that nobody waits for, if no calls took them along. */
const LATER_MS = 20;

/** Bytes of operands that go ahead, so that the worker begins while the page still calls. */
const AHEAD_BYTES = 2 ** 22;

/** Tokens of a batch of texts at most, where no option says. */
const MOST_COST = 16_384;

/** What a remote core is made with. */
export interface RemoteConfig {
  readonly log: RequestLog;
  readonly opened: Opened;
  readonly state: State;
  readonly settle: Settle;
  readonly notify: Notify;
  readonly options: OpenOptions;
  readonly post: (request: Request, owned: ArrayBuffer[]) => void;
}

/** What a page does where something does not reach into a worker. */
const DIRECT =
  "open a session of this thread for it, by open of 'framebatch' in place of 'framebatch/worker'";

/** The core of one session. */
export class RemoteCore implements Core {
  readonly names: number[];
  private readonly log: RequestLog;
  private state: State;
  private why: Failure | undefined;
  /** The newest number of each kind. */
  private structures = 0;
  private tensors = 0;
  private tickets = 0;
  private fences = 0;
  /** Calls so far, and those of them that were posted. */
  private calls = 0;
  private posted = 0;
  /** Whether the face is about to flush because that was due. */
  private isDue = false;
  /** Whether calls are planned, and what is asked meanwhile waits for the end of that. */
  private isPlanning = false;
  /** When the oldest call in the log was made. */
  private since = NaN;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private told: CoreFacts | undefined;
  /** Names of kernels with functions for the CPU. */
  private readonly withTwins = new Set<string>();
  private readonly plans = new Plans();
  /** Says what compilers mean. */
  private explain: Explain | undefined;

  constructor(private readonly config: RemoteConfig) {
    this.log = config.log;
    this.names = config.log.names;
    this.state = config.state;
  }

  /** Hears of the worker. */
  hear({ news, state, arenas }: Report): void {
    for (const arena of arenas) this.log.give(arena);
    if (state !== undefined) this.state = state;
    this.countFlights();
    let hasSettled = false;
    for (const one of news) {
      if (one.type === "settled") {
        hasSettled = true;
        this.settle(one.settled);
      } else this.note(one);
    }
    // The queue may have room though nothing was settled. Before its first call nobody waits for
    // room, and the session may not run yet.
    if (!hasSettled && this.calls > 0) {
      this.config.settle(0, 0, null, undefined, false);
    }
  }

  structure(op: string, width: number, each: boolean): number {
    return this.make(["structure", op, width, each]);
  }

  field_gradients(formula: string): number {
    return this.make(["field_gradients", formula]);
  }

  chain(words: Uint32Array): number {
    return this.make(["chain", words]);
  }

  sampling(sizes: Uint32Array): number {
    return this.make(["sampling", sizes]);
  }

  searching(sizes: Uint32Array): number {
    return this.make(["searching", sizes]);
  }

  insertion(sizes: Uint32Array): number {
    return this.make(["insertion", sizes]);
  }

  // A function of the page's does not reach into the worker: a GPU computes such a kernel, and
  // where there is none its calls are refused.
  kernel(
    number: number,
    name: string,
    code: string,
    sizes: Uint32Array,
    twin: Twin | undefined,
  ): void {
    if (twin !== undefined) this.withTwins.add(name);
    this.ask(["kernel", number, name, code, sizes]);
  }

  explain_kernels(explain: Explain): void {
    this.explain = explain;
    this.ask(["explains"]);
  }

  forget(structures: Uint32Array): void {
    this.ask(["forget", structures]);
  }

  hold(words?: number, apart?: Uint32Array): number {
    this.tensors += 1;
    this.ask(["hold", this.tensors, words, apart]);
    return this.tensors;
  }

  fill(tensor: number, data: Uint32Array, home: number, row?: number): number {
    return this.withCopy(data, (own) =>
      this.ask(["fill", tensor, own, home, row], own.buffer),
    );
  }

  allocate(tensor: number, words: number): number {
    this.ask(["allocate", tensor, words]);
    return 0;
  }

  import(): number {
    return this.fail(
      `a GPUBuffer of the page does not reach into a worker; ${DIRECT}, or give an array`,
    );
  }

  clear(tensor: number, words: number): number {
    this.ask(["clear", tensor, words]);
    return 0;
  }

  refuse_readers(tensor: number): void {
    this.ask(["refuse_readers", tensor]);
  }

  heal(tensor: number): void {
    this.ask(["heal", tensor]);
  }

  is_lost(tensor: number): boolean {
    return this.state.lost.includes(tensor);
  }

  patch(tensor: number, at: number, data: Uint32Array): number {
    return this.withCopy(data, (own) =>
      this.ask(["patch", tensor, at, own], own.buffer),
    );
  }

  begin_restoration(): void {
    this.ask(["begin_restoration"]);
  }

  end_restoration(): void {
    this.ask(["end_restoration"]);
  }

  wait(): void {}

  resume(): void {
    // The worker hears by a request that tensors are filled: see `note`.
  }

  release(tensor: number): void {
    this.ask(["release", tensor]);
  }

  fence(): number {
    this.fences += 1;
    this.ask(["fence", this.fences]);
    return this.fences;
  }

  has_passed(fence: number): boolean {
    return fence <= this.state.passed;
  }

  locate(): GPUBuffer | undefined {
    this.fail(`a GPUBuffer in a worker does not reach the page; ${DIRECT}`);
    throw this.why;
  }

  offset(): number {
    return 0;
  }

  header(): number {
    return 0;
  }

  reserve(words: number): number {
    return this.spare(words * 4, () => this.log.reserve(words));
  }

  submit(
    structure: number,
    rows: number,
    scalar: number,
    key: number,
    engine: number,
    priority: number,
  ): number {
    const { log } = this;
    if (log.calls === 0) this.since = performance.now();
    log.enter(callOf(engine, priority), structure, rows, scalar, key);
    this.calls += 1;
    this.tickets = (this.tickets + 1) >>> 0;
    if (log.bytes > AHEAD_BYTES || log.rows >= this.mostRows) this.post();
    return this.tickets;
  }

  failure(): unknown {
    return this.why;
  }

  flush(atOnce: boolean): void {
    const sending: Sending = atOnce ? "at once" : this.isDue ? "due" : "now";
    this.log.add(["send", sending]);
    this.post();
  }

  turn(): boolean {
    this.post();
    // The worker gives urgent calls and low work their turns.
    return false;
  }

  due(now: number): number {
    if (this.log.calls === 0) return NaN;
    // The worker looks when calls are due that a clock brings by this; a flush for other
    // reasons comes in another task.
    this.isDue = true;
    queueMicrotask(() => (this.isDue = false));
    return now;
  }

  due_in_frames(): number {
    if (this.log.calls === 0) return NaN;
    const { maxWaitMs, targetLatencyMs } = this.config.options;
    const tuned = targetLatencyMs && this.state.info.tuning.waitMs;
    return this.since + (maxWaitMs ?? tuned ?? NaN);
  }

  abort(ticket: number): boolean {
    this.ask(["abort", ticket]);
    return true;
  }

  desired_size(): number {
    return this.state.room - (this.calls - this.state.seen);
  }

  optimal_batch_size(modelBytes: number, bytesPerItem: number): number {
    return batchSize(this.config.opened, modelBytes, bytesPerItem, Infinity);
  }

  optimal_text_batch_size(
    modelBytes: number,
    tokens: number,
    hidden: number,
    intermediate: number,
  ): number {
    const { maxBatchCost = MOST_COST } = this.config.options;
    const bytes = textBytes(tokens, hidden, intermediate);
    const most = Math.floor(maxBatchCost / tokens);
    return batchSize(this.config.opened, modelBytes, bytes, most);
  }

  begin_explain(): void {
    this.isPlanning = true;
    this.log.add(["plan"]);
  }

  /** A promise of the text, which is not here: `WorkerSession` tells callers so. */
  end_explain(): string {
    const { question, text } = this.plans.ask();
    this.endPlan(["explain", question]);
    return text as unknown as string;
  }

  end_warmup(): number {
    this.tickets = (this.tickets + 1) >>> 0;
    this.endPlan(["warmup", this.tickets]);
    return this.tickets;
  }

  trim(): void {
    this.log.add(["trim"]);
    this.post();
  }

  nudge(): void {
    // The worker looks itself whether a GPU has finished.
  }

  measure(on: boolean): void {
    this.ask(["measure", on]);
  }

  facts(): CoreFacts | undefined {
    const { told } = this;
    this.told = undefined;
    return told;
  }

  stats(): Stats {
    return this.state.stats;
  }

  info(): Info {
    return this.state.info;
  }

  // What is measured of the devices, and kept from visit to visit, is the worker's matter.
  model(): Float64Array {
    return new Float64Array(0);
  }

  set_model(): void {}

  calibrate(): void {}

  raw_device(): undefined {
    return undefined;
  }

  dispose(): void {
    this.end(new FramebatchError("disposed", "the session is disposed"));
  }

  /** Nothing more is sent or heard: rejects what waits for the worker besides calls. */
  end(error: unknown): void {
    clearTimeout(this.timer);
    this.plans.end(error);
  }

  private get mostRows(): number {
    return this.config.options.maxBatchSize ?? Infinity;
  }

  private make(structure: Structure): number {
    this.structures += 1;
    this.ask(["make", this.structures, structure]);
    return this.structures;
  }

  // Nobody waits for what is asked here: it goes along with the next calls, if there are any soon.
  private ask(order: Order, ...owned: ArrayBuffer[]): void {
    this.log.add(order, ...owned);
    this.timer ??= setTimeout(() => this.post(), LATER_MS);
  }

  // The page goes on with its array.
  private withCopy(
    data: Uint32Array,
    use: (own: Uint32Array<ArrayBuffer>) => void,
  ): number {
    return this.spare(data.byteLength, () => use(data.slice()));
  }

  private spare(bytes: number, use: () => void): number {
    try {
      use();
      return 0;
    } catch {
      const message = `there is no memory for ${bytes} bytes on their way to the worker; make smaller calls, or fewer at a time`;
      this.why = { code: "out-of-memory", message };
      return -1;
    }
  }

  private fail(message: string): number {
    this.why = { code: "unsupported", message };
    return -1;
  }

  private endPlan(order: Order): void {
    this.isPlanning = false;
    this.log.add(order);
    this.post();
  }

  private post(isRestored = false): void {
    // A plan is asked for as a whole.
    if (this.isPlanning) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.posted = this.calls;
    this.countFlights();
    this.config.post(...this.log.take(isRestored));
    this.log.begin();
  }

  // The face makes arrays for results while it waits for some.
  private countFlights(): void {
    const { seen, flights } = this.state;
    this.log.countFlights(
      this.posted === seen ? flights : Math.max(1, flights),
    );
  }

  private note(news: News): void {
    if (news.type === "event") {
      const { event, message } = news;
      this.config.notify(event, message);
      // By now all tensors are filled again, or asked for.
      if (event === "restored" || event === "fallback") this.post(true);
    } else if (news.type === "explained") {
      this.plans.answer(news.question, news.text);
    } else if (news.type === "compiled") void this.answerCompiler(news);
  }

  private async answerCompiler(news: CompilerNews): Promise<void> {
    const { question, source, messages } = news;
    const getCompilationInfo = () => Promise.resolve({ messages });
    const module = { getCompilationInfo } as unknown as GPUShaderModule;
    const text = await this.explain?.(module, source);
    this.log.add(["explained", question, text]);
    this.post();
  }

  private settle(settled: Settled): void {
    const { results, last, facts } = settled;
    this.told = facts && this.onOwnClock(facts);
    for (const { table, failure, isEnd } of tablesOf(settled)) {
      const message = failure && this.said(failure);
      const at = this.log.put(table);
      const count = table.length / 4;
      this.config.settle(at, count, results, message, last && isEnd);
    }
  }

  private said({ code, message }: Failure): string {
    const [name] = message.split(":");
    if (code !== "unsupported" || !this.withTwins.has(name)) return message;
    return `${name}: its function for the CPU does not reach into a worker, where no GPU computes it; ${DIRECT}`;
  }

  private onOwnClock(facts: CoreFacts): CoreFacts {
    const late = this.config.opened.timeOrigin - performance.timeOrigin;
    return { ...facts, startTime: facts.startTime + late };
  }
}
