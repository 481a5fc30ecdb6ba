// The core in JavaScript: the same boundary, the same rules, real wasm memory.
//
// The fake stands where wasm-bindgen's glue stands, so that the face is tested as it is
// shipped. It has no GPU and no opinion on when to flush. How its batches are answered is in
// `fake-batches.mjs`.

import { ARENA, Batches } from "./fake-batches.mjs";
import { shapeOf } from "./fake-calls.mjs";
import { decode, sizes } from "./fake-chain.mjs";

const HEADER = 8;

/** What tests read and turn. */
export const fake = {
  /** The newest core. */
  core: undefined,
  /** The options that `Core.open` got. */
  config: undefined,
  opened: 0,
  instances: 0,
  /** The WebAssembly file: a module without content. */
  file: Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0),
  /** Instances that trapped and were cut off from their callers, by number. */
  abandoned: new Set(),
  /** Awaited by `start` and `Core.open`; rejects to make them fail. */
  loading: Promise.resolve(),
  opening: Promise.resolve(),
  /** What the next core throws, by method. */
  failures: {},
};

let memory;

/** Whether warm-ups end by themselves. */
export const compiling = { isQuick: false };

/** The glue, as the package's tools wrap it. */
export function instantiate() {
  fake.instances += 1;
  const number = fake.instances;
  return { start, Core, abandon: () => fake.abandoned.add(number) };
}

async function start(module) {
  await fake.loading;
  fake.module = module;
  memory ??= new WebAssembly.Memory({
    initial: Math.ceil((ARENA * 4) / 65536) + 1,
  });
  return { memory };
}

class Core extends Batches {
  static async open(config, settle, notify) {
    await fake.opening;
    fake.config = config;
    fake.opened += 1;
    fake.core = new Core(config, settle, notify);
    return fake.core;
  }

  constructor(config, settle, notify) {
    super(memory, settle);
    this.config = config;
    this.tell = notify;
    this.structures = [];
    /** What it says that it is. */
    this.device = fake.device ?? { engine: "cpu" };
    /** How each tensor was to be kept, as a number of the wire. */
    this.homes = new Map();
    // What each tensor was held with.
    this.asked = new Map();
    this.lastTensor = 0;
    /** Tensors that went with a device, and those of them whose readers are refused. */
    this.gone = new Set();
    this.unhealed = new Set();
    this.explained = undefined;
    /** What it was told of tensors that another thread fills. */
    this.waits = [];
    this.nextTicket = 1;
    this.room = 1000;
    /** Answers inside `flush`, as the CPU does. */
    this.answersAtOnce = false;
    /** Whether wasm memory grows whenever something is given back. */
    this.growsOnRelease = false;
    /** Calls after which `submit` flushes by itself. */
    this.full = Infinity;
    /** Calls of low priority that a turn sends, and whether they wait for a flush. */
    this.slice = Infinity;
    this.lowNeedsFlush = false;
    this.isLowFlushed = false;
    /** What `due` answers. */
    this.dueAt = NaN;
    /** Thrown by the next call of the method it is named after. */
    this.failures = fake.failures;
    fake.failures = {};
    this.counts = {
      submits: 0,
      flushes: 0,
      turns: 0,
      atOnce: 0,
      reserves: 0,
      aborts: 0,
      disposed: 0,
      nudges: 0,
      fills: 0,
      clears: 0,
      allocations: 0,
      imports: 0,
      patches: 0,
      releases: 0,
      measures: 0,
    };
    this.words[HEADER] = ARENA;
    this.words[HEADER + 1] = ARENA + 4096;
    this.words.fill(0, HEADER + 2, HEADER + 4);
  }

  structure(op, width, each) {
    if (this.fails("structure")) return -1;
    return this.structures.push({ op, width, each }) - 1;
  }

  /** Kernels are computed by no fake. */
  kernel() {}

  explain_kernels() {}

  chain(words) {
    if (this.fails("chain")) return -1;
    const chain = decode(words);
    return this.structures.push({ op: "chain", chain, words }) - 1;
  }

  sampling(sizes) {
    if (this.fails("sampling")) return -1;
    const [layers, , width, row, isStored] = sizes;
    const spec = { op: "sampling", layers, width, row, isStored };
    return this.structures.push(spec) - 1;
  }

  searching(sizes) {
    if (this.fails("searching")) return -1;
    const [packing, isDistance, count, quads, blocks, page, mask] = sizes;
    const row = quads * [4, 8, 8, 16][packing];
    const pages = Math.ceil(blocks / page);
    // Where it lists ids there are 2^31 more.
    const words = mask % 2 ** 31;
    const isListed = mask >= 2 ** 31;
    const spec = {
      op: "searching",
      row,
      count,
      mask: words,
      isListed,
      pages,
      isDistance,
    };
    return this.structures.push(spec) - 1;
  }

