// The Rust core as TypeScript sees it: the boundary, written down once.
//
// Types, and the one rule of how a method says that it failed. The generated glue is
// imported by `core-glue.ts` alone.

import type { BatchFacts } from "../metrics/batch-facts.js";
import type { Info } from "../metrics/stats.js";

/** The status of a fragment of a result. */
export const FRAGMENT = 0xffff_ffff;

/**
 * Receives the answers of a batch, or of one chunk of it. `table` is a word index into
 * wasm memory, where `count` entries of four words lie: ticket, offset, length, status.
 * Status 0 is success: the result is `length` words from word `offset` of `source`, or
 * of wasm memory where `source` is null. With status {@link FRAGMENT} these words are a
 * fragment of the result, and a second entry begins with the word of the result where
 * the fragment belongs and the number of words of the whole result; the fragments of a
 * result come in order. Any other status is a one-based index into `CODES`, and
 * `message` describes that error; a table without errors comes with `undefined`. `last`
 * says that no more chunks of the batch are in flight.
 *
 * Invariant: `source` is a mapped range, gone when this function returns.
 */
export type Settle = (
  table: number,
  count: number,
  source: ArrayBuffer | null,
  message: string | undefined,
  last: boolean,
) => void;

/** Added to the home of a tensor whose data comes packed. */
export const AS_GIVEN = 8;

/** Added to the home of a tensor that is filled from a snapshot after a loss. */
export const AS_SNAPSHOT = 16;

/**
 * A session in Rust. A number below 0 says that a method failed, and `failure` then
 * says why. Whatever is thrown is a defect of the library, and ends the session.
 */
