// A batch of items and its outcome: what became of each item, and how many succeeded.
//
// The caller's function makes the calls of an item. What is called together is sent
// together, as always: of batches on the device nothing is known here.

import { FramebatchError, invalid, kindOf, report } from "../checks/errors.js";
import { checkFunction, checkOptions, checkSignal } from "../checks/options.js";
import { listen } from "../platform/abort.js";
import type { Session } from "../session/session.js";

/** What became of an item; `skipped` did not begin, or was given up. */
export type Outcome<Result> =
  PromiseSettledResult<Result> | { readonly status: "skipped" };

/** What `gpu.runAll` takes last. All of it is optional. */
export interface RunAllOptions<Item = unknown, Result = unknown> {
  /** Whether no item begins once another one has failed. Default: false. */
  stopOnFirstError?: boolean;
  /** Items that have begun and not settled, at most. Default: no limit, all begin at once. */
  maxConcurrent?: number;
  /** Stops the run: items that have not begun are skipped. Default: none. */
  signal?: AbortSignal;
  /**
   * Hears of each item that has settled, in the order in which they do, and not of those
   * that are skipped. What it throws is reported, and changes nothing. Default: none.
   */
  onSettled?: (
    result: PromiseSettledResult<Result>,
    item: Item,
    index: number,
  ) => void;
}

/** What the function of a run is given beside its item. */
export interface ItemContext {
  /** The item's place, from 0. */
  readonly index: number;
  /** Aborts when the run stops; give it to calls, and what stops is given up. */
  readonly signal: AbortSignal;
}

/** Computes an item, usually by a call of the session. */
export type ItemFunction<Item, Result> = (
  item: Item,
  context: ItemContext,
) => Result | PromiseLike<Result>;

/** The outcome of a run. */
export interface RunAllOutcome<Result> {
  /** What became of each item, in the order of the items. */
  results: Outcome<Result>[];
  succeeded: number;
  failed: number;
  skipped: number;
  /** From the call of `runAll` until the last item settled, in milliseconds. */
  ms: number;
  /** Batches that the session sent meanwhile, other callers' included. */
  batches: number;
}

const ABOUT = "runAll";
const NAMES: Record<keyof RunAllOptions, true> = {
  stopOnFirstError: true,
  maxConcurrent: true,
  signal: true,
  onSettled: true,
};
const SKIPPED = { status: "skipped" } as const;

/** Runs `fn` for each item. Rejects for wrong arguments, and for nothing else. */
export async function runAll<Item, Result>(
  session: Session,
  items: Iterable<Item>,
  fn: ItemFunction<Item, Result>,
  options: RunAllOptions<Item, Awaited<Result>> = {},
): Promise<RunAllOutcome<Awaited<Result>>> {
  check(items, fn, options);
  const [start, before] = [performance.now(), session.stats().batches];
  const run = new Run<Item, Awaited<Result>>([...items], fn, { ...options });
  const counts = await run.finish();
  return {
    ...counts,
    ms: performance.now() - start,
    batches: session.stats().batches - before,
  };
}

/** An item that has begun and not settled. */
class Begun implements ItemContext {
  private controller: AbortController | undefined;

  constructor(readonly index: number) {}

  // Each item has a signal of its own, made when it is used: on one signal for all items listeners would add up.
  get signal(): AbortSignal {
    return (this.controller ??= new AbortController()).signal;
  }

  abort(reason: unknown): void {
    this.controller ??= new AbortController();
    this.controller.abort(reason);
  }
}

/** The items of one run. */
class Run<Item, Result> {
  private readonly results: Outcome<Result>[];
  private readonly begun = new Set<Begun>();
  /** Items that have begun so far. */
  private started = 0;
  private succeeded = 0;
  private failed = 0;
  /** Why no further item begins. */
  private stopped: { readonly reason: unknown } | undefined;
  private readonly over: Promise<void>;
  private end!: () => void;

