// A value that follows its target for as long as somebody shows it: what components of
// React, Vue and Svelte have in common.
//
// Nothing of a framework is known here: when a target changes and when nobody shows the
// value any more, the entries say. Nothing but types of the animations is imported, so that
// entries that hold this file hold no animations.

import type { Session } from "../index.js";
import type { SpringOptions, Spring } from "./spring.js";
import type { TweenOptions } from "./tween.js";
import type { MotionValue, Moved, Several } from "./values.js";

interface From<Value> {
  /** Where the value begins. Default: at its first target. */
  from?: Value;
}

/** The options of `gpu.tween`, and where the value begins. */
export type FollowingTweenOptions<Value extends MotionValue> = From<Value> &
  Omit<TweenOptions<Value>, "signal">;

/** The options of `gpu.spring`, and where the value begins. */
export type FollowingSpringOptions<Value extends MotionValue> = From<Value> &
  Omit<SpringOptions<Value>, "signal">;

/** Options, as far as followers look at them. */
export interface FollowingOptions {
  readonly from?: MotionValue;
  readonly onUpdate?: (value: never) => void;
}

/** A tween or a spring, as far as both are alike. */
interface Running {
  readonly finished: Promise<boolean>;
  cancel(): void;
}

/** Begins a motion, or turns the one `before` to another target. */
export type Move = (
  gpu: Session,
  before: Running | undefined,
  ends: readonly [from: MotionValue, to: MotionValue],
  options: { onUpdate: (value: Moved<MotionValue>) => void },
) => Running;

/** Goes to each target in a given time. */
export const byTween: Move = (gpu, before, [from, to], options) => {
  before?.cancel();
  return gpu.tween(from as Several, to as Several, options);
};

/** Is pulled by a spring, which keeps its velocity where the target changes. */
export const bySpring: Move = (gpu, before, [from, to], options) => {
  if (before === undefined) {
    return gpu.spring(from as Several, to as Several, options);
  }
  (before as Spring<Several>).to(to as Several);
  return before;
};

/** A value, and the motion that takes it to its target. */
export class Follower {
  /** Where the value is; an array is new each time. */
  at: Moved<MotionValue>;
  /** Hears of every value in place of `show`, which then hears of the last one alone. */
  onUpdate: FollowingOptions["onUpdate"];
  private running: Running | undefined;
  /** The session that the motion runs on. */
  private session: Session | undefined;

  constructor(
    private readonly move: Move,
    from: MotionValue,
    private readonly show: (value: Moved<MotionValue>) => void,
  ) {
    this.at = copied(from);
  }

  /**
   * Goes to another target. Resolves to true when it is there, and to false where it was
   * stopped or sent elsewhere before. Throws what `gpu.tween` throws.
   */
  follow(
    gpu: Session,
    to: MotionValue,
    options: FollowingOptions,
  ): Promise<boolean> {
    this.onUpdate = options.onUpdate;
    // A motion ends with its session, where it is.
    if (this.session !== gpu) this.stop();
    this.session = gpu;
    if (this.running === undefined && isSame(this.at, to)) {
      return Promise.resolve(true);
    }
    const { from: _, ...rest } = options;
    const onUpdate = (now: Moved<MotionValue>): void => {
      this.at = copied(now);
      if (this.onUpdate === undefined) this.show(this.at);
      else this.onUpdate(now as never);
    };
    const ends = [this.at, to] as const;
    const running = this.move(gpu, this.running, ends, { ...rest, onUpdate });
    this.running = running;
    return this.arrival(running);
  }

  /** Ends the motion where it is. */
  stop(): void {
    this.running?.cancel();
    this.running = undefined;
  }

  /** Is at a place at once. */
  jump(to: MotionValue): void {
    this.stop();
    this.at = copied(to);
    this.show(this.at);
  }

  private async arrival(running: Running): Promise<boolean> {
    const isFinished = await running.finished;
    if (isFinished && this.running === running) {
      this.running = undefined;
      this.show(this.at);
    }
    return isFinished;
  }
}

/** Equal targets have equal keys, whatever array they are in. */
export function keyOf(target: MotionValue): number | string {
  return typeof target === "number" ? target : target.join();
}

function copied(value: MotionValue): Moved<MotionValue> {
  return typeof value === "number" ? value : Float32Array.from(value);
}

function isSame(a: MotionValue, b: MotionValue): boolean {
  const [x, y] = [a, b].map((value) =>
    Float32Array.from(typeof value === "number" ? [value] : value),
  );
  return x.length === y.length && x.every((float, i) => float === y[i]);
}
