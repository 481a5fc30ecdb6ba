// Work larger than memory: chunks go in, their results come out in the same order.
//
// A bounded number of chunks is in flight, so that one is uploaded while another is
// computed; chunks whose results nobody asks for are not computed. The caller's function
// makes the calls; of batches nothing is known here.

import { invalid, kindOf } from "../checks/errors.js";
import { checkFunction, checkOptions, checkSignal } from "../checks/options.js";
import { checkPriority, type Priority } from "../checks/priority.js";
import { listen } from "../platform/abort.js";
import { bytesOf, depthFor } from "./depth.js";
import { type Chunks, chunksOf, type StreamSource } from "./source.js";

/** What has come out of a stream so far. */
export interface StreamProgress {
  /** Chunks whose results were handed over, this one included. */
  done: number;
  /** Chunks in all, where the source is an array. */
  total: number | undefined;
  /** Bytes of those chunks: of arrays, lists of arrays, and objects that hold arrays. */
  bytes: number;
}

/** What `gpu.stream` and `gpu.transform` take last. All of it is optional. */
export interface StreamOptions {
  /**
   * Chunks taken from the source and not handed over as results yet, at most.
   * Default: as many as hold 16 MiB with their results, from 3 to 64, and no more
   * than fit the memory budget; 2 until the first result is there.
   */
  depth?: number;
  /** Ends the stream: it rejects with `signal.reason`. Default: none. */
  signal?: AbortSignal;
  /**
   * The priority of the calls that `fn` makes before it first awaits and that say none of
   * their own. Default: `normal`.
   */
  priority?: Priority;
  /** Hears of each result before it is handed over; what it throws ends the stream. Default: none. */
  onProgress?: (progress: StreamProgress) => void;
}

/** What the function of a stream is given beside its chunk. */
export interface ChunkContext {
  /** The chunk's place, from 0. */
  readonly index: number;
  /** Aborts if the stream ends before this chunk's turn; give it to calls, and they are given up too. */
  readonly signal: AbortSignal;
}

/** Turns a chunk into its result, usually by a call of the session. */
export type ChunkFunction<Chunk, Result> = (
  chunk: Chunk,
  context: ChunkContext,
) => Result | PromiseLike<Result>;

/** What a stream asks of its session. */
export interface Streaming {
  /** While more chunks began than ended, calls wait for no frame. One that is left ends too. */
  begin(): void;
  end(): void;
  /** Runs what makes calls, which have this priority unless they say another. */
  run<Result>(priority: Priority | undefined, work: () => Result): Result;
  /** Sends what was called so far. */
  flush(): void;
  /** Items of so many bytes that the memory budget holds. */
  fitting(bytes: number): number;
}

const NAMES: Record<keyof StreamOptions, true> = {
  depth: true,
  signal: true,
  priority: true,
  onProgress: true,
};

/** Bytes from which on a chunk is sent at once: its upload need not wait for the next chunk. */
const LARGE = 1 << 20;

/** A chunk in flight. */
class Entry<Result> implements ChunkContext {
  result!: Promise<Result>;
  /** Whether the session counts it among the chunks whose calls wait for no frame. */
  isCounted = false;
  private controller: AbortController | undefined;

  constructor(
    readonly index: number,
    /** Bytes of the chunk. */
    readonly bytes: number,
  ) {}

  // Each chunk has a signal of its own, made when it is used: on one signal for all chunks listeners would add up.
  get signal(): AbortSignal {
    return (this.controller ??= new AbortController()).signal;
  }

  abort(reason: unknown): void {
    this.controller ??= new AbortController();
    this.controller.abort(reason);
  }
}

/** `unwanted`: nothing more is taken from the source. `ended`: it ended or failed by itself. */
type SourceState = "open" | "unwanted" | "ended";

/** `aborted`: the caller's signal ended the stream. */
type StreamState = "running" | "over" | "aborted";

const DONE = { done: true, value: undefined } as const;

/**
 * The results of `gpu.stream`, in the order of their chunks. Nothing is taken from the
 * source before the first `next`. Leaving the loop ends it: the source is cancelled,
 * and what is on its way is given up, or its result dropped.
 */
export class Stream<Chunk, Result> implements AsyncIterableIterator<
  Awaited<Result>,
  undefined