  insertion([packing, isScaled, dim, hasSource]) {
    if (this.fails("insertion")) return -1;
    if (packing !== 0 || isScaled !== 0) throw new Error("floats alone");
    const spec = { op: "insertion", dim, hasSource: hasSource === 1 };
    return this.structures.push(spec) - 1;
  }

  clear(tensor, words) {
    if (this.fails("clear")) return -1;
    this.counts.clears += 1;
    if (this.gone.has(tensor)) this.unhealed.add(tensor);
    this.tensors.set(tensor, new Uint32Array(words));
    return 0;
  }

  // What real cores refuse is tested in browsers.
  refuse_readers() {}

  heal(tensor) {
    this.gone.delete(tensor);
    this.unhealed.delete(tensor);
  }

  is_lost(tensor) {
    return this.unhealed.has(tensor);
  }

  forget(structures) {
    this.fail("forget");
    if (this.growsOnRelease) memory.grow(1);
    for (const number of structures) {
      if (!(number in this.structures)) throw new Error("no structure");
      delete this.structures[number];
    }
  }

  patch(tensor, at, data) {
    if (this.fails("patch")) return -1;
    this.counts.patches += 1;
    this.tensors.get(tensor).set(data, at);
    return 0;
  }

  hold(words, apart) {
    if (this.fails("hold")) return -1;
    this.lastTensor += 1;
    this.tensors.set(this.lastTensor, undefined);
    this.asked.set(this.lastTensor, { words, apart });
    return this.lastTensor;
  }

  fill(tensor, data, home) {
    if (this.fails("fill")) return -1;
    this.counts.fills += 1;
    if (!this.tensors.has(tensor)) throw new Error(`no tensor ${tensor}`);
    this.tensors.set(tensor, data);
    this.homes.set(tensor, home);
    return 0;
  }

  allocate(tensor, words) {
    if (this.fails("allocate")) return -1;
    this.counts.allocations += 1;
    if (!this.tensors.has(tensor)) throw new Error(`no tensor ${tensor}`);
    // NaN: whatever is read before it is written shows.
    this.tensors.set(tensor, new Uint32Array(words).fill(0x7fc00000));
    this.homes.set(tensor, 1);
    return 0;
  }

  import(tensor, { bytes }, offset, quads, home) {
    if (this.fails("import")) return -1;
    this.counts.imports += 1;
    this.tensors.set(tensor, new Uint32Array(bytes, 16 * offset, 4 * quads));
    this.homes.set(tensor, home);
    return 0;
  }

  begin_restoration() {
    const restores = ({ isRestoring }) => isRestoring === true;
    this.waiting = this.queued.filter((call) => !restores(call));
    this.queued = this.queued.filter(restores);
  }

  end_restoration() {
    for (const call of this.queued) call.isRestoring = true;
    this.queued.push(...this.waiting);
    this.waiting = undefined;
  }

  wait() {
    this.waits.push("wait");
  }

  resume() {
    this.waits.push("resume");
  }

  release(tensor) {
    this.fail("release");
    if (this.growsOnRelease) memory.grow(1);
    this.counts.releases += 1;
    this.asked.delete(tensor);
    this.homes.delete(tensor);
    if (!this.tensors.delete(tensor)) throw new Error(`no tensor ${tensor}`);
  }

  fence() {
    this.fail("fence");
    return this.queued.length > 0 ? this.batch : this.batch - 1;
  }

  has_passed(fence) {
    this.fail("has_passed");
    const pending = this.flights.map(({ batch }) => batch);
    if (this.queued.length > 0) pending.push(this.batch);
    return pending.every((batch) => batch > fence);
  }

  locate(tensor) {
    return `buffer ${tensor}`;
  }

  offset(tensor) {
    const { words } = this.asked.get(tensor);
    return words < 16_384 ? 256 * tensor : 0;
  }

  /** Loses the device, and finds another one when `restore` is called. */
  lose() {
    for (const number of this.tensors.keys()) {
      this.tensors.set(number, undefined);
      this.gone.add(number);
    }
    this.tell("lost", "the device was lost");
  }

  restore(event = "restored") {
    this.tell(event, "another device");
  }

  field_gradients(formula) {
    if (this.fails("field_gradients")) return -1;
    const op = "states.gradients";
    return this.structures.push({ op, width: 16, each: false, formula }) - 1;
  }

  header() {
    return HEADER;
  }

