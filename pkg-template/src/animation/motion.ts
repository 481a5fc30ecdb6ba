// Steps all motions of a session together, once a frame.
//
// The value of a motion is `from · a + to · b + velocity · c`, with three weights that
// depend on the time alone. Few floats are computed here, in place; many are computed in
// one call of the frame, with everything that does not change resident on the device.
// What the weights are is told by `tween.ts` and `spring.ts`.

import { type FramebatchError, report } from "../checks/errors.js";
import { canMoveBehind, warnOfLoss } from "./without-core.js";
import type { Calls } from "../session/calls.js";
import type { Companion } from "../session/companion.js";
import { makeTensor, readTensors } from "../tensor/session-methods.js";
import type { Tensor } from "../tensor/tensor.js";
import { floatsFor } from "./arrays.js";

/** A motion at one time: the weights of `from`, `to` and `velocity`, and whether it ends. */
export interface MotionWeights {
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly isLast: boolean;
}

/** A value on its way to another. */
export interface Motion {
  readonly from: Float32Array;
  readonly to: Float32Array;
  /** Per second; undefined where `c` is always 0. */
  readonly velocity: Float32Array | undefined;
  /** Receives the value of each step. */
  readonly value: Float32Array;
  /** Where the value is computed; undefined leaves that to the number of floats. */
  readonly engine: "cpu" | "gpu" | undefined;
  /** The weights so many seconds after the motion's first frame. */
  at(seconds: number): MotionWeights;
  /** The value was stepped. */
  updated(): void;
  /** The motion is stepped no more: it is finished, or was given up. */
  ended(isFinished: boolean): void;
}

/** A motion, and when it began. */
interface Live {
  readonly motion: Motion;
  start: number | undefined;
  /** When the motion was last stepped on the page's thread. */
  stepped: number;
  /** Whether the first value is to be told at once: the device gives the next ones later. */
  isNews: boolean;
}

/** Floats of all motions from which on a GPU in hardware computes these. */
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
  /** The motions on the device; undefined once other motions are to be computed there. */
  private packed: Packed | undefined;
  /** Whether a step on the device is in flight. */
  private isWaiting = false;

  constructor(private readonly calls: Calls) {}

  /** Motions that are stepped. */
  get size(): number {
    return this.live.size;
  }

  /** Steps a motion from the next frame on. The motion begins then, or began at `start`. */
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

  close(why: FramebatchError): void {
    if (canMoveBehind(why)) return warnOfLoss(why);
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
    // Motions that are added meanwhile begin with the next frame.
    for (const live of [...this.live.values()]) {
      if (!this.live.has(live.motion)) continue; // A listener of another motion ended this one.
      live.start ??= now;
      if (!far.has(live.motion)) this.stepHere(live, now);
      else if (live.isNews) this.tell(live.motion, false);
      live.isNews = false;
    }
    const left = new Set([...far].filter((motion) => this.live.has(motion)));
    if (left.size > 0 && !this.isWaiting) void this.stepThere(left, now);
    // Other motions may belong on the device now.
    if (left.size < far.size) this.unpack();
    if (this.live.size > 0) this.arm();
  }

  /** The motions that the device is to compute. */
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
      const { ended } = this.calls;
      // The next step takes the motions to the next device, or to the page's thread.
      if ((error as FramebatchError).code === "device-lost") return;
      if (ended !== undefined && canMoveBehind(ended)) return;
      for (const motion of far) this.remove(motion);
      if (ended === undefined) report(error);
      return;
    } finally {
      this.isWaiting = false;
      packed?.rest();
    }
    for (const { motion, row } of packed.rows()) {
      // The motion may have ended meanwhile, or been stepped on the page's thread.
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
      report(error); // Other motions go on.
      return;
    }
    if (isLast && this.drop(motion)) motion.ended(true);
  }

  private unpack(): void {
    this.packed?.dispose();
    this.packed = undefined;
  }
}

/** Motions of one width on the device. */
interface Group {
  readonly motions: readonly Motion[];
  readonly width: number;
  /** From, to and velocity, a row each. */
  readonly rows: readonly (Tensor | undefined)[];
  readonly into: Float32Array;
}

/** Motions on the device, whose values are computed in one call. */
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

  /** Computes the values of all motions. */
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
      // Long columns are resident, and the next step has others.
      for (const column of made) column.dispose();
    }
  }

  /** Each motion and its value, once these are computed. */
  *rows(): Generator<{ motion: Motion; row: Float32Array }> {
    for (const { motions, width, into } of this.groups) {
      for (const [i, motion] of motions.entries()) {
        yield { motion, row: into.subarray(i * width, (i + 1) * width) };
      }
    }
  }

  /** The call that read these tensors has ended. */
  rest(): void {
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
