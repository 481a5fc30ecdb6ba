// Does to a core what a page has logged: gives its calls, tensors and structures the numbers of
// that core, and says how each call ended.
//
// Sessions are opened and ended in `hosted-session.ts`.

import { Call } from "../calls/call.js";
import { type Core, forget } from "../core/core.js";
import type { Results } from "../memory/results.js";
import type { Calls } from "../session/calls.js";
import { explainBy, explainNoMore } from "./compilers.js";
import { MeasuredTickets } from "./measured-tickets.js";
import type { Outbox } from "./outbox.js";
import {
  ARENA,
  CALL_WORDS,
  type CompilerMessage,
  type Failure,
  ORDER,
  type Order,
  type Request,
  type Structure,
} from "./protocol.js";
import {
  failureOf,
  ReplayedOperands,
  type Replaying,
  termsOf,
} from "./replayed-operands.js";

const NO_WORDS = new ArrayBuffer(0);

/** What has a number of the page and one of the core, unless the core refused it. */
interface Numbered {
  readonly number: number;
  failure?: Failure | undefined;
}

/** Where the replay of a request is. */
interface Position {
  readonly request: Request;
  readonly words: Uint32Array;
  /** In the log, the orders, the arena and its names. */
  log: number;
  order: number;
  word: number;
  name: number;
}

/** The replay of one session. */
export class Replay implements Replaying {
  /** Calls that were entered. */
  seen = 0;
  /** Whether the page wants the facts of batches. */
  isMeasuring = false;
  /** Whether calls are planned only, which answers none. */
  private isPlanning = false;
  readonly measured = new MeasuredTickets();
  /** Pending calls, by the page's tickets. */
  private readonly calls = new Map<number, Call>();
  /** The newest of the page's tickets. */
  private ticket = 0;
  private readonly structures = new Map<number, Numbered>();
  private readonly tensors = new Map<number, Numbered>();
  /** Tensors that were cleared: device pages. */
  private readonly cleared = new Set<number>();
  /** Fences that have not passed, the oldest first. */
  private readonly fences: { readonly page: number; readonly core: number }[] =
    [];
  private newestPassed = 0;
  /** What compilers wait for. */
  private readonly asked = new Map<
    number,
    (text: string | undefined) => void
  >();
  private questions = 0;

  constructor(
    private readonly session: Calls,
    private readonly core: Core,
    private readonly outbox: Outbox,
  ) {}

  /** Does what the page asked. */
  run(request: Request): void {
    const { arena } = request;
    const words = new Uint32Array(arena ?? NO_WORDS);
    const at = { request, words, log: 0, order: 0, word: ARENA, name: 0 };
    while (at.log < request.log.length) this.step(at);
    if (arena !== undefined) this.outbox.give(arena);
  }

  /** The newest fence that has passed. */
  get passed(): number {
    const { fences } = this;
    while (fences.length > 0 && this.core.has_passed(fences[0].core)) {
      this.newestPassed = fences.shift()!.page;
    }
    return this.newestPassed;
  }

  /** The device pages whose readers the core refuses. */
  get lost(): number[] {
    return [...this.cleared].filter((page) =>
      this.core.is_lost(this.tensors.get(page)!.number),
    );
  }

  structureOf(page: number): number {
    return numberOf(this.structures.get(page));
  }

  tensorOf(page: number): number {
    return numberOf(this.tensors.get(page));
  }

  answered(
    ticket: number,
    results: Results,
    offset: number,
    words: number,
  ): void {
    this.outbox.answer(ticket, results, offset, words);
    this.calls.delete(ticket);
  }

  refused(ticket: number, failure: Failure | undefined): void {
    this.calls.delete(ticket);
    // A page that planned calls, or ended with its session, has rejected its calls itself.
    if (failure === undefined || this.isPlanning || this.session.ended) return;
    this.outbox.refuse(ticket, failure);
  }

  /** The page answers no more. */
  end(): void {
    explainNoMore(this.askPage);
    for (const answer of this.asked.values()) answer(undefined);
    this.asked.clear();
  }

  private readonly askPage = (
    source: string,
    messages: readonly CompilerMessage[],
  ): Promise<string | undefined> => {
    const question = (this.questions += 1);
    this.outbox.add({ type: "compiled", question, source, messages });
    return new Promise((answer) => this.asked.set(question, answer));
  };

  private step(at: Position): void {
    const { log, orders } = at.request;
    if (log[at.log] === ORDER) {
      at.log += 1;
      at.order += 1;
      this.order(orders[at.order - 1], at);
    } else this.call(at);
  }

  private call(at: Position): void {
    const { request, words: from } = at;
    const [kind, structure, rows, , key, words] = request.log.subarray(
      at.log,
      at.log + CALL_WORDS,
    );
    const scalar = new Float32Array(request.log.buffer, (at.log + 3) * 4, 1)[0];
    const start = at.word;
    const firstName = at.name;
    at.log += CALL_WORDS;
    at.word += words;
    while (request.names[at.name] < at.word) at.name += 1;
    this.ticket = (this.ticket + 1) >>> 0;
    const operands = new ReplayedOperands(this, this.ticket, {
      structure,
      rows,
      scalar,
      operands: from.subarray(start, start + words),
      names: request.names.subarray(firstName, at.name),
      start,
    });
    const call = new Call(operands, termsOf(kind, key), this.session);
    call.promise.catch(ignore); // The page is told by the operands.
    this.seen += 1;
    this.calls.set(this.ticket, call);
    this.session.enter(call);
    if (this.isMeasuring) this.measured.add(call.ticket, this.ticket);
  }