> {
  private readonly chunks: Chunks<Chunk>;
  private readonly options: StreamOptions;
  private readonly progress: StreamProgress;
  private entries: Entry<Awaited<Result>>[] = [];
  private started = 0;
  /** Bytes of the newest chunk that is done, and of its result. */
  private bytesEach: number | undefined;
  private isFilling = false;
  private source: SourceState = "open";
  private state: StreamState = "running";
  /** The newest `next`, which settles after all others. */
  private turn: Promise<unknown> = Promise.resolve();
  /** Rejects what `next` waits for. */
  private interrupt: (reason: unknown) => void = () => {};
  /** Wakes a `next` that waits for a chunk. */
  private arrived: () => void = () => {};

  constructor(
    about: string,
    source: StreamSource<Chunk>,
    private readonly work: ChunkFunction<Awaited<Chunk>, Result>,
    private readonly session: Streaming,
    options: StreamOptions = {},
  ) {
    checkStream(about, work, options);
    this.options = { ...options };
    this.chunks = chunksOf(about, source);
    this.progress = { done: 0, total: this.chunks.total, bytes: 0 };
    const { signal } = options;
    listen(signal, this);
    if (signal?.aborted) this.handleEvent();
  }

  /** The next result. Calls of it are answered in turn. */
  next(): Promise<IteratorResult<Awaited<Result>, undefined>> {
    const next = this.turn.then(() => this.take());
    this.turn = next.catch(() => {});
    return next;
  }

  /** Ends the stream; resolves when the source has heard of it. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    await this.finish(undefined);
    return DONE;
  }

  /** Itself: it can be gone through once. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Lets `await using` end the stream. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.finish(undefined);
  }

  /** The listener of the caller's signal. */
  handleEvent(): void {
    const { reason } = this.options.signal!;
    this.interrupt(reason);
    void this.finish(reason);
    this.state = "aborted";
  }

  /** Ends the stream because of `reason`. */
  finish(reason: unknown): Promise<void> {
    if (this.state !== "running") return Promise.resolve();
    this.state = "over";
    const { entries, source } = this;
    if (source === "open") this.source = "unwanted";
    this.entries = [];
    this.options.signal?.removeEventListener("abort", this);
    this.interrupt(DONE);
    for (const entry of entries) {
      // The chunk's function may never end, and calls of others wait for their frames again.
      this.uncount(entry);
      entry.abort(reason);
    }
    if (source === "ended") return Promise.resolve();
    const canceled = this.chunks.cancel(reason);
    canceled.catch(() => {});
    // A source that was asked for a chunk may never answer, so its cancellation is not awaited.
    return this.isFilling ? Promise.resolve() : canceled;
  }

  private async take(): Promise<IteratorResult<Awaited<Result>, undefined>> {
    this.throwIfAborted();
    if (this.state === "over") return DONE;
    try {
      void this.fill();
      while (this.entries.length === 0 && this.source === "open")
        await this.wait(new Promise<void>((done) => (this.arrived = done)));
      if (this.entries.length > 0) return await this.deliver(this.entries[0]);
      // Between a chunk's coming and this step the signal may have ended all.
      this.throwIfAborted();
      void this.finish(undefined);
      return DONE;
    } catch (error) {
      if (error === DONE) return DONE;
      void this.finish(error);
      throw error;
    }
  }

  private throwIfAborted(): void {
    if (this.state === "aborted") throw this.options.signal!.reason;
  }

  private async deliver({
    result,
    bytes,
  }: Entry<Awaited<Result>>): Promise<IteratorYieldResult<Awaited<Result>>> {
    const value = await this.wait(result);
    this.entries.shift();
    this.progress.done += 1;
    this.progress.bytes += bytes;
    this.options.onProgress?.({ ...this.progress });
    // The next chunk begins before the caller looks at this result.
    void this.fill();
    return { done: false, value };
  }

  /** Takes chunks until as many are in flight as the depth allows. */
  private async fill(): Promise<void> {
    if (this.isFilling) return;
    this.isFilling = true;
    try {
      while (this.source === "open" && this.entries.length < this.depth) {
        const { done, value } = await this.chunks.next();
        if (done === true) this.source = "ended";
        // A chunk that comes after the stream's end is dropped.
        else if (this.isOpen) this.begin(value as Awaited<Chunk>);
      }
    } catch (error) {
      if (this.isOpen) this.fail(error);
      this.source = "ended";
    } finally {
      this.isFilling = false;
      this.arrived();
    }
  }

  // Asked after a wait, during which anything may have ended the source.
  private get isOpen(): boolean {
    return this.source === "open";
  }

  private get depth(): number {
    const { depth } = this.options;
    return (
      depth ?? depthFor(this.bytesEach, (each) => this.session.fitting(each))
    );
  }

  private begin(chunk: Awaited<Chunk>): void {
    const bytes = bytesOf(chunk);
    const entry = this.enter(bytes);
    const { session } = this;
    const { priority } = this.options;
    entry.isCounted = true;
    session.begin();
    entry.result = new Promise<Awaited<Result>>((resolve) => {
      const work = (): unknown => this.work(chunk, entry);
      resolve(session.run(priority, work) as Awaited<Result>);
    });
    if (bytes >= LARGE && priority !== "low") session.flush();
    entry.result.then(
      (value) => {
        this.uncount(entry);
        this.bytesEach = bytes + bytesOf(value);
        void this.fill();
      },
      () => {
        this.uncount(entry);
        // Results before the failed one still come; chunks behind it are of no use.
        if (this.isOpen) this.source = "unwanted";
      },
    );
    this.arrived();
  }

  private uncount(entry: Entry<Awaited<Result>>): void {
    if (entry.isCounted) this.session.end();
    entry.isCounted = false;
  }

  private fail(error: unknown): void {
    const entry = this.enter(0);
    entry.result = Promise.reject(error);
    entry.result.catch(() => {}); // The error is told in its turn, or never.
  }

  private enter(bytes: number): Entry<Awaited<Result>> {
    const entry = new Entry<Awaited<Result>>(this.started, bytes);
    this.started += 1;
    this.entries.push(entry);
    return entry;
  }

  /** Waits for something, unless the stream ends before. */
  private wait<Value>(promise: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.interrupt = reject;
      promise.then(resolve, reject);
    });
  }
}

function checkStream(
  about: string,
  work: unknown,
  options: StreamOptions,
): void {
  if (typeof work !== "function") {
    throw invalid(about, `fn must be a function, got ${kindOf(work)}`);
  }
  checkOptions(about, options, NAMES);
  const { depth, signal, priority, onProgress } = options;
  if (depth !== undefined && !(Number.isSafeInteger(depth) && depth >= 1)) {
    throw invalid(about, `depth must be a whole number from 1, got ${depth}`);
  }
  checkSignal(about, signal);
  checkPriority(about, priority);
  checkFunction(about, "onProgress", onProgress);
}
