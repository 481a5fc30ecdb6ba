// Takes the calls of a session, and holds the parts that a session is made of.
//
// The hot path begins here: a call without options makes its promise, its record and
// nothing else, and crosses into Rust once. How calls enter the core is in
// `queue/tickets.ts`, how they are answered in `results/settlement.ts`; when they are
// sent, the clock decides, what becomes of a batch, the core. How a session is opened is
// in `open.ts`.

import type { Fraction } from "../calls/arguments.js";
import { ArrayOperands } from "../calls/array-operands.js";
import { ANSWERED, Call } from "../calls/call.js";
import { endedError, endWith, lateError } from "../calls/call-errors.js";
import {
  type AnyOptions,
  type CallOptions,
  checkCallOptions,
  type CheckedOptions,
} from "../calls/call-options.js";
import type { Method } from "../calls/methods.js";
import type { Operands } from "../calls/operands.js";
import { Structures } from "../calls/structures.js";
import { type FramebatchError, fromCore, subject } from "../checks/errors.js";
import type { Priority } from "../checks/priority.js";
import type { Core, Notify, Settle } from "../core/core.js";
import type { CoreHome } from "../core/core-home.js";
import type { Operand } from "../memory/arrays.js";
import { Slab } from "../memory/slab.js";
import { openingStats, type Stats } from "../metrics/stats.js";
import { ProcessHold } from "../platform/node.js";
import { Backlog } from "../queue/backlog.js";
import { Backpressure } from "../queue/backpressure.js";
import { Tickets } from "../queue/tickets.js";
import { settle } from "../results/settlement.js";
import { Streams } from "../stream/streams.js";
import { ChainWriter } from "../tensor/chain-writer.js";
import {
  ResidentTensors,
  type TensorNews,
} from "../tensor/resident-tensors.js";
import { takeSnapshot } from "../tensor/snapshot-reading.js";
import { recomputeTensors } from "../tensor/stored-calls.js";
import { BatchListeners } from "./batch-listeners.js";
import type { Companion } from "./companion.js";
import { DeviceListeners } from "./device-listeners.js";
import { beginDryRun, type DryRun, WarmupOperands } from "./dry-run.js";
import { type SenderConfig, Sender } from "./sender.js";

/** What is told of tensors where nothing became of them. */
export const NO_NEWS: TensorNews = { lostTensors: [], revertedTensors: [] };

/** An open core, and what a session needs beside the core. */
export interface Running extends SenderConfig {
  readonly core: Core;
  /** Whether the core asks for keys (`overflow: "latest"`). */
  readonly keyed: boolean;
}

/** The calls of one session. */
export class Calls {
  /** A method of the core threw, which is a defect: ends the session. */
  readonly fail = (doing: string, thrown: unknown): void =>
    this.end(fromCore(doing, thrown));
  /** Undefined while the session is opening. */
  core: Core | undefined;
  /** Why no more calls are taken; undefined while they are. */
  ended: FramebatchError | undefined;
  /** Tells producers when the queue has room for more calls. */
  readonly backpressure = new Backpressure();
  /** The listeners to events of the device. */
  readonly deviceListeners = new DeviceListeners();
  /** The tensors that lie on the device for longer than a call. */
  readonly residents = new ResidentTensors(
    (thrown) => this.fail("tensor", thrown),
    // An answer is being given at this moment, and its caller goes on behind the snapshot.
    (storage) => queueMicrotask(() => takeSnapshot(this, storage)),
  );
  /** The core's numbers of the structures of methods on arrays. */
  readonly structures = new Structures();
  /** Brings the chains of tensors that are read to the core. */
  readonly chains = new ChainWriter(this.residents);
  /** The listeners to what batches were. */
  readonly batchListeners = new BatchListeners();
  /** The memory for copies of short data. */
  readonly slab = new Slab();
  /** The priority of calls that say none, if a stream's function makes them. */
  inherited: Priority | undefined;
  /** The streams, whose calls wait for no frame. */
  readonly streams = new Streams(this);

  /** What the package's other entries keep for as long as the session lives. */
  private readonly companions: Companion[] = [];
  private readonly backlog = new Backlog();
  private readonly tickets = new Tickets(this.fail);
  private sender!: Sender;
  /** What the core lives on; undefined until that is there. */
  instance: CoreHome | undefined;
  /** The core while it is at work, and must not be entered. */
  private paused: Core | undefined;
  /** The calls made inside `explain` or `warmup`, while it runs. */
  private dryRun: DryRun | undefined;
  /** What the core had counted when the session ended. */
  private finalStats: Stats | undefined;
  /** Keeps a process alive while the session opens, and while calls wait for their answers. */
  private readonly hold = new ProcessHold();