  reserve(words) {
    if (this.fails("reserve")) return -1;
    this.counts.reserves += 1;
    const cursor = this.view()[HEADER];
    const missing = cursor + words - this.words.length;
    if (missing > 0) memory.grow(Math.ceil((missing * 4) / 65536));
    this.view()[HEADER + 1] = this.words.length;
    return 0;
  }

  submit(structure, rows, scalar, key, engine, priority) {
    if (this.fails("submit")) return -1;
    this.counts.submits += 1;
    const spec = this.structures[structure];
    if (spec === undefined) throw new Error("no structure");
    const shape = spec.chain ? sizes(spec.chain) : shapeOf(spec, rows);
    const at = this.view()[HEADER];
    const ticket = this.nextTicket;
    this.nextTicket = (ticket + 1) >>> 0;
    const call = {
      ticket,
      spec,
      shape,
      rows,
      scalar,
      key,
      engine,
      priority,
      at,
    };
    this.words[HEADER] = at + shape.words;
    if (this.explained) this.explained.push(call);
    else [this.queued, this.high, this.low][priority].push(call);
    if (this.queued.length >= this.full) this.flush(false);
    return ticket;
  }

  flush(atOnce) {
    this.fail("flush");
    this.counts.flushes += 1;
    this.counts.atOnce += Number(atOnce);
    this.isLowFlushed = this.low.length > 0;
    if (this.queued.length === 0) return;
    this.flights.push(Object.assign(this.queued, { batch: this.batch }));
    this.batch += 1;
    this.queued = [];
    if (this.answersAtOnce) this.answer();
  }

  turn(goes) {
    this.fail("turn");
    this.counts.turns += 1;
    this.launch(this.high.splice(0));
    const isAsked = !this.lowNeedsFlush || this.isLowFlushed;
    if (goes && isAsked) this.launch(this.low.splice(0, this.slice));
    return this.low.length > 0 && isAsked;
  }

  launch(calls) {
    if (calls.length === 0) return;
    this.flights.push(Object.assign(calls, { batch: this.batch }));
    this.batch += 1;
    if (this.answersAtOnce) this.answer();
  }

  due(now) {
    this.fail("due");
    return typeof this.dueAt === "function" ? this.dueAt(now) : this.dueAt;
  }

  due_in_frames(now) {
    return this.due(now);
  }

  abort(ticket) {
    this.counts.aborts += 1;
    const waiting = [this.queued, this.high, this.low];
    for (const batch of [...waiting, ...this.flights]) {
      const at = batch.findIndex((call) => call.ticket === ticket);
      if (at < 0) continue;
      batch.splice(at, 1);
      return true;
    }
    return false;
  }

  nudge() {
    this.counts.nudges += 1;
  }

  desired_size() {
    return this.room - this.queued.length;
  }

  optimal_batch_size(model, item) {
    const { memoryBudget = 512 << 20, maxBatchSize = Infinity } = this.config;
    const fitting = Math.floor((memoryBudget * 0.8 - model) / item);
    return Math.max(1, Math.min(fitting, maxBatchSize));
  }

  optimal_text_batch_size(...sizes) {
    this.textSizes = sizes;
    return 28;
  }

  begin_explain() {
    this.fail("begin_explain");
    this.explained = [];
  }

  end_warmup() {
    this.fail("end_warmup");
    this.explained = undefined;
    const ticket = this.nextTicket;
    this.nextTicket = (ticket + 1) >>> 0;
    this.warmups.push(ticket);
    if (compiling.isQuick) queueMicrotask(() => this.warmed());
    return ticket;
  }

  end_explain() {
    const calls = this.explained;
    this.explained = undefined;
    return calls.map(({ spec, rows }) => `${spec.op} ${rows}`).join("\n");
  }

  measure(on) {
    this.counts.measures += 1;
    this.measuring = on;
  }

  stats() {
    return { calls: this.counts.submits, batches: this.counts.flushes };
  }

  info() {
    return this.device;
  }

  model() {
    return new Float64Array(0);
  }

  raw_device() {
    return undefined;
  }

  dispose() {
    this.fail("dispose");
    this.counts.disposed += 1;
    const waiting = [this.queued, this.high, this.low];
    const left = [...this.flights, ...waiting].flat();
    this.flights = [];
    [this.queued, this.high, this.low] = [[], [], []];
    if (left.length > 0)
      this.settle(left, { code: "disposed", message: "disposed" });
  }

  /** Whether the method fails as planned; `failure` says why. A trap is thrown. */
  fails(method) {
    const failure = this.failures[method];
    if (failure instanceof Error) this.fail(method);
    delete this.failures[method];
    this.why = failure;
    return failure !== undefined;
  }

  failure() {
    return this.why;
  }

  fail(method) {
    const failure = this.failures[method];
    delete this.failures[method];
    if (failure !== undefined) throw failure;
  }
}