export interface Core {
  /**
   * Takes the words at which operands have numbers of tensors, where this is not the core that
   * computes: `worker/remote-core.ts`.
   */
  readonly names?: number[];
  /**
   * The number under which calls of one structure are submitted: an op by the core's
   * name of it, the elements of an item (of a sequence: its steps), and whether every
   * item has a `t` of its own.
   */
  structure(op: string, width: number, each: boolean): number;
  /** The number for gradients of a field, by its formula. */
  field_gradients(formula: string): number;
  /**
   * The number under which calls of one chain are submitted, with 0 rows and no scalar;
   * `words` are those of `tensor/chain-encoder.ts`. Its result is one run of words: the
   * outputs one after the other, each from a multiple of four. A call whose outputs tensors
   * take has no result, and is answered when it was submitted.
   */
  chain(words: Uint32Array): number;
  /**
   * Defines a kernel of the page's own, which chains name by this number: its name, its code as it
   * stands in kernels (`kernels/text.ts`); then 1 if it is of a place, the most passes of its loops
   * or 0 where it has none, the operations of one run or 2³² - 1 where these are unknown, the number of the kernel that says whether these were stopped and 1
   * more or 0, the type of the result, how many tensors it takes and the type of each, and the
   * type of each param (`kernels/kernels.ts`). `twin` computes on the CPU.
   */
  kernel(
    number: number,
    name: string,
    code: string,
    sizes: Uint32Array,
    twin: Twin | undefined,
  ): void;
  /**
   * Has what compilers say of such code told by a function, for all sessions of the instance:
   * of a shader module and its source it resolves to what to say, or to nothing.
   */
  explain_kernels(
    explain: (
      module: GPUShaderModule,
      source: string,
    ) => Promise<string | undefined>,
  ): void;
  /**
   * The number under which samplings of clips are submitted: layers, lanes, floats of a
   * row of the result, words of a row of operands, and 1 if a tensor takes the result.
   * `animation/sample-operands.ts` says what lies at the cursor.
   */
  sampling(sizes: Uint32Array): number;
  /**
   * The number under which searches of an index are submitted: how its vectors are
   * packed, 1 if scores are distances, results of a query, quads of a vector, blocks of
   * the index and of a page, words of the mask, and 2^31 more if it lists ids; then blocks
   * of the device pages, and of the first of these. `search/search-operands.ts` says what
   * lies at the cursor.
   */
  searching(sizes: Uint32Array): number;
  /**
   * The number under which insertions of vectors in a device page are submitted: how
   * vectors are packed, 1 if they are scaled to length 1, floats of a vector, and 1 if they
   * come from a tensor, or 0 if places are cleared. `search/insert-operands.ts` says what
   * lies at the cursor.
   */
  insertion(sizes: Uint32Array): number;
  /**
   * Gives up numbers of structures. A number that was asked for several times is gone
   * when it was given up as often. Calls that were made before are still answered.
   */
  forget(structures: Uint32Array): void;
  /**
   * A number for a tensor, which lies on no device until {@link fill} or {@link allocate}:
   * in a buffer of its own, or, where it is one of this many words and they are few, in one
   * that it shares with others, but with none of the tensors in `apart`.
   */
  hold(words?: number, apart?: Uint32Array): number;
  /**
   * Uploads a tensor's data at once, packed as its home says; with `AS_GIVEN` the data
   * is packed already. With `AS_SNAPSHOT` a tensor that calls wrote on a lost device may be
   * read again, though the data is older. Rows of `row` words may lie in several buffers;
   * without `row`, all data lies in one.
   */
  fill(tensor: number, data: Uint32Array, home: number, row?: number): number;
  /**
   * Makes room for a tensor of this many words that calls write: the first of these all of
   * it.
   */
  allocate(tensor: number, words: number): number;
  /**
   * Makes a place in a buffer of the page a tensor, whose numbers are kept as its home
   * says. Offset and length are in quads, of 16 bytes each. Fails on the CPU.
   */
  import(
    tensor: number,
    buffer: GPUBuffer,
    offset: number,
    quads: number,
    home: number,
  ): number;
  /** Makes room for a tensor of this many words, all 0, which calls write in part: a device page. */
  clear(tensor: number, words: number): number;
  /** Calls may read a tensor again that went with a device: its words are all there. */
  heal(tensor: number): void;
  /** Refuses the waiting calls that read a tensor, a part of which is lost. */
  refuse_readers(tensor: number): void;
  /** Whether calls that read a tensor are refused, because its words are lost. */
  is_lost(tensor: number): boolean;
  /** Uploads some words of a tensor that is not packed, from word `at` on. */
  patch(tensor: number, at: number, data: Uint32Array): number;
  /**
   * Calls made from here on, until {@link end_restoration}, go before all that waits: they
   * write tensors anew that went with the last device, and what waits reads them. For use
   * inside of {@link Notify}.
   */
  begin_restoration(): void;
  /** From here on calls wait behind those made before, as always. */
  end_restoration(): void;
  /** Inside of {@link Notify}: another thread fills the tensors, until {@link resume}. */
  wait(): void;
  /** All tensors are filled that can be: waiting calls are sent. */
  resume(): void;
  /**
   * Forgets a tensor. No call reads it any more, except calls that were given up, and
   * calls that were pending when the tensor was lost, which settle as `device-lost`.
   */
  release(tensor: number): void;
  /** A moment behind every call taken so far. */
  fence(): number;
  /**
   * Whether every batch with a call from before that moment has ended, even if all its
   * calls were given up: no chunk of it is still to be sent.
   */
  has_passed(fence: number): boolean;
  /** The buffer that a tensor lies in; undefined on the CPU. */
  locate(tensor: number): GPUBuffer | undefined;
  /** Bytes of that buffer in front of the tensor, a multiple of 256. */
  offset(tensor: number): number;
  /**
   * Word index of four words that never move: the cursor, the limit of the room behind
   * it, the batches in flight, and those of them that a GPU computes.
   */
  header(): number;
  /** Makes room for this many words at the cursor. May grow wasm memory. */
  reserve(words: number): number;
  /**
   * Takes the call whose operands lie at the cursor; returns its ticket. `engine` is 0
   * for any, 1 for the GPU, 2 for the CPU; `priority` is a place in `PRIORITIES`.
   */
  submit(
    structure: number,
    rows: number,
    scalar: number,
    key: number,
    engine: number,
    priority: number,
  ): number;
  /** Why the last method failed: a plain `{ code, message }`. */
  failure(): unknown;
  /**
   * Encodes and submits the queued calls, synchronously: as far as the limit of batches
   * in flight allows, or all of them.
   */
  flush(atOnce: boolean): void;
  /**
   * Sends what waits of high priority, and low work if it `goes`, which nothing else
   * sends. Whether low work waits that needs no flush.
   */
  turn(goes: boolean): boolean;
  /** When to flush next, in milliseconds of `performance.now`; NaN is never. */
  due(now: number): number;
  /** The same where `flush` is called at the end of each frame anyway. */
  due_in_frames(now: number): number;
  /** Gives up a pending ticket, which will not be settled. Whether it was pending. */
  abort(ticket: number): boolean;
  /** Calls that still fit before the queue is full; may be negative. */
  desired_size(): number;
  /** Items of a batch that the memory budget holds beside a model; sizes in bytes. */
  optimal_batch_size(modelBytes: number, bytesPerItem: number): number;
  /** The same for texts of so many tokens, by the floats of their encoder's vectors. */
  optimal_text_batch_size(
    modelBytes: number,
    tokens: number,
    hidden: number,
    intermediate: number,
  ): number;
  /** Calls made from here on are planned and never sent. */
  begin_explain(): void;
  /** The plan of those calls as text; their tickets are forgotten. */
  end_explain(): string;
  /**
   * Has the kernels of those calls compiled, and forgets the calls. The ticket that comes
   * back is answered later, as that of a call, without words.
   */
  end_warmup(): number;
  /** Frees memory that is kept for the next batch alone. */
  trim(): void;
  /** Submits nothing: some browsers then look for finished work. */
  nudge(): void;
  /** Whether batches are measured from here on. */
  measure(on: boolean): void;
  /** The facts of the batch that was settled last, once; undefined if it was not measured. */
  facts(): CoreFacts | undefined;
  stats(): object;
  info(): Info;
  /**
   * The numbers of the cost model, none where a session does not choose between devices, and
   * behind them what is kept of tuned values.
   */
  model(): Float64Array;
  /** Goes by numbers that `model` returned before. */
  set_model(facts: Float64Array): void;
  /** Measures these numbers while nothing is in flight; calls `done` at the end, also where that failed. */
  calibrate(done: () => void): void;
  raw_device(): GPUDevice | undefined;
  /** Settles what is pending as `disposed` and destroys what the GPU holds. */
  dispose(): void;
}