  /** Takes a call of a method on arrays, as {@link take} takes every call. */
  start<Result extends Operand>(
    method: Method,
    a: Operand,
    b: Operand | undefined,
    t: Fraction | undefined,
    options: AnyOptions | undefined,
    rest?: readonly Operand[],
  ): Promise<Result> {
    const operands = new ArrayOperands(this.structures, method, a, b, t, rest);
    return this.take(operands, options);
  }

  /** Takes a call. Never throws: what is wrong with it rejects the promise. */
  take<Answer>(
    operands: Operands,
    options: AnyOptions | CallOptions<CheckedOptions["into"]> | undefined,
  ): Promise<Answer> {
    const { method } = operands;
    let call: Call | undefined;
    try {
      const terms =
        options === undefined && this.inherited === undefined
          ? undefined
          : checkCallOptions(
              method,
              options === undefined ? {} : options,
              this.inherited,
            );
      const about = subject(method.name, terms?.label);
      if (this.ended !== undefined) throw endedError(about, this.ended);
      operands.check(about, terms);
      if (terms !== undefined) throwIfAborted(terms);
      // With nothing to compute the answer is known without a core; it stays asynchronous.
      if (operands.isEmpty) {
        return Promise.resolve(operands.empty(terms) as Answer);
      }
      call = new Call(operands, terms, this);
      if (terms !== undefined) this.watch(call, terms);
      operands.pin();
      if (this.core === undefined) this.postpone(call, about);
      else this.enter(call);
      return call.promise as Promise<Answer>;
    } catch (error) {
      return this.refused(call, error);
    }
  }

  /** Tells a companion of the events of the session's life from here on. */
  join(companion: Companion): void {
    this.companions.push(companion);
    if (this.core !== undefined) companion.open(this.core);
  }

  /** The session lives on this instance from here on, and ends when the instance traps. */
  moveIn(instance: CoreHome): void {
    if (this.ended !== undefined) return instance.remove(this);
    this.instance = instance;
    instance.add(this);
  }

  /** The core is up: enters the calls that waited for it, in order. */
  run({ core, keyed, ...config }: Running): void {
    const { tickets } = this;
    const sender = new Sender(core, tickets, config, this.fail, () => {
      if (this.core !== undefined) this.backpressure.offer(this.core);
      this.holdIfPending();
    });
    if (this.ended !== undefined) {
      sender.dispose();
      core.dispose();
      return;
    }
    this.core = core;
    this.sender = sender;
    tickets.open(core, this.instance!.memory, keyed);
    this.structures.open(core);
    this.chains.open(core);
    this.residents.open(core);
    this.batchListeners.open(core);
    for (const companion of this.companions) companion.open(core);
    this.slab.open(sender.preallocator.pool);
    this.replay();
    if (this.core !== undefined) sender.replayed();
    this.streams.open(config.environment);
    this.backpressure.offer(core);
    this.holdIfPending();
  }

  /**
   * Sends the queued calls at once, because the page goes on with what they write; while
   * the session opens, as soon as it is open.
   */
  flush(): void {
    this.send(true);
  }

  /** Sends what is queued; unless `atOnce`, as soon as few batches are on their way. */
  send(atOnce = false): void {
    const { core } = this;
    if (this.ended !== undefined) return;
    this.streams.flushed();
    if (core === undefined) return this.backlog.addFlush();
    this.sender.flush(atOnce);
    this.backpressure.offer(core);
    this.holdIfPending();
  }

  /** Sends the queued calls for the clock, whose batches the warning counts. */
  flushByClock(): void {
    this.sender.warn();
    this.send();
  }

  /** Answers the calls of a batch. The core calls this. */
  readonly settle: Settle = (table, count, source, message, last) => {
    const { sender } = this;
    try {
      sender.returning();
      settle(this.tickets, sender.preallocator, {
        table,
        count,
        source,
        message,
      });
      if (this.ended !== undefined) return;
      this.backpressure.offer(this.core!);
      sender.filled();
      sender.returned(last);
      if (last && this.batchListeners.isOn) this.batchListeners.collect();
      this.holdIfPending();
    } catch (thrown) {
      // The core does not hear of what is thrown here, and calls would wait for ever.
      this.fail("settle", thrown);
    }
  };

