// Takes calls, enters them into the core, and answers them: each exactly once.
//
// This is the hot path. A call without options makes its promise, its record and
// nothing else, and crosses into Rust once. When to flush is the clock's business,
// what a batch becomes is the core's, and how a session is opened is in `open.ts`.

import {
  about,
  collect,
  deliver,
  emptyResult,
  endedError,
  endWith,
  refuse,
} from "./answer.js";
import { Arena, Results } from "./arena.js";
import { Backlog } from "./backlog.js";
import { type Answerable, ANSWERED, Call } from "./call.js";
import {
  checkCall,
  checkPoints,
  type Fraction,
  type Operand,
} from "./check.js";
import type { Clock } from "./clock.js";
import { checked, type Core, type Notify, PART, type Settle } from "./core.js";
import {
  FramebatchError,
  fromCore,
  invalid,
  isCoreFailure,
  subject,
} from "./errors.js";
import { Listeners } from "./events.js";
import { Explained, unsent } from "./explain.js";
import { Keys } from "./keys.js";
import type { Loaded } from "./load.js";
import { type Method, Structures } from "./method.js";
import {
  type AnyOptions,
  type CallOptions,
  checkCallOptions,
  type Terms,
} from "./call-options.js";
import type { Nudger } from "./nudger.js";
import { Pending } from "./pending.js";
import { Preparer } from "./preparer.js";
import { Room } from "./room.js";
import { openingStats, type Stats } from "./stats.js";
import { Reader } from "./tensor/reader.js";
import {
  deliverReading,
  emptyReading,
  finishReading,
  type Reading,
  takeInto,
} from "./tensor/reading.js";
import { Residents } from "./tensor/residents.js";
import type { Environment } from "./environment.js";
import type { LonelyWarning } from "./warning.js";

/** An open core and what the session needs beside it. */
export interface Running {
  readonly core: Core;
  /** What the core lives on. */
  readonly loaded: Loaded;
  readonly clock: Clock;
  readonly around: Environment;
  readonly nudger: Nudger;
  /** Whether the core asks for keys (`overflow: "latest"`). */
  readonly keyed: boolean;
  /** Undefined where nobody would read it. */
  readonly warning: LonelyWarning | undefined;
}

/** The calls of one session. */
export class Calls {
  /** Undefined while the session is opening. */
  core: Core | undefined;
  /** Why no more calls are taken; undefined while they are. */
  ended: FramebatchError | undefined;
  /** Tells producers when the queue has room. */
  readonly room = new Room();
  /** Who wants to know what becomes of the device. */
  readonly listeners = new Listeners();
  /** What lies on the device for longer than a call. */
  readonly residents = new Residents((thrown) => {
    this.end(fromCore("tensor", thrown));
  });

  private readonly backlog = new Backlog();
  private readonly pending = new Pending();
  private readonly reader = new Reader(this.residents);
  private arena!: Arena;
  private structures!: Structures;
  private loaded: Loaded | undefined;
  private clock!: Clock;
  private nudger!: Nudger;
  private preparer!: Preparer;
  private warning: LonelyWarning | undefined;
  private keys: Keys | undefined;
  /** Calls taken since the last flush. */
  private queued = 0;
  /** The number of the key of the call that is being submitted. */
  private key = 0;
  /** The call that is being submitted, and has no ticket yet. */
  private entering: Call | undefined;
  /** The calls made inside `explain`, while it runs. */
  private explained: Explained | undefined;
  /** What the core counted until it ended. */
  private finalStats: Stats | undefined;