/**
 * Computes elements of a kernel on the CPU: `columns` has the address of each input and each param,
 * how many elements lie there, and how many of them along the last axis of what a function of a
 * place looks at; then the place of the first element, how many there are, and the address for
 * the results. It must not enter the core, and returns what to say where it failed.
 */
export type Twin = (
  columns: Uint32Array,
  first: number,
  elements: number,
  to: number,
) => string | undefined;

/** A batch's facts, and the first and last of its tickets. */
export interface CoreFacts extends BatchFacts {
  first: number;
  last: number;
}

/** Where a tensor lies on `gpu.device`, for the page's own use. */
export interface TensorBuffer {
  readonly buffer: GPUBuffer;
  /**
   * Bytes from the buffer's beginning. Of a tensor in a buffer of ours a multiple of 256,
   * and the same for its whole life.
   */
  readonly offset: number;
  /** Bytes. */
  readonly size: number;
}

/** What a method of the core returned; throws its failure. */
export function checked(core: Core, number: number): number {
  if (number < 0) throw core.failure();
  return number;
}

/** Gives structures up. */
export function forget(core: Core, structures: readonly number[]): void {
  core.forget(Uint32Array.from(structures));
}

/**
 * Hears of events of the device, and of batches outside of `flush` and `Settle`:
 *
 * - `lost`: there is no device.
 * - `restored` and `fallback`: another GPU, or the CPU, took its place. Every tensor
 *   is filled again, or released, before `Notify` returns; waiting calls are sent then.
 * - `relieved`: the CPU took one batch for which the GPU had no memory.
 * - `regained`: a GPU took the place of the CPU, and has all tensors.
 * - `sent`: calls were sent whose kernels are compiled by now.
 * - `returned`: a batch came back without an answer; if it goes again, it is in flight.
 * - `tuned`: `model` tells another value.
 */
export type Notify = (
  event: DeviceEvent | "sent" | "relieved" | "regained" | "returned" | "tuned",
  message: string,
) => void;

/** What may happen to a session's device. */
export type DeviceEvent = "lost" | "restored" | "fallback";

/** The class that the glue exports. */
export interface CoreClass {
  open(config: object, settle: Settle, notify: Notify): Promise<Core>;
}

/** What a page may give as the WebAssembly file, instead of letting it be fetched. */
export type WasmSource =
  URL | string | Request | Response | BufferSource | WebAssembly.Module;

/** One instance of the glue, which has one WebAssembly instance. */
export interface CoreGlue {
  /** Makes an instance of the WebAssembly file. */
  start(module: WebAssembly.Module): Promise<{ memory: WebAssembly.Memory }>;
  readonly Core: CoreClass;
  /** To be called after a trap: timers and promises of the instance then enter it no more. */
  abandon(): void;
}