  /** Hears what becomes of the device. The core calls this. */
  readonly notify: Notify = (event, message) => {
    if (event === "sent") return this.sender.sent();
    if (event === "returned") return this.sender.returned(false);
    if (event === "tuned") return this.sender.tuned();
    if (event === "relieved" || event === "regained") {
      // No tensor is filled again: only one batch left the device, or the core brought
      // all tensors to the other device. A call may be entering the core at this moment,
      // so listeners, which may make calls, are told later.
      const news = event === "relieved" ? "fallback" : "restored";
      return queueMicrotask(() =>
        this.deviceListeners.tell(news, message, NO_NEWS),
      );
    }
    // Tensors are filled first: the core sends the waiting calls as soon as this returns.
    this.residents.hear(event);
    if (event !== "lost") recomputeTensors(this);
    for (const companion of this.companions) companion.hear(event);
    // What was in flight is not any more, and where all its callers gave up nothing else says so.
    if (event !== "lost" && this.core !== undefined) {
      this.sender.returned(false);
    }
    this.deviceListeners.tell(event, message, this.residents.takeNews());
  };

  /** Gives a call up because its signal says so. */
  abort(call: Call): void {
    this.giveUp(call, call.terms!.signal!.reason);
  }

  /** Gives a call up because its deadline has passed. */
  expire(call: Call): void {
    this.giveUp(call, lateError(call));
  }

  /** The core is at work, and must not be entered: what is called from here on waits. */
  pause(): void {
    if (this.core === undefined) return;
    this.paused = this.core;
    this.core = undefined;
    this.residents.pause();
  }

  /** The core may be entered again; the calls that waited enter it behind its work. */
  resume(): void {
    const { paused } = this;
    if (paused === undefined) return;
    this.paused = undefined;
    if (this.ended !== undefined) {
      queueMicrotask(() => this.stop(paused));
      return;
    }
    this.core = paused;
    this.residents.resume(paused);
    // The core may still be at work, and this in the middle of it.
    queueMicrotask(() => {
      if (this.core === undefined) return;
      this.residents.open(this.core);
      this.replay();
      if (this.core !== undefined) this.sender.replayed();
    });
  }

  /** The plan of the calls made in `make`, which are not sent. */
  explain(make: () => unknown): string {
    return this.record("explain", make, (core) => core.end_explain());
  }

  /** Compiles what the calls made in `make` need, which are not sent. */
  warmup(make: () => unknown): Promise<unknown> {
    const operands = new WarmupOperands();
    const call = new Call(operands, undefined, this);
    const { name } = operands.method;
    call.ticket = this.record(name, make, (core) => core.end_warmup());
    // A call in `make` ended the session: pending calls are answered, and the warm-up would wait for ever.
    if (this.ended !== undefined) throw endedError(name, this.ended);
    this.tickets.pending.put(call);
    this.holdIfPending();
    return call.promise;
  }

  /** The counts so far; zeros while the session opens. */
  stats(): Stats {
    if (this.core !== undefined) return this.core.stats() as Stats;
    return this.finalStats ?? openingStats(this.backlog.size);
  }

  /** Whether calls are planned only, and will not be sent. */
  get isRecording(): boolean {
    return this.dryRun !== undefined;
  }

  /** Aborts the calls that give their places in a full queue to others. */
  get yielding(): Set<AbortController> {
    return this.tickets.yielding;
  }

  /** Batches in flight that a GPU computes. */
  get owed(): number {
    return this.tickets.arena.owed;
  }

  /** When the batch is due, for the clock. */
  due(now: number): number {
    return this.sender.due(now);
  }

  /** The same where the end of each frame flushes anyway. */
  dueInFrames(now: number): number {
    return this.sender.dueInFrames(now);
  }

  /** Takes no more calls, and rejects all pending ones with this error. */
  end(error: FramebatchError): void {
    if (this.ended !== undefined) return;
    this.ended = error;
    this.hold.set(false);
    const { core } = this;
    if (core !== undefined) this.stop(core);
    this.residents.close();
    for (const companion of this.companions) companion.close(error);
    // A core that was disposed of has answered all calls; a core with a defect none.
    for (const call of [
      ...this.backlog.drain(),
      ...this.tickets.pending.drain(),
    ]) {
      this.tickets.release(call);
      endWith(call, error);
    }
    this.backpressure.close(error);
    this.streams.close();
    this.batchListeners.close();
    this.instance?.remove(this);
    // A failure before there is a core says nothing of the instance that other sessions live on.
    if (core !== undefined && error.code === "fatal")
      this.instance!.condemn(error);
  }

