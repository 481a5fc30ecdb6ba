// Simulations that step thousands of times while devices are lost and memory is short.
//
// Every tensor holds whole numbers that no two moments of it share, and a model in plain arrays
// makes the steps that were answered: a step that ran twice or not at all, and a value that is
// old, empty or of another tensor, differs from the model. Seeded. What must come out is for
// whoever runs it.

import { open } from "/pkg/dist/index.js";
import { refuseBuffers, refuseMaps } from "/scarcity.js";
import { random } from "/workload.js";

const sleep = (ms) => new Promise((run) => setTimeout(run, ms));

/** Longer than any round, in milliseconds. */
const PATIENCE_MS = 90_000;

/** Numbers of a state stay below it, so that floats hold every one of them. */
const BELOW = 1 << 20;

/** Rows and columns of the states: most share slabs, the others have buffers of their own. */
const SMALL = [8, 8];
const LARGE = [150, 120];

/** Elements of the largest data that comes with a call; fewer where tensors leave little room. */
const MOST = 300_000;
const MOST_BOUNDED = 20_000;

/** How many tensors that were computed of states are kept for later readings. */
const MOST_COMPUTED = 12;

/** Calls of the longest round. */
const MOST_CALLS = 1000;

/** The longest that memory is short, in milliseconds. */
const SHORTAGE_MS = 600;

/** Losses one after another, so that the CPU takes the GPU's place. */
const STORM = 6;

/** What a call of each kind records of its operand and of another one, and its model. */
const STEPS = {
  count: {
    record: (x) => x.add(1),
    model: (x) => x.map((v) => v + 1),
  },
  // Each element is read by another one's thread.
  turn: {
    record: (x, _, [rows, columns]) =>
      x.reshape([rows, columns]).transpose().reshape([-1]).add(1),
    model: (x, _, [rows, columns]) =>
      x.map((_, i) => x[(i % rows) * columns + Math.floor(i / rows)] + 1),
  },
  roll: {
    record: (x) =>
      x
        .slice([1, undefined])
        .concat(x.slice([0, 1]))
        .add(2),
    model: (x) => x.map((_, i) => x[(i + 1) % x.length] + 2),
  },
  meet: {
    record: (x, y) => x.add(y).mod(BELOW),
    model: (x, y) => x.map((v, i) => (v + y[i]) % BELOW),
  },
};
const KINDS = Object.keys(STEPS);

/** What a state holds at first, and after it was written anew: never the same twice. */
function initial(length, times) {
  return Float32Array.from(
    { length },
    (_, i) => ((i * 37) % 1009) + 2048 * (times % 97),
  );
}

const isRoomless = ({ code }) => code === "out-of-memory";

/** One simulation: its session, its states, and a model of them. */
class Simulation {
  report = {
    ...{ steps: 0, reads: 0, computed: 0, refused: {}, wrong: [] },
    ...{ losses: 0, shortages: 0, refusals: 0, healed: 0, onCpu: 0 },
  };
  times = 0;
  calls = [];
  /** What the session told of lost tensors in this round. */
  named = new Set();
  computed = [];
  /**
   * Whether memory was short since every tensor was computed with last: only a call tells that
   * there was no memory for the buffer of a tensor.
   */
  isWary = false;

  constructor(gpu, seed, isBounded) {
    this.gpu = gpu;
    /** Whether tensors may take all of the memory budget. */
    this.isBounded = isBounded;
    this.chance = random(seed);
    for (const event of ["restored", "fallback"]) {
      gpu.on(event, ({ lostTensors }) => {
        for (const { label } of lostTensors) this.named.add(label);
      });
    }
  }

  pick(list) {
    return list[Math.floor(this.chance() * list.length)];
  }

  complain(what, { label }, more = "") {
    const { wrong } = this.report;
    if (wrong.length < 20) wrong.push(`${what}: ${label} ${more}`);
  }

  /** Makes states, of which a quarter is kept by the device alone. */
  begin(count) {
    const { gpu } = this;
    this.states = Array.from({ length: count }, (_, id) => {
      const dims = id < count - 2 ? SMALL : LARGE;
      const values = initial(dims[0] * dims[1], this.times++);
      const label = `state ${id}`;
      const tensor = gpu.tensor(values.slice(), [values.length], {
        ...{ label, keep: id % 4 !== 3 },
      });
      return { id, label, dims, tensor, values, isLost: false, isNew: true };
    });
  }

