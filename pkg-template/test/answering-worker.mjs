// A worker that computes nothing: it answers each call from one kept buffer, so that what is
// measured is the page's share of a session in a worker, without copies between threads.

const CALL_WORDS = 6;

/** Reports on their way to the page. */
const reports = [];

/** Has the page hear of its answers. */
export function deliver() {
  for (const [port, data] of reports.splice(0)) port.onmessage({ data });
}

/** Answers calls of so many words each. */
export class AnsweringWorker extends EventTarget {
  constructor(words, most) {
    super();
    this.words = words;
    this.results = new ArrayBuffer(most * words * 4);
    this.ticket = 0;
    this.seen = 0;
  }

  /** The channel whose near end the page has. */
  static channel() {
    const near = new EventTarget();
    const far = { postMessage: () => {}, near };
    near.close = () => {};
    near.postMessage = (message) => far.onmessage?.({ data: message });
    return { port1: near, port2: far };
  }

  postMessage({ port }) {
    port.onmessage = ({ data }) => data.log && this.answer(port.near, data);
    const opened = { timeOrigin: 0, liveBytes: 2 ** 30, mostItems: Infinity };
    const news = [
      { type: "hello", lock: undefined },
      { type: "opened", opened },
    ];
    reports.push([port.near, { news, state: this.state, arenas: [] }]);
    queueMicrotask(deliver);
  }

  get state() {
    const { seen } = this;
    const info = { engine: "gpu", software: true };
    return {
      seen,
      room: 65_536,
      flights: 0,
      passed: 0,
      lost: [],
      stats: {},
      info,
    };
  }

  answer(near, { log, arena }) {
    const table = [];
    for (let at = 0; at < log.length; at += log[at] === 0 ? 1 : CALL_WORDS) {
      if (log[at] === 0) continue;
      this.ticket += 1;
      const place = table.length / 4;
      table.push(this.ticket, place * this.words, this.words, 0);
    }
    this.seen += table.length / 4;
    const settled = {
      ...{ table: Uint32Array.from(table), results: this.results },
      ...{ errors: [], last: true, facts: undefined },
    };
    const news = table.length > 0 ? [{ type: "settled", settled }] : [];
    // The page finds its memory gone, as when it was transferred.
    const arenas = arena ? [structuredClone(arena, { transfer: [arena] })] : [];
    reports.push([near, { news, state: this.state, arenas }]);
  }
}
