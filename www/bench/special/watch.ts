// Watches what a session does on the main thread, by wrapping what it uses of the
// platform: WebGPU's methods and the handlers of message ports.
//
// Only while it is watching; a session that is timed is not watched. Handlers are
// seen if they were set while watching.

/** Something that happened on the main thread. */
export interface Seen {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/** WebGPU methods whose time is worth knowing, by their prototype. */
const METHODS = {
  GPUQueue: ["submit", "writeBuffer"],
  GPUDevice: ["createCommandEncoder"],
  GPUCommandEncoder: ["beginComputePass", "copyBufferToBuffer", "finish"],
  GPUComputePassEncoder: [
    "setPipeline",
    "setBindGroup",
    "dispatchWorkgroups",
    "end",
  ],
  GPUBuffer: ["mapAsync", "getMappedRange", "unmap"],
} as const;

type Method = (...args: unknown[]) => unknown;

export class Watch {
  /** In order of their ends. */
  seen: Seen[] = [];
  private readonly undo: (() => void)[] = [];
  /** Buffers that are mapped for reading, or are about to be. */
  private readonly read = new Set<object>();

  constructor() {
    if ("GPUQueue" in globalThis) this.wrapWebGPU();
    this.wrapPorts();
  }

  /** Forgets what it saw. */
  clear(): void {
    this.seen = [];
  }

  /** Puts everything back. */
  stop(): void {
    for (const undo of this.undo.splice(0)) undo();
  }

  private wrapWebGPU(): void {
    for (const [type, methods] of Object.entries(METHODS)) {
      const { prototype } = Reflect.get(globalThis, type);
      for (const name of methods) this.wrap(prototype, name);
    }
  }

  private wrap(prototype: Record<string, Method>, name: string): void {
    const watch = this;
    const original = prototype[name];
    prototype[name] = function (this: object, ...args) {
      const start = performance.now();
      const result = original.apply(this, args);
      watch.note(watch.nameOf(name, this, args), start);
      if (name === "mapAsync" && watch.read.has(this)) {
        // Told before the session is, whose own reaction comes later.
        (result as Promise<void>).then(
          () => watch.note("mapped", performance.now()),
          () => {},
        );
      }
      return result;
    };
    this.undo.push(() => (prototype[name] = original));
  }

  /** Submissions of nothing, and what is done with buffers mapped for reading, have names of their own. */
  private nameOf(name: string, self: object, args: unknown[]): string {
    if (name === "submit" && (args[0] as []).length === 0) return "nudge";
    if (name === "mapAsync" && args[0] === GPUMapMode.READ) this.read.add(self);
    return name === "unmap" && this.read.delete(self) ? "handed out" : name;
  }

  private wrapPorts(): void {
    const watch = this;
    const prototype = MessagePort.prototype;
    const original = Object.getOwnPropertyDescriptor(prototype, "onmessage")!;
    Object.defineProperty(prototype, "onmessage", {
      ...original,
      set(handler: ((event: MessageEvent) => void) | null) {
        const watched = (event: MessageEvent) => {
          const start = performance.now();
          handler!.call(this, event);
          watch.note("task", start);
        };
        original.set!.call(this, handler && watched);
      },
    });
    this.undo.push(() =>
      Object.defineProperty(prototype, "onmessage", original),
    );
  }

  private note(name: string, start: number): void {
    this.seen.push({ name, start, end: performance.now() });
  }
}

/** Milliseconds of everything by one of these names. */
export function spent(seen: readonly Seen[], ...names: string[]): number {
  return seen
    .filter(({ name }) => names.includes(name))
    .reduce((sum, { start, end }) => sum + end - start, 0);
}

/**
 * Milliseconds in which answers were handed out: from a read-back's arrival to its
 * unmapping. A session may keep early ones mapped until the last is there; that is
 * waiting, so what counts starts with the latest arrival.
 */
export function settling(seen: readonly Seen[]): number {
  let sum = 0;
  let from = NaN;
  for (const { name, start, end } of seen) {
    if (name === "mapped") from = start;
    if (name !== "handed out") continue;
    sum += end - from;
    from = end;
  }
  return sum;
}