  /** Throws what the core throws when it has trapped. */
  checkUp(): void {
    this.core?.desired_size();
  }

  private record<Outcome>(
    name: string,
    make: () => unknown,
    end: (core: Core) => Outcome,
  ): Outcome {
    const dryRun = beginDryRun(name, this.core, this.dryRun);
    this.dryRun = dryRun;
    try {
      return dryRun.run(make, end);
    } finally {
      this.dryRun = undefined;
      dryRun.reject(this.tickets);
    }
  }

  private watch(call: Call, { onMetrics }: CheckedOptions): void {
    call.watch();
    if (onMetrics !== undefined) this.batchListeners.ask(call);
  }

  // A call that was made already had no memory for copies of its operands.
  private refused(call: Call | undefined, error: unknown): Promise<never> {
    if (call !== undefined) {
      this.tickets.release(call);
      this.batchListeners.drop(call);
    }
    return Promise.reject(error);
  }

  // A full batch is sent, and may be answered, before its last call has a ticket.
  private noteTicket(call: Call, { onMetrics }: CheckedOptions): void {
    if (onMetrics === undefined) return;
    const isOver = this.dryRun !== undefined || call.ticket === ANSWERED;
    if (isOver) this.batchListeners.drop(call);
    else this.batchListeners.entered(call);
  }

  private replay(): void {
    const { tickets, sender } = this;
    this.backlog.replay(
      (call) => {
        tickets.enter(call);
        if (call.terms !== undefined) this.noteTicket(call, call.terms);
        const priority = call.terms?.priority ?? "normal";
        if (priority !== "normal") sender.calledWith(priority);
        else if (call.ticket !== ANSWERED) sender.queued += 1;
        if (call.terms?.now) this.send();
      },
      () => this.flush(),
    );
  }

  // The session still opens.
  private postpone(call: Call, about: string): void {
    call.operands.copy(about);
    this.backlog.add(call);
    this.streams.called();
  }

  /** Enters a call that is made and checked. */
  enter(call: Call): void {
    const { terms } = call;
    this.tickets.enter(call);
    if (terms !== undefined) this.noteTicket(call, terms);
    if (this.dryRun !== undefined) this.dryRun.add(call);
    else if (call.ticket !== ANSWERED) {
      const isNow = terms !== undefined && terms.now;
      const isNormal = terms === undefined || terms.priority === "normal";
      if (isNormal) this.sender.called(isNow);
      else this.sender.calledWith(terms.priority);
      if (isNow) this.send();
      else if (isNormal || (terms.priority === "low" && this.sender.flushesLow))
        this.streams.called();
    }
  }

  /** Rejects a call that is pending with this reason. */
  giveUp(call: Call, reason: unknown): void {
    if (this.paused !== undefined) {
      return queueMicrotask(() => this.giveUp(call, reason));
    }
    const { ticket } = call;
    if (ticket === ANSWERED) return;
    const entered = this.tickets.pending.take(ticket) !== undefined;
    this.tickets.release(call);
    call.reject(reason);
    try {
      if (call.terms?.onMetrics !== undefined) this.batchListeners.drop(call);
      if (!entered || this.core === undefined) return;
      this.core.abort(ticket);
      this.backpressure.offer(this.core);
      this.holdIfPending();
    } catch (thrown) {
      this.fail("abort", thrown);
    }
  }

  private holdIfPending(): void {
    this.hold.set(this.tickets.pending.size > 0);
  }

  private stop(core: Core): void {
    this.sender.dispose();
    this.core = undefined;
    // A core with a defect cannot be trusted to clean up, and is left alone.
    if (this.ended!.code === "fatal") return;
    try {
      core.dispose();
      this.finalStats = core.stats() as Stats;
    } catch (thrown) {
      // The calls that the core left pending are rejected by `end`.
      this.instance!.condemn(fromCore("dispose", thrown));
    }
  }
}

function throwIfAborted({ signal }: CheckedOptions): void {
  if (signal?.aborted) throw signal.reason;
}
