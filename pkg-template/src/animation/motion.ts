// Everything that moves by itself, stepped together once a frame.
//
// A motion's value is `from · a + to · b + velocity · c` with three weights of the time
// alone. Few floats are computed here, in place; many in one call of the frame, with what
// does not change lying on the device. What the weights are is told by `tween.ts` and
// `spring.ts`.

import type { FramebatchError } from "../checks/errors.js";
import type { Calls } from "../session/calls.js";
import type { Companion } from "../session/companion.js";
import { makeTensor, readTensors } from "../tensor/session-methods.js";
import type { Tensor } from "../tensor/tensor.js";
import { floatsFor } from "./arrays.js";

/** How far a motion is: the weights of `from`, `to` and `velocity`, and whether it ends. */
export interface MotionWeights {
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly isLast: boolean;
}

/** One thing that moves. */
export interface Motion {
  readonly from: Float32Array;
  readonly to: Float32Array;
  /** Per second; undefined where `c` is always 0. */
  readonly velocity: Float32Array | undefined;
  /** Receives its value. */
  readonly value: Float32Array;
  /** Where it is computed; undefined: by how much there is. */
  readonly engine: "cpu" | "gpu" | undefined;
  /** How far it is, so many seconds after its first frame. */
  at(seconds: number): MotionWeights;
  /** Its value is there. */
  updated(): void;
  /** It is stepped no more: at its end, or given up. */
  ended(isFinished: boolean): void;
}

/** A motion, and when it began. */
interface Live {
  readonly motion: Motion;
  start: number | undefined;
  /** When it was stepped here last. */
  stepped: number;
  /** Whether it has a value that nobody heard of: the device gives others later. */
  isNews: boolean;
}

/** Floats from which on a device computes them, where that is hardware. */
const MANY = 65_536;

/** Milliseconds between steps where there are no frames. */
const PAUSE_MS = 16;

/** The motions of one session. */
export class Stepper implements Companion {
  private readonly live = new Map<Motion, Live>();
  private frame: number | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** When the last frame was. */
  private now = 0;
  /** What lies on the device, until the motions are others. */
  private packed: Packed | undefined;
  /** Whether a step is on its way. */
  private isWaiting = false;

  constructor(private readonly calls: Calls) {}

  /** Motions that are stepped. */
  get size(): number {
    return this.live.size;
  }

  /** Steps a motion from the next frame on. It begins then, or began at `start`. */
  add(motion: Motion, start?: number): void {
    const isNews = start !== undefined;
    this.live.set(motion, { motion, start, stepped: -Infinity, isNews });
    this.unpack();
    this.arm();
  }

  /** When the last frame was, if this motion is stepped, and how long after its start. */
  stepped(
    motion: Motion,
  ): { readonly start: number; readonly seconds: number } | undefined {
    const begun = this.live.get(motion)?.start;
    if (begun === undefined) return undefined;
    return { start: this.now, seconds: (this.now - begun) / 1000 };
  }

  /** Gives a motion up, if it is stepped. */
  remove(motion: Motion): void {
    if (this.drop(motion)) motion.ended(false);
  }

  open(): void {}
  hear(): void {}

  close(): void {
    for (const motion of [...this.live.keys()]) this.remove(motion);
  }

  private drop(motion: Motion): boolean {
    if (!this.live.delete(motion)) return false;
    this.unpack();
    if (this.live.size === 0) this.disarm();
    return true;
  }

  private arm(): void {
    if (this.frame !== undefined || this.timer !== undefined) return;
    if (typeof requestAnimationFrame === "function") {
      this.frame = requestAnimationFrame((now) => this.step(now));
    } else {
      this.timer = setTimeout(() => this.step(performance.now()), PAUSE_MS);
    }
  }

  private disarm(): void {
    if (this.frame !== undefined) cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.frame = this.timer = undefined;
  }

  private step(now: number): void {
    this.frame = this.timer = undefined;
    this.now = now;
    const far = this.chooseFar();
    // What is added meanwhile begins with the next frame.
    for (const live of [...this.live.values()]) {
      if (!this.live.has(live.motion)) continue; // One before it ended it.
      live.start ??= now;
      if (!far.has(live.motion)) this.stepHere(live, now);
      else if (live.isNews) this.tell(live.motion, false);
      live.isNews = false;
    }
    const left = new Set([...far].filter((motion) => this.live.has(motion)));
    if (left.size > 0 && !this.isWaiting) void this.stepThere(left, now);
    // Others may belong to them by now.
    if (left.size < far.size) this.unpack();
    if (this.live.size > 0) this.arm();
  }

  /** The motions that the device computes. */
  private chooseFar(): ReadonlySet<Motion> {
    if (this.packed !== undefined) return this.packed.motions;
    const info = this.calls.core?.info() as
      { engine: string; software: boolean } | undefined;
    const isFast = info?.engine === "gpu" && !info.software;
    let floats = 0;
    for (const { value } of this.live.keys()) floats += value.length;
    const far = new Set<Motion>();
    for (const motion of this.live.keys()) {
      const isMany = isFast && floats >= MANY;
      const { engine = isMany ? "gpu" : "cpu" } = motion;
      if (engine === "gpu" && info !== undefined) far.add(motion);
    }
    return far;
  }

  private stepHere(live: Live, now: number): void {
    const { motion, start } = live;
    const { from, to, velocity, value } = motion;
    const { a, b, c, isLast } = motion.at((now - start!) / 1000);
    live.stepped = now;
    for (let i = 0; i < value.length; i += 1) {
      value[i] = from[i] * a + to[i] * b;
      if (velocity !== undefined) value[i] += velocity[i] * c;
    }
    this.tell(motion, isLast);
  }

