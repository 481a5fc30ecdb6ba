// What a page asks of its core until the next request, and the memory that operands are
// written to meanwhile.
//
// What is asked means nothing here, and nothing is sent.

import {
  ARENA,
  CALL_WORDS,
  ORDER,
  type Order,
  type Request,
} from "./protocol.js";

/** Words of the smallest arena. */
const SMALLEST = 2 ** 14;

/** Arenas that are kept for the next requests. */
const MOST_SPARE = 2;

/** The log of the next request. */
export class RequestLog {
  /** What operands are written to. The buffer is another one after each request with calls. */
  readonly memory = { buffer: new ArrayBuffer(SMALLEST * 4) };
  /** The words of the arena that are numbers of tensors. */
  readonly names: number[] = [];
  /** Calls in the log, and rows of these. */
  calls = 0;
  rows = 0;
  /** What the face is told of batches in flight. */
  private flights = 0;
  private cursor = ARENA;
  /** Words at the cursor that are being written, and names in front of these. */
  private reserved = 0;
  private namesBefore = 0;
  private words = new Uint32Array(1024);
  private floats = new Float32Array(this.words.buffer);
  private length = 0;
  private orders: Order[] = [];
  private owned: ArrayBuffer[] = [];
  private readonly spare: ArrayBuffer[] = [];
  /** Bytes of the newest arena: the next ones are likely to need as many. */
  private size = SMALLEST * 4;

  /** The arena as words. */
  private view = new Uint32Array(this.memory.buffer);

  constructor() {
    this.writeHeader();
  }

  /** Whether nothing was asked. */
  get isEmpty(): boolean {
    return this.length === 0;
  }

  /** Bytes of operands. */
  get bytes(): number {
    return this.cursor * 4;
  }

  /** Makes room for so many words at the cursor; the word there. */
  reserve(words: number): number {
    // What was written before and not entered is given up.
    const { names, namesBefore } = this;
    if (names.length > namesBefore) names.length = namesBefore;
    this.reserved = words + (-words & 3);
    this.makeRoom(this.reserved);
    return this.cursor;
  }

  /** Adds an order, with buffers that nothing else uses. */
  add(order: Order, ...owned: ArrayBuffer[]): void {
    this.makeSpace(1);
    this.words[this.length] = ORDER;
    this.length += 1;
    this.orders.push(order);
    for (const buffer of owned) this.owned.push(buffer);
  }

  /** Adds the call whose operands lie at the cursor. On the hot path, so it takes numbers alone. */
  enter(
    kind: number,
    structure: number,
    rows: number,
    scalar: number,
    key: number,
  ): void {
    this.makeSpace(CALL_WORDS);
    const { words, length } = this;
    words[length] = kind;
    words[length + 1] = structure;
    words[length + 2] = rows;
    this.floats[length + 3] = scalar;
    words[length + 4] = key;
    words[length + 5] = this.reserved;
    this.length = length + CALL_WORDS;
    this.cursor += this.reserved;
    this.reserved = 0;
    this.namesBefore = this.names.length;
    this.calls += 1;
    this.rows += rows;
    this.view[0] = this.view[1] = this.cursor;
  }

  /** Tells the face how many batches are in flight. */
  countFlights(flights: number): void {
    this.flights = flights;
    this.writeHeader();
  }

  /** The request, and what goes along with it for good. The log is empty then. */
  take(isRestored: boolean): [Request, ArrayBuffer[]] {
    const log = this.words.slice(0, this.length);
    const names = Uint32Array.from(this.names.slice(0, this.namesBefore));
    const hasCalls = this.calls > 0;
    const arena = hasCalls ? this.memory.buffer : undefined;
    this.size = this.memory.buffer.byteLength;
    const request = { log, orders: this.orders, arena, names, isRestored };
    const owned = [...this.owned, log.buffer, names.buffer];
    if (arena !== undefined) owned.push(arena);
    this.length = this.calls = this.rows = 0;
    this.orders = [];
    this.owned = [];
    this.names.length = this.namesBefore = this.reserved = 0;
    return [request, owned];
  }

  /** The request is sent: its arena is gone. */
  begin(): void {
    if (this.memory.buffer.byteLength > 0) return;
    this.cursor = ARENA;
    this.use(this.spare.pop() ?? new ArrayBuffer(this.size));
  }

  /** Takes back an arena. */
  give(arena: ArrayBuffer): void {
    if (this.spare.length < MOST_SPARE) this.spare.push(arena);
  }

  /** Copies a table behind the cursor, where it stays until something is reserved; its word. */
  put(table: Uint32Array): number {
    this.makeRoom(table.length);
    this.view.set(table, this.cursor);
    return this.cursor;
  }

  private makeRoom(words: number): void {
    const { buffer: before } = this.memory;
    const need = (this.cursor + words) * 4;
    if (need <= before.byteLength) return;
    const buffer = new ArrayBuffer(Math.max(2 * before.byteLength, need));
    new Uint8Array(buffer).set(new Uint8Array(before));
    this.use(buffer);
    // Detaches the old memory, as WebAssembly's is that has grown: views of it are made anew.
    structuredClone(before, { transfer: [before] });
  }

  private makeSpace(words: number): void {
    if (this.length + words <= this.words.length) return;
    const longer = new Uint32Array(2 * this.words.length);
    longer.set(this.words);
    this.words = longer;
    this.floats = new Float32Array(longer.buffer);
  }

  private use(buffer: ArrayBuffer): void {
    this.memory.buffer = buffer;
    this.view = new Uint32Array(buffer);
    this.writeHeader();
  }

  // Without a limit beyond the cursor, the face asks for room for each call.
  private writeHeader(): void {
    const { view, cursor, flights } = this;
    view[0] = cursor;
    view[1] = cursor;
    view[2] = flights;
    view[3] = 0; // The worker itself looks whether a GPU has finished.
  }
}