  /** A tensor that comes back after every loss, and what is computed from it. */
  async constants() {
    const data = initial(500, 3);
    this.data = this.gpu.tensor(data);
    const value = this.data.scale(2);
    this.kept = { label: "kept", values: data.map((x) => 2 * x) };
    this.deep = { label: "deep", values: data.map((x) => 2 * x + 1) };
    this.kept.tensor = await this.settled(value.compute({ label: "kept" }));
    this.deep.tensor = await this.settled(
      this.kept.tensor.add(1).compute({ label: "deep" }),
    );
  }

  /** Sends what waits until a promise is settled, under every policy. */
  async settled(promise) {
    let isOver = false;
    const end = () => (isOver = true);
    promise.then(end, end);
    const until = performance.now() + PATIENCE_MS;
    while (!isOver) {
      if (performance.now() > until) throw new Error("a call never settled");
      this.gpu.flush();
      await sleep(1);
    }
    return promise;
  }

  /** Makes a call, and notes in the order of the calls what becomes of it. */
  ask(call, make) {
    this.calls.push(call);
    try {
      call.promise = make();
    } catch (error) {
      call.promise = Promise.reject(error);
    }
    call.promise.then(
      (value) => (call.answer = { value }),
      (error) => (call.answer = { error }),
    );
    return call;
  }

  askStep(state, from = state) {
    const kind = this.pick(KINDS);
    const other = this.pick(this.alike(state));
    const { record } = STEPS[kind];
    const reads = kind === "meet" ? [from, other] : [from];
    return this.ask({ kind, reads, writes: state }, () =>
      record(from.tensor, other.tensor, state.dims).computeInto(state.tensor),
    );
  }

  askRead(state) {
    return this.ask({ kind: "read", reads: [state] }, () =>
      state.tensor.read(),
    );
  }

  /** Writes a state, all of it or a part. */
  askWrite(state, isWhole) {
    const { length } = state.values;
    const at = isWhole ? 0 : Math.floor(this.chance() * length);
    const count = isWhole ? length : 1 + Math.floor(this.chance() * 5);
    const data = initial(length, this.times++).subarray(at, at + count);
    // A part makes nothing of a lost tensor.
    const reads = isWhole ? [] : [state];
    return this.ask({ kind: "write", reads, writes: state, at, data }, () =>
      state.tensor.write(data, at),
    );
  }

  /** Computes a tensor of a state, which is read later. */
  askCompute(state) {
    const made = { label: `of ${state.label}`, dims: state.dims };
    return this.ask({ kind: "compute", reads: [state], made }, () =>
      state.tensor.scale(2).compute({ label: made.label }),
    );
  }

  /** Needs more memory than the calls before, as a result or as a tensor that is computed. */
  askMore() {
    const most = this.isBounded ? MOST_BOUNDED : MOST;
    const data = initial(1 + Math.floor(this.chance() * most), this.times++);
    const values = data.map((x) => x + 1);
    const label = `more, ${data.length}`;
    const make = () => this.gpu.tensor(data, undefined, { keep: false }).add(1);
    if (this.chance() < 0.5) {
      const of = { label, values };
      return this.ask({ kind: "read", reads: [of] }, () => make().read());
    }
    const made = { label, isPassing: true };
    const from = { label, values: values.map((x) => x / 2) };
    return this.ask({ kind: "compute", reads: [from], made }, () =>
      make().compute({ label }),
    );
  }

  alike({ dims }) {
    return this.states.filter((state) => state.dims === dims);
  }

  /** One call at random. */
  askAny() {
    const state = this.pick(this.states);
    const roll = this.chance();
    if (roll < 0.62) return this.askStep(state);
    if (roll < 0.68) return this.askStep(state, this.pick(this.alike(state)));
    if (roll < 0.7) return this.askWrite(state, true);
    if (roll < 0.74) return this.askWrite(state, false);
    if (roll < 0.8) return this.askCompute(state);
    if (roll < 0.84) return this.askRead(this.pick([this.kept, this.deep]));
    if (roll < 0.88 && this.computed.length > 0)
      return this.askRead(this.pick(this.computed));
    return this.askRead(state);
  }

