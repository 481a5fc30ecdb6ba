// Springs: a value that is pulled to another, and keeps its velocity when that changes.
//
// The damped harmonic oscillator m·x″ + d·x′ + k·x = 0 in closed form (for example
// A. P. French, Vibrations and Waves, chapter 3), so a spring takes steps of any length.

/// <reference lib="esnext.disposable" preserve="true" />

import { listen } from "../platform/abort.js";
import type { Calls } from "../session/calls.js";
import { copyOf, floatsFor, mapped } from "./arrays.js";
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
  positive,
  wantsLessMotion,
} from "./values.js";

/** What `gpu.spring` takes last. */
export interface SpringOptions<
  Value extends MotionValue,
> extends MotionOptions<Value> {
  /** Force by distance. Default: 170. */
  stiffness?: number;
  /** Force by velocity. Default: 26. */
  damping?: number;
  /** What is moved. Default: 1. */
  mass?: number;
  /** How fast it is at the start, in values a second. Default: 0. */
  velocity?: Value;
  /** Nearer to its end than this, and slower, it is there. Default: 0.001. */
  precision?: number;
}

const NAMES: Record<keyof SpringOptions<number>, true> = {
  stiffness: true,
  damping: true,
  mass: true,
  velocity: true,
  precision: true,
  ...MOTION_NAMES,
};

/** A value that is pulled to another. Made by `gpu.spring`. */
export class Spring<Value extends MotionValue = number> {
  readonly #about: string;
  readonly #calls: Calls;
  readonly #stepper: Stepper;
  readonly #isNumber: boolean;
  readonly #oscillator: Oscillator;
  readonly #options: SpringOptions<Value>;
  #pull: Pull;
  #finished!: Promise<boolean>;
  #resolve!: (isFinished: boolean) => void;
  readonly #abort = (): void => this.cancel();

  /** Springs come from `gpu.spring`. */
  constructor(
    calls: Calls,
    { from, to }: Ends<Value>,
    options: SpringOptions<Value>,
  ) {
    const about = checkMotion("spring", calls, options, NAMES);
    const { stiffness = 170, damping = 26, mass = 1 } = options;
    this.#about = about;
    this.#calls = calls;
    this.#options = options;
    this.#oscillator = new Oscillator(
      positive(about, "stiffness", stiffness),
      numberOf(about, "damping", damping, 0),
      positive(about, "mass", mass),
    );
    positive(about, "precision", options.precision ?? 0.001);
    const start = floatsOf(about, "from", from);
    this.#isNumber = typeof from === "number";
    const speed =
      options.velocity === undefined
        ? floatsFor(about, start.length)
        : floatsOf(about, "velocity", options.velocity);
    if (speed.length !== start.length) checkLengths(about, start, speed);
    this.#stepper = stepperOf(calls);
    this.#pull = this.#toward(floatsOf(about, "to", to), start, speed);
    this.#begin();
  }

  /** Where it is. An array is the spring's own and changes with the next frame. */
  get value(): Moved<Value> {
    const { value } = this.#pull;
    return (this.#isNumber ? value[0] : value) as Moved<Value>;
  }

  /** How fast it is, in values a second. */
  get velocity(): Moved<Value> {
    const speed = this.#pull.speed();
    return (this.#isNumber ? speed[0] : speed) as Moved<Value>;
  }

  /** Resolves when it rests: true, or false where it was ended before. Never rejects. */
  get finished(): Promise<boolean> {
    return this.#finished;
  }

  /** Pulls it elsewhere from where it is, as fast as it is. */
  to(target: Value): void {
    checkMotion("spring", this.#calls, this.#options, NAMES);
    const next = floatsOf(this.#about, "to", target);
    // The time of its motion goes on: a spring that got a target with every frame would else never move.
    const { start, seconds } = this.#stepper.stepped(this.#pull) ?? {};
    const pull = this.#toward(
      next,
      this.#pull.position(seconds),
      this.#pull.speed(seconds),
    );
    this.cancel();
    this.#pull = pull;
    this.#begin(start);
  }

  /** Ends it where it is. */
  cancel(): void {
    this.#stepper.remove(this.#pull);
  }

  /** Lets `using` end it. */
  [Symbol.dispose](): void {
    this.cancel();
  }

  #toward(to: Float32Array, from: Float32Array, speed: Float32Array): Pull {
    checkLengths(this.#about, from, to);
    const { onUpdate, reducedMotion, precision = 0.001 } = this.#options;
    return new Pull({ from, to, velocity: speed }, this.#oscillator, {
      precision,
      isShort: reducedMotion === "jump" && wantsLessMotion(),
      engine: this.#options.engine,
      updated: () => onUpdate?.(this.value),
      ended: (isFinished) => this.#end(isFinished),
    });
  }

  #begin(start?: number): void {
    const { signal } = this.#options;
    this.#finished = new Promise((resolve) => (this.#resolve = resolve));
    if (signal?.aborted) return this.#resolve(false);
    listen(signal, this.#abort);
    this.#stepper.add(this.#pull, start);
  }

  #end(isFinished: boolean): void {
    this.#options.signal?.removeEventListener("abort", this.#abort);
    this.#resolve(isFinished);
  }
}

