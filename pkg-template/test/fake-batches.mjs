// The batches of the core of the tests: queued, in flight, and answered through a settle
// table in the core's memory, as the Rust core answers them.
//
// A batch is answered when a test says so. What calls compute is in `fake-calls.mjs` and
// `fake-chain.mjs`.

import { aligned, compute, insert, storeSample } from "./fake-calls.mjs";
import { names, run } from "./fake-chain.mjs";

const TABLE = 16;
const TABLE_ENTRIES = 20000;
const PART = 0xffffffff;

/** The first word behind the settle table. */
export const ARENA = TABLE + TABLE_ENTRIES * 4;

const CODES = [
  "unsupported insecure-context no-adapter device-lost out-of-memory limit-exceeded invalid-input",
  "shader queue-full superseded timeout aborted disposed fatal",
]
  .join(" ")
  .split(" ");

/** The batches of one core. */
export class Batches {
  constructor(memory, settle) {
    this.memory = memory;
    this.send = settle;
    this.words = new Uint32Array(memory.buffer);
    /** What lies on the device, by number; undefined until it is filled. */
    this.tensors = new Map();
    this.queued = [];
    /** What waits of other priorities than normal. */
    this.high = [];
    this.low = [];
    this.flights = [];
    /** The number of the batch that is open. */
    this.batch = 0;
    /** The tickets of warm-ups that are not over. */
    this.warmups = [];
    /** Whether batches are measured, and how long kernels take. */
    this.measuring = false;
    this.gpuMs = null;
    /** How many operations these have. */
    this.flops = null;
  }

  facts() {
    const facts = this.told;
    this.told = undefined;
    return facts;
  }

  /** Answers the oldest batch in flight: with results, or all with one failure. */
  answer({ mapped = true, failure, only = () => true } = {}) {
    const calls = this.flights.shift();
    const failed = calls.filter((call) => failure !== undefined && only(call));
    if (failed.length > 0) this.settle(calls, failure, only, mapped);
    else this.settle(calls, undefined, undefined, mapped);
  }

  /**
   * Answers the oldest batch in flight in chunks of so many words, each call that is
   * in more than one of them in parts. `behind` runs after each chunk; the chunk
   * `failing` comes back with `failure`.
   */
  answerInChunks(words, { behind = () => {}, failing, failure } = {}) {
    let calls = this.flights[0];
    const batch = calls;
    let next = 0;
    for (const call of calls) {
      call.from = next;
      next += call.shape.result;
    }
    const all = new Uint32Array(next);
    for (const call of calls) this.compute(call, all, call.from);
    for (let chunk = 0; chunk * words < all.length; chunk += 1) {
      const start = chunk * words;
      const end = Math.min(start + words, all.length);
      const fails = chunk === failing;
      const inside = ({ from, shape }) =>
        from < end && from + shape.result > start;
      const table = calls.filter(inside).flatMap((call) => {
        const { from, ticket } = call;
        const { result } = call.shape;
        const first = Math.max(start, from);
        const length = Math.min(end, from + result) - first;
        if (fails) return [ticket, 0, 0, CODES.indexOf(failure.code) + 1];
        if (length === result) return [ticket, first - start, length, 0];
        const rest = [first - from, result, 0, 0];
        return [ticket, first - start, length, PART, ...rest];
      });
      if (fails) calls = calls.filter((call) => !inside(call));
      this.view().set(table, TABLE);
      const source = all.slice(start, end).buffer;
      const message = fails ? failure.message : undefined;
      const last = end === all.length;
      if (last) {
        this.flights.shift();
        this.note(batch);
      }
      this.send(TABLE, table.length / 4, source, message, last);
      structuredClone(source, { transfer: [source] });
      behind(chunk);
    }
  }

  /** Rejects a queued call, as the policy `latest` does. */
  supersede(ticket) {
    const at = this.queued.findIndex((call) => call.ticket === ticket);
    this.settle(this.queued.splice(at, 1), {
      code: "superseded",
      message: "a newer call came",
    });
  }

  /** Ends the oldest warm-up. */
  warmed(failure) {
    const status = failure ? CODES.indexOf(failure.code) + 1 : 0;
    this.view().set([this.warmups.shift(), 0, 0, status], TABLE);
    this.send(TABLE, 1, null, failure?.message, false);
  }

  settle(calls, failure, only = () => true, mapped = true) {
    if (failure === undefined) {
      only = (call) => this.lacks(call);
      failure = { code: "device-lost", message: "a tensor was lost" };
      if (!calls.some(only)) failure = undefined;
    }
    const words = calls.reduce((sum, call) => sum + call.shape.result, 0);
    const source = mapped
      ? new ArrayBuffer(Math.max(words, 1) * 4)
      : this.scratch(words);
    const start = mapped ? 0 : this.scratchAt;
    let offset = start;
    calls.forEach((call, index) => {
      const status =
        failure && only(call) ? CODES.indexOf(failure.code) + 1 : 0;
      if (status === 0) this.compute(call, new Uint32Array(source), offset);
      this.view().set(
        [call.ticket, offset, call.shape.result, status],
        TABLE + index * 4,
      );
      offset += call.shape.result;
    });
    const message = failure?.message;
    this.note(calls);
    this.send(TABLE, calls.length, mapped ? source : null, message, true);
    // Unmapped: whoever kept a view of it finds it gone.
    if (mapped) structuredClone(source, { transfer: [source] });
  }

  /** The facts of a batch, where they are asked for. */
  note(calls) {
    if (!this.measuring || calls.length === 0) return;
    const [first, last] = [calls[0].ticket, calls.at(-1).ticket];
    this.told = {
      ...{ first, last, calls: calls.length, subBatches: 1, engine: "cpu" },
      ...{ id: first, items: 100 * calls.length, failed: 0, submits: 1 },
      ...{ bytesUp: 10, bytesDown: 20, startTime: performance.now() },
      ...{ memoryBytes: 4096, itemsPerSecond: 6, itemsPerMs: 0.006 },
      ...{ flops: this.flops, kernelBytes: 700 },
      ...{ kernelBytesPerSecond: null, flopsPerSecond: null },
      ...{ waitMs: 1, encodeMs: 2, transferMs: 3, gpuMs: this.gpuMs },
      ...{ readMs: 4, wallMs: 9, resolutionMs: null, bytesPerSecond: 5 },
      ...{ kernelEfficiency: null, utilization: null },
    };
  }

  compute(call, source, offset) {
    const { chain, isStored } = call.spec;
    if (call.spec.op === "insertion") {
      return insert(call, this.view(), this.tensors);
    }
    if (isStored) return storeSample(call, this.view(), this.tensors);
    if (chain === undefined) return compute(call, this.view(), source, offset);
    run(chain, this.view(), call.at, this.tensors, source, offset);
  }

  /** Whether a call names a tensor that is not there. */
  lacks({ spec, at, rows }) {
    const wanted = this.wanted(spec, at, rows);
    return wanted.some((number) => this.tensors.get(number) === undefined);
  }

  wanted({ op, chain, hasSource }, at, rows) {
    if (op === "insertion") {
      const names = at + aligned(3 * rows);
      return [...this.view().subarray(names, names + (hasSource ? 2 : 1))];
    }
    return chain === undefined ? [] : names(chain, this.view(), at);
  }

  scratch(words) {
    const pages = Math.ceil((words * 4) / 65536) + 1;
    this.scratchAt = this.view().length;
    this.memory.grow(pages);
    return this.view().buffer;
  }

  view() {
    if (this.words.length === 0)
      this.words = new Uint32Array(this.memory.buffer);
    return this.words;
  }
}