  /** A round of calls, awaited and not, with trouble in its middle. */
  async round(count, trouble) {
    this.calls = [];
    this.named.clear();
    const [begin, end] = [this.chance(), this.chance()].map((x) => x * count);
    let over;
    for (let i = 0; i < count; i += 1) {
      if (trouble && over === undefined && i >= begin) over = trouble(this);
      const isShort = over?.enough !== undefined && i < end;
      const call = isShort && i % 8 === 0 ? this.askMore() : this.askAny();
      const roll = this.chance();
      if (roll < 0.02) await this.settled(call.promise.catch(() => {}));
      else if (roll < 0.03) await sleep(this.chance() * 8);
      else if (roll < 0.05) this.gpu.flush();
      else if (roll < 0.07) await null;
      if (over && i >= end) over.enough?.();
    }
    over ??= trouble?.(this);
    await this.settled(
      Promise.allSettled(this.calls.map(({ promise }) => promise)),
    );
    over?.enough?.();
    await over?.done;
    this.isWary ||= over?.enough !== undefined;
    const isTroubled = trouble !== undefined || this.isWary;
    this.follow(isTroubled);
    await this.probe(isTroubled);
    if (trouble === undefined && !this.states.some(({ isLost }) => isLost)) {
      this.isWary = false;
    }
    this.letGo();
  }

  /** Makes the steps of the round in the model, and compares what was read. */
  follow(isTroubled) {
    for (const call of this.calls) {
      const { kind, reads, writes, made, answer } = call;
      const lost = reads.find(({ isLost }) => isLost);
      const subject = writes ?? reads[0];
      if (answer.error !== undefined) {
        this.note(answer.error, subject);
        const isShort = isRoomless(answer.error) && this.isBounded;
        if (!isTroubled && lost === undefined && !isShort) {
          this.complain("refused in calm", subject, `${kind} ${answer.error}`);
        }
        continue;
      }
      if (lost !== undefined) {
        // Where a failure lost the tensor, a part may be written, which stays out of reach.
        if (kind === "write") continue;
        this.complain(`${kind} of a lost tensor`, lost);
        continue;
      }
      if (kind === "read") this.compare(reads[0], answer.value);
      else if (kind === "compute") this.keep(made, reads[0], answer.value);
      else if (kind === "write") this.write(call);
      else this.step(call);
    }
  }

  note({ code, message }, { label }) {
    const { refused } = this.report;
    const name = code ?? `no code, ${label}: ${message}`;
    refused[name] = (refused[name] ?? 0) + 1;
  }

  step({ kind, reads: [from, other], writes }) {
    this.report.steps += 1;
    const { model } = STEPS[kind];
    writes.values = model(from.values, other?.values, writes.dims);
    this.heal(writes);
  }

  write({ writes, at, data }) {
    writes.values = writes.values.slice();
    writes.values.set(data, at);
    if (data.length === writes.values.length) this.heal(writes);
  }

  /** All of a state was written. */
  heal(state) {
    state.wasWritten = true;
    if (state.isLost) this.report.healed += 1;
    state.isLost = false;
  }

  keep(made, { values }, tensor) {
    this.report.computed += 1;
    const own = { ...made, tensor, values: values.map((x) => 2 * x) };
    this.computed.push({ ...own, isLost: false });
  }

  compare(of, found) {
    this.report.reads += 1;
    const { values } = of;
    const at = found.findIndex((value, i) => value !== values[i]);
    if (found.length !== values.length || at >= 0) {
      const text = `[${at}] is ${found[at]}, not ${values[at]}`;
      this.complain("wrong value", of, text);
    }
  }

  /**
   * Reads everything once nothing is going on any more. After trouble what is lost says so, and
   * nothing else is.
   */
  async probe(isTroubled) {
    const all = [...this.states, ...this.computed, this.kept, this.deep];
    const asked = all.map((of) => of.tensor.read());
    const answers = await this.settled(Promise.allSettled(asked));
    answers.forEach(({ value, reason }, i) => {
      const of = all[i];
      if (reason === undefined) {
        if (of.isLost) this.complain("read though lost", of);
        if (this.named.has(of.label) && isTroubled && !of.wasWritten)
          if (of.id !== undefined) this.complain("read though named", of);
        return this.compare(of, value);
      }
      this.note(reason, of);
      // Tensors leave no room for a reading, which says nothing about the tensor.
      if (isRoomless(reason) && (this.isBounded || isTroubled)) return;
      const isKnown = of.isLost || isTroubled;
      if (!isKnown || reason.code !== "device-lost") {
        this.complain("lost in calm", of, reason);
      }
      of.isLost = true;
    });
    for (const state of this.states) state.wasWritten = false;
  }