interface PullSettings {
  readonly precision: number;
  readonly isShort: boolean;
  readonly engine: "cpu" | "gpu" | undefined;
  readonly updated: () => void;
  readonly ended: (isFinished: boolean) => void;
}

/** The course of a pull: from where, to where, and how fast at first. */
interface Course extends Ends<Float32Array> {
  readonly velocity: Float32Array;
}

/** A pull from one position to another. */
class Pull implements Motion {
  readonly from: Float32Array;
  readonly to: Float32Array;
  readonly velocity: Float32Array;
  readonly value: Float32Array;
  readonly engine: "cpu" | "gpu" | undefined;
  readonly updated: () => void;
  readonly ended: (isFinished: boolean) => void;
  private readonly farthest: number;
  private readonly fastest: number;
  /** The seconds at which {@link at} was asked last. */
  private seconds = 0;
  private isOver = false;

  constructor(
    { from, to, velocity }: Course,
    private readonly oscillator: Oscillator,
    private readonly settings: PullSettings,
  ) {
    this.from = from;
    this.to = to;
    this.velocity = velocity;
    this.value = copyOf("spring", from);
    this.engine = settings.engine;
    this.updated = settings.updated;
    this.ended = settings.ended;
    this.farthest = from.reduce(
      (m, x, i) => Math.max(m, Math.abs(x - to[i])),
      0,
    );
    this.fastest = velocity.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
  }

  at(seconds: number): MotionWeights {
    const { oscillator, farthest, fastest, settings } = this;
    this.seconds = seconds;
    const { a, c, da, dc } = oscillator.at(seconds);
    const away = Math.abs(a) * farthest + Math.abs(c) * fastest;
    const fast = Math.abs(da) * farthest + Math.abs(dc) * fastest;
    const isLast =
      settings.isShort ||
      (away <= settings.precision &&
        fast <= settings.precision * oscillator.rate);
    this.isOver = isLast;
    return isLast ? { a: 0, b: 1, c: 0, isLast } : { a, b: 1 - a, c, isLast };
  }

  /** The position after so many seconds, whichever device computes values; without seconds, the last value. */
  position(seconds: number | undefined): Float32Array {
    if (seconds === undefined) return copyOf("spring", this.value);
    const { a, b, c } = this.at(seconds);
    const { from, to, velocity } = this;
    return mapped(
      "spring",
      from,
      (x, i) => x * a + to[i] * b + velocity[i] * c,
    );
  }

  /** The velocity after so many seconds; without, at the last moment that was asked for. */
  speed(seconds = this.seconds): Float32Array {
    const { da, dc } = this.oscillator.at(seconds);
    return mapped("spring", this.velocity, (v, i) =>
      this.isOver ? 0 : (this.from[i] - this.to[i]) * da + v * dc,
    );
  }
}

/** What a distance of 1 (`a`) and a velocity of 1 (`c`) have become, and how fast both change. */
interface Response {
  readonly a: number;
  readonly c: number;
  readonly da: number;
  readonly dc: number;
}

/** A mass on a damped spring. */
class Oscillator {
  /** Radians a second without damping. */
  readonly rate: number;
  /** The damping ratio: 1 is critical damping, without any swing. */
  private readonly ratio: number;

  constructor(stiffness: number, damping: number, mass: number) {
    this.rate = Math.sqrt(stiffness / mass);
    this.ratio = damping / (2 * Math.sqrt(stiffness * mass));
  }

  at(t: number): Response {
    const { rate, ratio } = this;
    const fade = ratio * rate;
    const { a, c } = this.solve(t, fade);
    return { a, c, da: -rate * rate * c, dc: a - 2 * fade * c };
  }

  private solve(t: number, fade: number): Pick<Response, "a" | "c"> {
    const { rate, ratio } = this;
    const apart = Math.sqrt(Math.abs(1 - ratio * ratio)) * rate;
    // The roots are too near each other for their difference to be known.
    if (apart < 1e-5 * rate) {
      const left = Math.exp(-rate * t);
      return { a: left * (1 + rate * t), c: left * t };
    }
    if (ratio < 1) {
      const left = Math.exp(-fade * t);
      const sine = Math.sin(apart * t) / apart;
      return { a: left * (Math.cos(apart * t) + fade * sine), c: left * sine };
    }
    const slow = Math.exp((apart - fade) * t);
    const quick = Math.exp((-apart - fade) * t);
    return {
      a: ((apart + fade) * slow + (apart - fade) * quick) / (2 * apart),
      c: (slow - quick) / (2 * apart),
    };
  }
}