  constructor(
    private readonly items: readonly Item[],
    private readonly work: ItemFunction<Item, unknown>,
    private readonly options: RunAllOptions<Item, Result>,
  ) {
    this.results = items.map(() => SKIPPED);
    this.over = new Promise((done) => (this.end = done));
  }

  /** Begins the items, and waits for all that have begun. */
  async finish(): Promise<
    Pick<RunAllOutcome<Result>, "results" | "succeeded" | "failed" | "skipped">
  > {
    const { signal } = this.options;
    listen(signal, this);
    if (signal?.aborted) this.handleEvent();
    this.beginMore();
    await this.over;
    signal?.removeEventListener("abort", this);
    const { results, succeeded, failed } = this;
    const skipped = results.length - succeeded - failed;
    return { results, succeeded, failed, skipped };
  }

  /** The listener of the caller's signal. */
  handleEvent(): void {
    this.stop(this.options.signal!.reason);
  }

  private stop(reason: unknown): void {
    if (this.stopped !== undefined) return;
    this.stopped = { reason };
    for (const context of this.begun) context.abort(reason);
  }

  private beginMore(): void {
    const { maxConcurrent = Infinity } = this.options;
    while (
      this.stopped === undefined &&
      this.started < this.items.length &&
      this.begun.size < maxConcurrent
    ) {
      this.begin(this.started);
    }
    const isAll = this.started === this.items.length;
    if (this.begun.size === 0 && (isAll || this.stopped !== undefined)) {
      this.end();
    }
  }

  private begin(index: number): void {
    this.started += 1;
    const context = new Begun(index);
    this.begun.add(context);
    const result = new Promise<Result>((resolve) =>
      resolve(this.work(this.items[index], context) as Result),
    );
    result.then(
      (value) => this.settle(context, { status: "fulfilled", value }),
      (reason) => this.settle(context, { status: "rejected", reason }),
    );
  }

  private settle(context: Begun, result: PromiseSettledResult<Result>): void {
    this.begun.delete(context);
    if (!this.isGivenUp(result)) this.record(context.index, result);
    this.beginMore();
  }

  /** Whether an item rejected because the run has stopped. */
  private isGivenUp(result: PromiseSettledResult<Result>): boolean {
    const { stopped } = this;
    if (result.status === "fulfilled" || stopped === undefined) return false;
    return result.reason === stopped.reason;
  }

  private record(index: number, result: PromiseSettledResult<Result>): void {
    this.results[index] = result;
    if (result.status === "fulfilled") this.succeeded += 1;
    else this.failed += 1;
    try {
      this.options.onSettled?.(result, this.items[index], index);
    } catch (error) {
      report(error);
    }
    if (result.status === "rejected" && this.options.stopOnFirstError) {
      this.stop(
        new FramebatchError(
          "aborted",
          `${ABOUT}: item ${index} failed before, and stopOnFirstError is set`,
          { cause: result.reason },
        ),
      );
    }
  }
}

function check(
  items: unknown,
  fn: unknown,
  options: RunAllOptions<never, never>,
): void {
  if (typeof (items as Iterable<unknown>)?.[Symbol.iterator] !== "function") {
    throw invalid(
      ABOUT,
      `items must be an array or another iterable, got ${kindOf(items)}`,
    );
  }
  if (typeof fn !== "function") {
    throw invalid(ABOUT, `fn must be a function, got ${kindOf(fn)}`);
  }
  checkOptions(ABOUT, options, NAMES);
  const { stopOnFirstError = false, maxConcurrent = Infinity } = options;
  if (typeof stopOnFirstError !== "boolean") {
    throw invalid(
      ABOUT,
      `stopOnFirstError must be true or false, got ${kindOf(stopOnFirstError)}`,
    );
  }
  const isCount = Number.isSafeInteger(maxConcurrent) && maxConcurrent >= 1;
  if (!isCount && maxConcurrent !== Infinity) {
    throw invalid(
      ABOUT,
      `maxConcurrent must be a whole number from 1, got ${String(maxConcurrent)}`,
    );
  }
  checkSignal(ABOUT, options.signal);
  checkFunction(ABOUT, "onSettled", options.onSettled);
}