  /** Makes lost tensors anew in one way or another, some of them later. */
  letGo() {
    const isKept = (of) => !of.isLost && !of.isPassing && this.chance() < 0.9;
    while (this.computed.length > MOST_COMPUTED) this.drop();
    const gone = this.computed.filter((of) => !isKept(of));
    for (const { tensor } of gone) tensor.dispose();
    this.computed = this.computed.filter((of) => !gone.includes(of));
  }

  drop() {
    this.computed.shift().tensor.dispose();
  }

  async mend() {
    this.calls = [];
    for (const state of this.states.filter(({ isLost }) => isLost)) {
      const roll = this.chance();
      if (roll < 0.2 && !this.isWary) continue;
      const from = this.alike(state).find(({ isLost }) => !isLost);
      if (roll < 0.6 || from === undefined) this.askWrite(state, true);
      else this.askStep(state, from);
    }
    await this.settled(
      Promise.allSettled(this.calls.map(({ promise }) => promise)),
    );
    this.follow(this.isWary);
    if (this.kept.isLost || this.deep.isLost) await this.constants();
  }
}

/** Destroys the device, `times` one after another, now or in a moment. */
function lose(times) {
  return (simulation) => {
    const { gpu, report, chance } = simulation;
    const moment = chance() * 30;
    const once = async () => {
      const { device } = gpu;
      if (device === undefined) return;
      report.losses += 1;
      const over = new Promise((resolve) => {
        const offs = ["restored", "fallback"].map((event) =>
          gpu.on(event, ({ type }) => {
            for (const off of offs) off();
            if (type === "fallback") report.onCpu += 1;
            resolve();
          }),
        );
      });
      device.destroy();
      await over;
    };
    const done = (async () => {
      if (moment > 5) await sleep(moment);
      for (let i = 0; i < times; i += 1) await once();
    })();
    return { done };
  };
}

/** There is no memory for buffers, or for results, of more than so many bytes, for a while. */
function shorten(refuse, most) {
  return ({ report }) => {
    report.shortages += 1;
    const end = refuse(most);
    let isOver = false;
    const enough = () => {
      if (!isOver) report.refusals += end();
      isOver = true;
    };
    // Firefox tells late of each call that there was no memory for.
    setTimeout(enough, SHORTAGE_MS);
    return { enough };
  };
}

/** A loss while memory is short. */
function both(simulation) {
  const { done } = lose(1)(simulation);
  return { done, ...shorten(refuseBuffers, 70_000)(simulation) };
}

const TROUBLES = [
  lose(1),
  shorten(refuseBuffers, 70_000),
  lose(1),
  shorten(refuseMaps, 40_000),
  both,
  shorten(refuseBuffers, 16),
  lose(1),
  shorten(refuseBuffers, 4096),
  lose(STORM),
  shorten(refuseMaps, 0),
];

/**
 * Steps so many states `steps` times in all, with trouble every few rounds, on a session with
 * `options`. Resolves to what became of the calls.
 */
export async function stepping({
  seed,
  steps,
  options,
  states = 24,
  every = 2,
}) {
  const gpu = await open({ engine: "gpu", stallMs: 120_000, ...options });
  const isBounded = options?.memoryBudget !== undefined;
  const simulation = new Simulation(gpu, seed, isBounded);
  const { report, chance } = simulation;
  simulation.begin(states);
  await simulation.constants();
  // Each kind of trouble in its turn, begun with one or another.
  let next = seed % TROUBLES.length;
  for (let round = 0; report.steps < steps; round += 1) {
    const isCalm = (round + 1) % every > 0;
    const trouble = isCalm ? undefined : TROUBLES[next++ % TROUBLES.length];
    await simulation.round(20 + Math.floor(chance() * MOST_CALLS), trouble);
    if (round % 3 === 0) await simulation.mend();
    if (report.wrong.length > 0) break;
  }
  const { pending } = gpu.stats();
  await gpu.dispose();
  return { ...report, pending, seed };
}