  private order(order: Order, at: Position): void {
    const { core, session } = this;
    switch (order[0]) {
      case "make":
        return void this.structures.set(order[1], this.make(order[2]));
      case "forget":
        return this.forget(order[1]);
      case "kernel":
        return core.kernel(order[1], order[2], order[3], order[4], undefined);
      case "hold":
        return this.hold(order[1], order[2], order[3]);
      case "fill": {
        const [, page, data, home, row] = order;
        return this.place(page, (number) => core.fill(number, data, home, row));
      }
      case "allocate":
        return this.place(order[1], (number) =>
          core.allocate(number, order[2]),
        );
      case "clear":
        this.cleared.add(order[1]);
        return this.place(order[1], (number) => core.clear(number, order[2]));
      case "patch": {
        const [, page, word, data] = order;
        return this.place(page, (number) => core.patch(number, word, data));
      }
      case "refuse_readers":
        return core.refuse_readers(this.tensors.get(order[1])!.number);
      case "heal":
        return core.heal(this.tensors.get(order[1])!.number);
      case "release":
        return this.release(order[1]);
      case "fence":
        this.fences.push({ page: order[1], core: core.fence() });
        return this.outbox.touch();
      case "abort":
        return this.abort(order[1]);
      case "send":
        // What is due is sent by the clock, which has heard of the calls.
        if (order[1] !== "due") session.send(order[1] === "at once");
        return;
      case "measure":
        this.isMeasuring = order[1];
        return core.measure(order[1]);
      case "plan":
        return this.plan(at);
      case "explains":
        return explainBy(core, this.askPage);
      case "explained":
        this.asked.get(order[1])?.(order[2]);
        return void this.asked.delete(order[1]);
      case "explain":
      case "warmup":
        return; // The end of a plan.
      default:
        return core[order[0]]();
    }
  }

  private make([maker, ...sizes]: Structure): Numbered {
    const make = this.core[maker as "chain"].bind(this.core) as (
      ...sizes: unknown[]
    ) => number;
    return this.numbered(make(...sizes));
  }

  private numbered(number: number): Numbered {
    return { number, failure: number < 0 ? this.failure() : undefined };
  }

  private failure(): Failure {
    return this.core.failure() as Failure;
  }

  private forget(pages: Uint32Array): void {
    const numbers: number[] = [];
    for (const page of pages) {
      const known = this.structures.get(page);
      this.structures.delete(page);
      if (known !== undefined && known.number >= 0) numbers.push(known.number);
    }
    forget(this.core, numbers);
  }

  private hold(
    page: number,
    words: number | undefined,
    apart: Uint32Array | undefined,
  ): void {
    const others = apart?.map((page) => this.tensors.get(page)!.number);
    const known = others?.filter((number) => number >= 0);
    const number = this.core.hold(words, known);
    this.tensors.set(page, this.numbered(number));
  }

  private place(page: number, place: (number: number) => number): void {
    const tensor = this.tensors.get(page)!;
    if (tensor.number < 0) return;
    const failure = place(tensor.number) < 0 ? this.failure() : undefined;
    // The page fills all tensors again when there is another device.
    if (failure?.code !== "device-lost") tensor.failure = failure;
  }

  private release(page: number): void {
    const tensor = this.tensors.get(page)!;
    this.tensors.delete(page);
    this.cleared.delete(page);
    if (tensor.number >= 0) this.core.release(tensor.number);
  }

  private abort(ticket: number): void {
    const call = this.calls.get(ticket);
    if (call === undefined) return;
    (call.operands as ReplayedOperands).isGivenUp = true;
    this.session.giveUp(call, undefined);
    this.outbox.touch();
  }

  // What is planned stands between two orders.
  private plan(at: Position): void {
    const { session, outbox } = this;
    const { orders } = at.request;
    const isEnd = ([type]: Order) => type === "explain" || type === "warmup";
    const end = orders.indexOf(orders.slice(at.order).find(isEnd)!);
    const make = (): void => {
      while (at.order <= end) this.step(at);
    };
    const [type, number] = orders[end] as readonly [string, number];
    this.isPlanning = true;
    try {
      if (type === "warmup") this.warm(number, make);
      else {
        const text = session.explain(make);
        outbox.add({ type: "explained", question: number, text });
      }
    } catch (thrown) {
      const text = failureOf(thrown);
      if (type === "warmup") outbox.refuse(number, text);
      else outbox.add({ type: "explained", question: number, text });
    } finally {
      this.isPlanning = false;
      // A warm-up is answered as a call is.
      if (type === "warmup") this.ticket = number;
    }
  }

  private warm(ticket: number, make: () => void): void {
    const { outbox, session } = this;
    session.warmup(make).then(
      () => outbox.accept(ticket),
      (reason) => session.ended ?? outbox.refuse(ticket, failureOf(reason)),
    );
  }
}

function numberOf(known: Numbered | undefined): number {
  if (known === undefined) throw new Error("no such number");
  if (known.failure !== undefined) throw known.failure;
  return known.number;
}

function ignore(): void {}
