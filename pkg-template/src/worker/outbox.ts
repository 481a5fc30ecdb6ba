// What a worker has to say to the page, gathered until its task is over: one message for all
// that was answered meanwhile.
//
// Results are copied once, because what a device has mapped is gone when the core goes on.

import type { CoreFacts } from "../core/core.js";
import type { Results } from "../memory/results.js";
import type { Failure, News, Report, Settled, State } from "./protocol.js";

/** What of a port an outbox needs. */
export type Posting = (report: Report, owned: ArrayBuffer[]) => void;

/** The answers of one chunk, so far. */
class Draft {
  private readonly table: number[] = [];
  private readonly errors: Failure[] = [];
  private bytes = new Uint8Array(0);
  private used = 0;

  constructor(words: number) {
    try {
      this.makeRoom(words);
    } catch {
      // Calls for whose results there is no memory are refused one by one.
    }
  }

  answer(ticket: number, results: Results, offset: number, words: number) {
    const { used } = this;
    this.makeRoom(used + words);
    results.copy(this.bytes, offset, words, used);
    this.table.push(ticket, used, words, 0);
    this.used = used + words;
  }

  accept(ticket: number): void {
    this.table.push(ticket, 0, 0, 0);
  }

  refuse(ticket: number, { code, message }: Failure): void {
    const last = this.errors.at(-1);
    if (last?.code !== code || last.message !== message) {
      this.errors.push({ code, message });
    }
    this.table.push(ticket, 0, 0, this.errors.length);
  }

  end(last: boolean, facts: CoreFacts | undefined): Settled {
    const { bytes, errors } = this;
    const table = Uint32Array.from(this.table);
    return { table, results: bytes.buffer, errors, last, facts };
  }

  private makeRoom(words: number): void {
    const { bytes } = this;
    if (words * 4 <= bytes.length) return;
    this.bytes = new Uint8Array(Math.max(words * 4, 2 * bytes.length));
    this.bytes.set(bytes);
  }
}

/** The messages of one session to its page. */
export class Outbox {
  private news: News[] = [];
  private arenas: ArrayBuffer[] = [];
  private draft: Draft | undefined;
  private isDue = false;

  constructor(
    private readonly post: Posting,
    /** How the session is; undefined before it is open, and after its end. */
    private readonly state: () => State | undefined,
  ) {}

  /** Adds news behind what was answered. */
  add(news: News): void {
    this.close(false, undefined);
    this.news.push(news);
    this.touch();
  }

  /** Gives an arena back, with the next message. */
  give(arena: ArrayBuffer): void {
    this.arenas.push(arena);
  }

  /** The state of the session has changed: the page hears of it behind this task. */
  touch(): void {
    if (this.isDue) return;
    this.isDue = true;
    queueMicrotask(() => this.send());
  }

  /** Answers of a chunk follow, of so many words. */
  begin(words: number): void {
    this.close(false, undefined);
    this.draft = new Draft(words);
  }

  /** All answers of the chunk were given. */
  end(last: boolean, facts: CoreFacts | undefined): void {
    this.close(last, facts);
    this.touch();
  }

  /** Answers a call. Throws where there is no memory for its result. */
  answer(ticket: number, results: Results, offset: number, words: number) {
    try {
      this.open().answer(ticket, results, offset, words);
    } catch {
      // There may be memory for this result alone.
      this.close(false, undefined);
      this.open().answer(ticket, results, offset, words);
    }
  }

  /** Answers a call that has no result. */
  accept(ticket: number): void {
    this.open().accept(ticket);
  }

  refuse(ticket: number, failure: Failure): void {
    this.open().refuse(ticket, failure);
  }

  /** Sends what there is, now. */
  send(): void {
    this.isDue = false;
    this.close(false, undefined);
    const { news, arenas } = this;
    this.news = [];
    this.arenas = [];
    const owned = [...arenas];
    for (const one of news) {
      if (one.type !== "settled") continue;
      owned.push(one.settled.results, one.settled.table.buffer as ArrayBuffer);
    }
    this.post({ news, state: this.state(), arenas }, owned);
  }

  private open(): Draft {
    this.draft ??= new Draft(0);
    this.touch();
    return this.draft;
  }

  private close(last: boolean, facts: CoreFacts | undefined): void {
    const { draft } = this;
    if (draft === undefined) return;
    this.draft = undefined;
    this.news.push({ type: "settled", settled: draft.end(last, facts) });
  }
}
