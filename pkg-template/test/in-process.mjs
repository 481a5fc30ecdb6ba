// Sessions in a worker that runs in the test's own process, over the same fake core: messages
// are copied as between threads, and arrive at once.

const { MessageChannel: Channel } = globalThis;

/** Messages on their way, and whether these wait until somebody has sent what he sends. */
const deliveries = [];
let isHeld = false;

function deliver() {
  while (!isHeld && deliveries.length > 0) deliveries.shift()();
}

/** A port that delivers what is said at once; what tasks tell themselves takes a task. */
class Port extends EventTarget {
  onmessage = null;
  isClosed = false;
  other;

  constructor(task) {
    super();
    this.task = task;
  }

  postMessage(message, transfer = []) {
    if (message === null) return this.task.postMessage(null);
    const { other } = this;
    counts.messages += 1;
    const data = structuredClone(message, { transfer });
    deliveries.push(() => {
      if (!other.isClosed) other.onmessage?.({ data });
    });
    deliver();
  }

  close() {
    this.isClosed = true;
    this.task.close();
  }

  ref() {
    this.task.ref();
  }

  unref() {
    this.task.unref();
  }
}

/** Messages so far. */
export const counts = { messages: 0 };

globalThis.MessageChannel = class {
  constructor() {
    const { port1, port2 } = new Channel();
    this.port1 = new Port(port1);
    this.port2 = new Port(port2);
    this.port1.other = this.port2;
    this.port2.other = this.port1;
    port1.onmessage = () => this.port1.onmessage?.({ data: null });
    port1.unref();
  }
};

/** A worker in this process, whose script has this function for messages. */
export class InProcessWorker extends EventTarget {
  isTerminated = false;
  ports = [];

  constructor(connect) {
    super();
    this.connect = connect;
  }

  postMessage(message) {
    this.ports.push(message.port);
    this.connect(message);
  }

  /** Ends as a worker that somebody terminates. */
  terminate() {
    this.isTerminated = true;
    for (const port of this.ports) {
      port.close();
      port.other.dispatchEvent(new Event("close"));
    }
  }
}

/**
 * Has each call and each order be a message of its own, and each answer too, so that tests find
 * in the core what they asked for.
 */
async function sendAtOnce(module) {
  const { RemoteCore } = await module("worker/remote-core");
  const { Outbox } = await module("worker/outbox");
  const { ask, submit, post } = RemoteCore.prototype;
  const { touch } = Outbox.prototype;
  Object.assign(RemoteCore.prototype, {
    ask(...order) {
      ask.apply(this, order);
      this.post();
    },
    submit(...call) {
      const ticket = submit.apply(this, call);
      this.post();
      return ticket;
    },
    post(isRestored) {
      isHeld = true;
      try {
        post.call(this, isRestored);
      } finally {
        isHeld = false;
      }
      deliver();
    },
  });
  Outbox.prototype.touch = function () {
    if (this.draft === undefined) this.send();
    else touch.call(this);
  };
}

/** `open` and `shared` of the package, with sessions in a worker; `module` imports a file of it. */
export async function inWorker(module) {
  const { connect } = await module("worker/hosted-session");
  const { open, shared } = await module("worker/index");
  await sendAtOnce(module);
  const worker = new InProcessWorker(connect);
  return {
    open: (options) => open({ worker, ...options }),
    shared: (options) => shared({ worker, ...options }),
  };
}
