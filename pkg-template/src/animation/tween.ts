// Tweens: from a value to another in a given time.

/// <reference lib="esnext.disposable" preserve="true" />

import { listen } from "../platform/abort.js";
import type { Calls } from "../session/calls.js";
import { copyOf } from "./arrays.js";
import { ease, type Eased, type Easing, parseEasing } from "./easing.js";
import {
  type MotionWeights,
  type Motion,
  type Stepper,
  stepperOf,
} from "./motion.js";
import {
  checkLengths,
  checkMotion,
  type Ends,
  floatsOf,
  MOTION_NAMES,
  type MotionOptions,
  type MotionValue,
  type Moved,
  numberOf,
  wantsLessMotion,
} from "./values.js";

/** What `gpu.tween` takes last. */
export interface TweenOptions<
  Value extends MotionValue,
> extends MotionOptions<Value> {
  /** Seconds. Default: 0.3. */
  duration?: number;
  /** Seconds before it begins to move. Default: 0. */
  delay?: number;
  /** How progress is eased. Default: `ease`. */
  easing?: Easing;
}

const NAMES: Record<keyof TweenOptions<number>, true> = {
  duration: true,
  delay: true,
  easing: true,
  ...MOTION_NAMES,
};

/** A value on its way to another. Made by `gpu.tween`. */
export class Tween<Value extends MotionValue = number> {
  /** Resolves at the end: true, or false where it was ended before. Never rejects. */
  readonly finished: Promise<boolean>;
  readonly #moving: Moving;
  readonly #stepper: Stepper;
  readonly #isNumber: boolean;

  /** Tweens come from `gpu.tween`. */
  constructor(
    calls: Calls,
    { from, to }: Ends<Value>,
    options: TweenOptions<Value>,
  ) {
    const about = checkMotion("tween", calls, options, NAMES);
    const { duration = 0.3, delay = 0, easing = "ease", onUpdate } = options;
    const start = floatsOf(about, "from", from);
    const end = floatsOf(about, "to", to);
    checkLengths(about, start, end);
    this.#isNumber = typeof from === "number";
    const { signal, reducedMotion } = options;
    const isShort = reducedMotion === "jump" && wantsLessMotion();
    let resolve!: (isFinished: boolean) => void;
    this.finished = new Promise((done) => (resolve = done));
    const abort = (): void => this.cancel();
    this.#moving = new Moving(start, end, {
      duration: isShort ? 0 : numberOf(about, "duration", duration, 0),
      delay: isShort ? 0 : numberOf(about, "delay", delay, 0),
      eased: parseEasing(about, easing),
      engine: options.engine,
      updated: () => onUpdate?.(this.value),
      ended: (isFinished) => {
        signal?.removeEventListener("abort", abort);
        resolve(isFinished);
      },
    });
    this.#stepper = stepperOf(calls);
    if (signal?.aborted) resolve(false);
    else {
      listen(signal, abort);
      this.#stepper.add(this.#moving);
    }
  }

  /** Where it is. An array is the tween's own and changes with the next frame. */
  get value(): Moved<Value> {
    const { value } = this.#moving;
    return (this.#isNumber ? value[0] : value) as Moved<Value>;
  }

  /** Ends it where it is. */
  cancel(): void {
    this.#stepper.remove(this.#moving);
  }

  /** Lets `using` end it. */
  [Symbol.dispose](): void {
    this.cancel();
  }
}

interface TweenSettings {
  readonly duration: number;
  readonly delay: number;
  readonly eased: Eased;
  readonly engine: "cpu" | "gpu" | undefined;
  readonly updated: () => void;
  readonly ended: (isFinished: boolean) => void;
}

class Moving implements Motion {
  readonly velocity = undefined;
  readonly value: Float32Array;
  readonly engine: "cpu" | "gpu" | undefined;
  readonly updated: () => void;
  readonly ended: (isFinished: boolean) => void;

  constructor(
    readonly from: Float32Array,
    readonly to: Float32Array,
    private readonly settings: TweenSettings,
  ) {
    this.value = copyOf("tween", from);
    this.engine = settings.engine;
    this.updated = settings.updated;
    this.ended = settings.ended;
  }

  at(seconds: number): MotionWeights {
    const { delay, duration, eased } = this.settings;
    const isLast = seconds >= delay + duration;
    if (isLast) return { a: 0, b: 1, c: 0, isLast };
    // An easing that jumps at its start does not jump before the delay is over.
    if (seconds < delay) return { a: 1, b: 0, c: 0, isLast };
    const b = ease(eased, (seconds - delay) / duration);
    return { a: 1 - b, b, c: 0, isLast };
  }
}
