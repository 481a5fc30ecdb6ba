// A steady stream of calls, each checked against the oracle: what became of them.
//
// The traffic makes calls and judges answers. Tests decide what happens to the device
// meanwhile.

import * as oracle from "/oracle.js";
import { bytes, floats, quaternions } from "/workload.js";

/** Errors that nobody caught, in the whole page. */
const uncaught = [];
addEventListener("error", ({ message }) => uncaught.push(message));
addEventListener("unhandledrejection", ({ reason }) =>
  uncaught.push(`unhandled: ${reason?.message ?? reason}`),
);

/** How many calls there are, of every kind and many sizes. */
const KINDS = 60;
/** Those that were made already, with what each must give: most pages make none. */
const kinds = [];

/** How long a call may stay unanswered after the last one was made, in milliseconds. */
const PATIENCE_MS = 120_000;

/** Calls on one session, at a rate. Make one, let it run, `stop` it. */
export class Traffic {
  /** `options(i)` are the options of call number i; `atMost` are pending at a time. */
  constructor(gpu, terms = {}) {
    const { perSecond = 2000, atMost = Infinity } = terms;
    const { options = () => undefined, patienceMs = PATIENCE_MS } = terms;
    Object.assign(this, { gpu, perSecond, atMost, options, patienceMs });
    this.made = 0;
    this.right = 0;
    this.wrong = 0;
    /** Rejections by code; what has no code by its text. */
    this.refused = {};
    /** The first text of each code. */
    this.reasons = {};
    this.settled = 0;
    /** The numbers of calls without an answer, in their order. */
    this.pending = new Set();
    this.longestGap = 0;
    this.begun = this.answered = performance.now();
    this.run();
  }

  /** Makes no more calls. */
  pause() {
    clearTimeout(this.timer);
  }

  /** Ends the stream and waits for the answers. */
  async stop() {
    this.pause();
    const until = performance.now() + this.patienceMs;
    while (this.settled < this.made && performance.now() < until) {
      // Under `manual` nobody else would; a session that is over has nothing to send.
      if (this.gpu.info !== undefined) this.gpu.flush();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const { made, right, wrong, refused, reasons, longestGap } = this;
    const unsettled = made - this.settled;
    const counts = { made, right, wrong, refused, unsettled, longestGap };
    return { ...counts, reasons, uncaught: [...uncaught] };
  }

  /** Resolves when all calls that were made until now have answers. */
  async answers() {
    const { made, pending } = this;
    while ((pending.values().next().value ?? made) < made) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  run() {
    const due = ((performance.now() - this.begun) * this.perSecond) / 1000;
    // Where the page itself was held up, the calls it missed are not made up for.
    const room = Math.max(0, this.atMost - (this.made - this.settled));
    const most = Math.min(this.perSecond / 10, room);
    const first = Math.max(this.made, Math.floor(due) - most);
    this.begun += ((first - this.made) / this.perSecond) * 1000;
    for (let left = due - first; left >= 1; left--) this.call();
    this.timer = setTimeout(() => this.run(), 1);
  }

  async call() {
    const number = this.made++;
    const { make, expected, bound } = kindOf(number);
    this.pending.add(number);
    try {
      const result = await make(this.gpu, this.options(number));
      if (oracle.error(result, expected) <= bound) this.right++;
      else this.wrong++;
      const now = performance.now();
      this.longestGap = Math.max(this.longestGap, now - this.answered);
      this.answered = now;
    } catch (error) {
      const code = error?.code ?? String(error);
      this.refused[code] = (this.refused[code] ?? 0) + 1;
      this.reasons[code] ??= String(error);
    }
    this.pending.delete(number);
    this.settled++;
  }
}

function kindOf(number) {
  const i = number % KINDS;
  return (kinds[i] ??= kind(i));
}

function kind(i) {
  const size = 1 + ((i * 37) % 200);
  const t = (i % 17) / 16;
  const two = (make, size) => [make(size, i), make(size, i + 500)];
  switch (i % 4) {
    case 0: {
      const [a, b] = two(floats, size);
      return {
        make: (gpu, options) => gpu.lerp(a, b, t, options),
        expected: oracle.lerp(a, b, t),
        bound: 3e-7,
      };
    }
    case 1: {
      const [a, b] = two(quaternions, size);
      return {
        make: (gpu, options) => gpu.slerp(a, b, t, options),
        expected: oracle.slerp(a, b, t),
        bound: 5e-7,
      };
    }
    case 2: {
      const states = bytes(size * 16, i);
      return {
        make: (gpu, options) => gpu.states.gradients(states, options),
        expected: oracle.gradients(states),
        bound: 1e-6,
      };
    }
    default: {
      const [a, b] = two(bytes, size * 16);
      return {
        make: (gpu, options) => gpu.states.slerp(a, b, t, options),
        expected: oracle.stateSlerp(a, b, t),
        bound: 0,
      };
    }
  }
}