  private async stepThere(
    far: ReadonlySet<Motion>,
    now: number,
  ): Promise<void> {
    let packed: Packed | undefined;
    const weightsOf = new Map<Motion, MotionWeights>();
    const asked = new Map<Motion, Live>();
    this.isWaiting = true;
    try {
      for (const motion of far) {
        const live = this.live.get(motion)!;
        asked.set(motion, live);
        weightsOf.set(motion, motion.at((now - live.start!) / 1000));
      }
      packed = this.packed ??= new Packed(this.calls, far);
      await packed.compute(weightsOf);
    } catch (error) {
      this.unpack();
      // Of another device it is made anew, with the next step.
      if ((error as FramebatchError).code === "device-lost") return;
      const isNews = this.calls.ended === undefined;
      for (const motion of far) this.remove(motion);
      if (isNews) report(error);
      return;
    } finally {
      this.isWaiting = false;
      packed?.settle();
    }
    for (const { motion, row } of packed.rows()) {
      // It may have ended meanwhile, or been stepped here.
      const live = asked.get(motion)!;
      if (this.live.get(motion) !== live || live.stepped > now) continue;
      motion.value.set(row);
      this.tell(motion, weightsOf.get(motion)!.isLast);
    }
  }

  private tell(motion: Motion, isLast: boolean): void {
    try {
      motion.updated();
    } catch (error) {
      this.remove(motion);
      report(error); // The others go on.
      return;
    }
    if (isLast && this.drop(motion)) motion.ended(true);
  }

  private unpack(): void {
    this.packed?.dispose();
    this.packed = undefined;
  }
}

/** Motions of one width, as they lie on the device. */
interface Group {
  readonly motions: readonly Motion[];
  readonly width: number;
  /** From, to and velocity, a row each. */
  readonly rows: readonly (Tensor | undefined)[];
  readonly into: Float32Array;
}

/** Motions whose values are computed in one call. */
class Packed {
  private readonly groups: readonly Group[];
  private isDisposed = false;
  private isBusy = false;

  constructor(
    private readonly calls: Calls,
    readonly motions: ReadonlySet<Motion>,
  ) {
    const byWidth = new Map<number, Motion[]>();
    for (const motion of motions) {
      const { length } = motion.value;
      const same = byWidth.get(length);
      if (same === undefined) byWidth.set(length, [motion]);
      else same.push(motion);
    }
    this.groups = [...byWidth].map(([width, motions]) =>
      this.pack(motions, width),
    );
  }

  /** Computes every motion's value. */
  async compute(weightsOf: ReadonlyMap<Motion, MotionWeights>): Promise<void> {
    this.isBusy = true;
    const made: Tensor[] = [];
    const tensors = this.groups.map(({ motions, rows }) => {
      const weights = (of: (weights: MotionWeights) => number): Tensor => {
        const data = Float32Array.from(motions, (m) => of(weightsOf.get(m)!));
        const column = this.make(data, [motions.length, 1]);
        made.push(column);
        return column;
      };
      const [from, to, velocity] = rows;
      const sum = from!
        .mul(weights(({ a }) => a))
        .add(to!.mul(weights(({ b }) => b)));
      return velocity === undefined
        ? sum
        : sum.add(velocity.mul(weights(({ c }) => c)));
    });
    const into = this.groups.map((group) => group.into);
    try {
      await readTensors(this.calls, tensors, { into });
    } finally {
      // Many of them lie on the device, and the next step has others.
      for (const column of made) column.dispose();
    }
  }

  /** What was computed. */
  *rows(): Generator<{ motion: Motion; row: Float32Array }> {
    for (const { motions, width, into } of this.groups) {
      for (const [i, motion] of motions.entries()) {
        yield { motion, row: into.subarray(i * width, (i + 1) * width) };
      }
    }
  }

  /** No call needs it any more. */
  settle(): void {
    this.isBusy = false;
    if (this.isDisposed) this.dispose();
  }

  dispose(): void {
    this.isDisposed = true;
    if (this.isBusy) return;
    for (const { rows } of this.groups) for (const row of rows) row?.dispose();
  }

  private pack(motions: readonly Motion[], width: number): Group {
    const shape = [motions.length, width];
    const rows = (of: (motion: Motion) => Float32Array | undefined): Tensor => {
      const data = floatsFor("motion", motions.length * width);
      motions.forEach((motion, row) => {
        const part = of(motion);
        if (part !== undefined) data.set(part, row * width);
      });
      return this.make(data, shape);
    };
    const moves = motions.some(({ velocity }) => velocity !== undefined);
    return {
      motions,
      width,
      rows: [
        rows(({ from }) => from),
        rows(({ to }) => to),
        moves ? rows(({ velocity }) => velocity) : undefined,
      ],
      into: floatsFor("motion", motions.length * width),
    };
  }

  private make(data: Float32Array, shape: readonly number[]): Tensor {
    return makeTensor(this.calls, data, shape) as Tensor;
  }
}

/** As if it had been thrown by a task of its own. */
function report(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

const steppers = new WeakMap<Calls, Stepper>();

/** The stepper of a session. */
export function stepperOf(calls: Calls): Stepper {
  let stepper = steppers.get(calls);
  if (stepper === undefined) {
    stepper = new Stepper(calls);
    steppers.set(calls, stepper);
    calls.join(stepper);
  }
  return stepper;
}