  /** Takes a call. Never throws: what is wrong with it rejects the promise. */
  start<Result extends Operand>(
    method: Method,
    a: Operand,
    b: Operand | undefined,
    t: Fraction | undefined,
    options: AnyOptions | undefined,
    rest?: readonly Operand[],
  ): Promise<Result> {
    try {
      const terms =
        options === undefined ? undefined : checkCallOptions(method, options);
      if (this.ended !== undefined) {
        throw endedError(subject(method.name, terms?.label), this.ended);
      }
      checkCall(method, a, b, t, terms, rest);
      if (terms?.signal?.aborted) return Promise.reject(terms.signal.reason);
      // No items: the answer is known without a core, and stays asynchronous.
      if (a.length === 0)
        return Promise.resolve(emptyResult<Result>(method, terms));
      const call = this.make(method, terms);
      if (this.core === undefined) this.backlog.add(call, a, b, t, rest);
      else {
        this.enter(call, a, b, t, rest);
        this.entered(call);
      }
      return call.promise as Promise<Result>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Takes a reading of tensors, as {@link start} takes other calls. */
  read<Answer>(
    reading: Reading,
    options: CallOptions<Terms["into"]> | undefined,
  ): Promise<Answer> {
    const { method } = reading;
    try {
      const terms =
        options === undefined ? undefined : checkCallOptions(method, options);
      const about = subject(method.name, terms?.label);
      if (this.ended !== undefined) throw endedError(about, this.ended);
      if (terms !== undefined) takeInto(reading, terms);
      this.reader.begin(about, reading);
      if (terms?.signal?.aborted) return Promise.reject(terms.signal.reason);
      // No elements: the answer is known without a core, and stays asynchronous.
      if (reading.asked.length === 0)
        return Promise.resolve(emptyReading(reading) as Answer);
      const call = this.make(method, terms);
      call.reading = reading;
      if (this.core === undefined) {
        this.reader.keep(reading);
        this.backlog.addReading(call);
      } else {
        this.enterReading(call);
        this.entered(call);
      }
      return call.promise as Promise<Answer>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Takes a call on control points, which come as one array. */
  startOn<Result extends Operand>(
    method: Method,
    points: readonly Operand[],
    t: Fraction,
    options: AnyOptions | undefined,
  ): Promise<Result> {
    try {
      checkPoints(method, points, options?.label);
    } catch (error) {
      return Promise.reject(error);
    }
    const [a, b, ...rest] = points;
    return this.start(method, a, b, t, options, rest);
  }

  /** The core is up: enters what was waiting for it, in order. */
  run({ core, loaded, around, clock, nudger, keyed, warning }: Running): void {
    if (this.ended !== undefined) {
      clock.dispose();
      nudger.dispose();
      core.dispose();
      return;
    }
    this.core = core;
    this.loaded = loaded;
    loaded.add(this);
    this.arena = new Arena(core, loaded.memory);
    this.structures = new Structures(core);
    this.reader.open(core, this.arena);
    this.clock = clock;
    this.nudger = nudger;
    this.preparer = new Preparer(around, this.pending, () => this.flights);
    this.warning = warning;
    this.keys = keyed ? new Keys() : undefined;
    this.residents.open(core);
    this.backlog.replay(
      ({ call, a, b, t, rest }) => {
        if (call.reading === undefined) this.enter(call, a!, b, t, rest);
        else {
          this.reader.resume(about(call), call.reading);
          this.enterReading(call);
        }
        if (call.ticket !== ANSWERED) this.queued += 1;
        if (call.terms?.now) this.flush();
      },
      () => this.flush(),
    );
    if (this.queued > 0 && this.core !== undefined) this.clock.called();
    this.room.offer(core);
  }

  /** Sends what is queued, now; while the session opens, as soon as it is open. */
  flush(): void {
    const { core } = this;
    if (this.ended !== undefined) return;
    if (core === undefined) return this.backlog.addFlush();
    // Told first: a CPU core answers inside `flush`.
    this.queued = 0;
    this.clock.flushed();
    try {
      core.flush();
      this.nudger.sent();
      this.preparer.sent();
    } catch (thrown) {
      this.end(fromCore("flush", thrown));
    }
    this.room.offer(core);
  }

  /** The clock's flush, which the warning about lonely batches goes by. */
  flushByClock(): void {
    if (this.queued > 0) this.warning?.sent(this.queued);
    this.flush();
  }

  /** Answers the calls of a batch. The core calls this. */
  readonly settle: Settle = (table, count, source, message, last) => {
    this.preparer.returned();
    this.arena.refresh();
    const words = this.arena.words;
    const results = new Results(source ?? this.arena.buffer);
    const end = table + count * 4;
    for (let at = table; at < end; at += 4) {
      const status = words[at + 3];
      if (status === PART) {
        this.addPart(results, words, at);
        at += 4;
        continue;
      }
      const call = this.pending.take(words[at]) ?? this.takeEntering();
      if (call === undefined) continue;
      this.release(call);
      if (status !== 0) refuse(call, status, message);
      else if (call.reading !== undefined)
        deliverReading(call, results, words[at + 1]);
      else deliver(call, results, words[at + 1], words[at + 2]);
    }
    if (this.ended !== undefined) return;
    this.room.offer(this.core!);
    if (last) this.nudger.returned();
    this.clock.settled();
  };

  /** Hears what becomes of the device. The core calls this. */
  readonly notify: Notify = (event, message) => {
    // First: the core sends what waits as soon as this returns.
    this.residents.hear(event);
    this.listeners.tell(event, message);
  };

  /** Gives a call up because its signal says so. */
  abort(call: Call): void {
    this.giveUp(call, call.terms!.signal!.reason);
  }

  /** Gives a call up because its deadline has passed. */
  expire(call: Call): void {
    this.giveUp(
      call,
      new FramebatchError(
        "timeout",
        `${about(call)}: no answer within ${call.terms!.deadlineMs} ms`,
      ),
    );
  }

  /** The plan of the calls made in `make`, which are not sent. */
  explain(make: () => unknown): string {
    const { core } = this;
    if (core === undefined) {
      throw invalid(
        "explain",
        "the session is still opening; await gpu.ready first",
      );
    }
    if (this.explained !== undefined) {
      throw invalid("explain", "it cannot be used inside itself");
    }
    const explained = new Explained();
    this.explained = explained;
    try {
      return explained.run(core, make);
    } finally {
      this.explained = undefined;
      for (const call of explained.calls) {
        if (this.pending.take(call.ticket) === undefined) continue;
        this.release(call);
        call.reject(unsent(call));
      }
    }
  }

  /** What was counted so far; zeros while the session opens. */
  stats(): Stats {
    if (this.core !== undefined) return this.core.stats() as Stats;
    return this.finalStats ?? openingStats(this.backlog.size);
  }

  /** Batches on their way. */
  get flights(): number {
    return this.arena.flights;
  }

  /** When the batch is due, for the clock. */
  due(now: number): number {
    try {
      return this.core!.due(now);
    } catch (thrown) {
      this.end(fromCore("due", thrown));
      return NaN;
    }
  }

  /** Takes no more calls, and answers every one there is with this error. */
  end(error: FramebatchError): void {
    if (this.ended !== undefined) return;
    this.ended = error;
    if (this.core !== undefined) this.stop(this.core);
    this.residents.close();
    // After its own dispose the core has left none; after a defect it left all.
    for (const call of [...this.backlog.drain(), ...this.pending.drain()]) {
      this.release(call);
      endWith(call, error);
    }
    this.room.close(error);
    this.loaded?.remove(this);
    if (error.code === "fatal") this.loaded?.condemn(error);
  }

  /** Throws what the core throws when it has trapped. */
  checkUp(): void {
    this.core?.desired_size();
  }

  private enter(
    call: Call,
    a: Operand,
    b: Operand | undefined,
    t: Fraction | undefined,
    rest: readonly Operand[] | undefined,
  ): void {
    const { terms } = call;
    const method = call.method as Method;
    const each = typeof t === "object" ? t : undefined;
    let width = terms === undefined ? method.width : terms.width;
    if (method.last === "steps") width = t as number;
    const rows = each === undefined ? a.length / method.width : each.length;
    const scalar = typeof t === "number" ? t : 0;
    call.elements = a.length * method.growth;
    if (method.last === "steps") call.elements *= width;
    this.holdKey(call);
    try {
      const id =
        terms?.field === undefined
          ? this.structures.id(method, each !== undefined, width)
          : this.structures.fieldId(terms.field);
      this.arena.write(a, b, each, rest);
      this.submit(call, id, rows, scalar);
    } catch (thrown) {
      this.turnAway(call, thrown);
    }
  }

  private enterReading(call: Call): void {
    call.elements = call.reading!.elements;
    this.holdKey(call);
    try {
      this.submit(call, this.reader.lay(call.reading!), 0, 0);
    } catch (thrown) {
      this.turnAway(call, thrown);
    }
  }

  // Gives the core a call whose operands lie at the cursor.
  private submit(call: Call, id: number, rows: number, scalar: number): void {
    this.entering = call;
    try {
      const core = this.core!;
      const ticket = checked(core, core.submit(id, rows, scalar, this.key));
      if (this.entering === undefined) return;
      call.ticket = ticket;
      this.pending.put(call);
    } finally {
      this.entering = undefined;
    }
  }

  // Released with the call, however it goes.
  private holdKey(call: Call): void {
    if (this.keys !== undefined) this.key = this.keys.hold(call.terms?.key);
  }

  private turnAway(call: Call, thrown: unknown): void {
    this.release(call);
    call.reject(fromCore(about(call), thrown));
    if (!isCoreFailure(thrown)) this.end(fromCore("submit", thrown));
  }

  // The call is answered with the last part of its result, or once one fails.
  private addPart(results: Results, words: Uint32Array, at: number): void {
    const call = this.pending.get(words[at]);
    if (call === undefined) return;
    const outcome = collect(call, results, {
      offset: words[at + 1],
      words: words[at + 2],
      at: words[at + 4],
      total: words[at + 5],
    });
    if (outcome === undefined) return;
    this.pending.take(call.ticket);
    this.release(call);
    if (outcome instanceof FramebatchError) call.reject(outcome);
    else if (call.reading === undefined) call.resolve(outcome);
    else finishReading(call, outcome);
  }

  // A full batch is sent, and on the CPU answered, before `submit` returns.
  private takeEntering(): Call | undefined {
    const call = this.entering;
    this.entering = undefined;
    return call;
  }

  private make(method: Answerable, terms: Terms | undefined): Call {
    const call = new Call(method, terms, this);
    if (terms !== undefined) call.watch();
    return call;
  }

  private entered(call: Call): void {
    if (this.explained !== undefined) this.explained.add(call);
    else if (call.ticket !== ANSWERED) this.announce(call);
  }

  private announce(call: Call): void {
    if (this.queued === 0) this.warning?.opened();
    this.queued += 1;
    if (call.terms !== undefined && call.terms.now) this.flush();
    else this.clock.called();
  }

  private giveUp(call: Call, reason: unknown): void {
    const { ticket } = call;
    if (ticket === ANSWERED) return;
    const entered = this.pending.take(ticket) !== undefined;
    this.release(call);
    call.reject(reason);
    if (!entered) return;
    try {
      this.core!.abort(ticket);
      this.room.offer(this.core!);
    } catch (thrown) {
      this.end(fromCore("abort", thrown));
    }
  }

  private stop(core: Core): void {
    this.clock.dispose();
    this.nudger.dispose();
    this.preparer.dispose();
    // A core that failed cannot be trusted to clean up, and is left alone.
    if (this.ended!.code !== "fatal") {
      core.dispose();
      this.finalStats = core.stats() as Stats;
    }
    this.core = undefined;
  }

  private release(call: Call): void {
    call.release();
    this.keys?.release(call.terms?.key);
    if (call.reading?.pinned === undefined) return;
    for (const leaf of call.reading.pinned) this.residents.unpin(leaf);
  }
}
