// Tweens and springs as stores: what is set is where the value goes. How values move is told
// in `../animation`.

import {
  bySpring,
  byTween,
  Follower,
  type FollowingOptions,
  type Move,
} from "../animation/follower.js";
import type {
  MotionValue,
  Moved,
  Several,
  SpringOptions,
  TweenOptions,
} from "../animation/index.js";
import {
  type GpuStoreOptions,
  once,
  type Readable,
  sessionOf,
} from "./stores.js";
// The session's methods.
import "../animation/index.js";

/** What `tween` takes last: the options of `gpu.tween`, and which session steps the store. */
export type TweenStoreOptions<Value extends MotionValue> = GpuStoreOptions &
  Omit<TweenOptions<Value>, "signal">;

/** What `spring` takes last: the options of `gpu.spring`, and which session steps the store. */
export type SpringStoreOptions<Value extends MotionValue> = GpuStoreOptions &
  Omit<SpringOptions<Value>, "signal">;

/** A store whose value moves to what is set. */
export interface MotionStore<Value extends MotionValue> extends Readable<
  Moved<Value>
> {
  /**
   * Sends the value to another target. Resolves to true when the value is there, and to false
   * where it was sent elsewhere before, or nobody subscribes any more.
   */
  set(this: void, to: Value): Promise<boolean>;
  /** The same, by the value as it is. */
  update(this: void, next: (value: Moved<Value>) => Value): Promise<boolean>;
}

/**
 * A store that goes to what is set, from where it is, in a given time. It changes once a frame
 * while it moves; with `onUpdate`, which hears of every value, only when it has arrived. All
 * of a page's are stepped together. An array is new each time. The motion ends where it is as
 * the last subscriber leaves. On a server the value is what was set. Wrong options throw from
 * `set`, with what `gpu.tween` throws.
 *
 * @example
 * const opacity = tween(0, { duration: 0.2 });
 * $: $opacity = isOpen ? 1 : 0;
 * // <aside style:opacity={$opacity} />
 */
export function tween(
  value: number,
  options?: TweenStoreOptions<number>,
): MotionStore<number>;
export function tween(
  value: Several,
  options?: TweenStoreOptions<Several>,
): MotionStore<Several>;
export function tween(
  value: MotionValue,
  options: FollowingOptions & GpuStoreOptions = {},
): MotionStore<MotionValue> {
  return motion(byTween, value, options);
}

/**
 * The same, pulled by a damped spring: another target keeps the velocity.
 *
 * @example
 * const x = spring(0, { stiffness: 300 });
 * $: $x = isOpen ? 240 : 0;
 */
export function spring(
  value: number,
  options?: SpringStoreOptions<number>,
): MotionStore<number>;
export function spring(
  value: Several,
  options?: SpringStoreOptions<Several>,
): MotionStore<Several>;
export function spring(
  value: MotionValue,
  options: FollowingOptions & GpuStoreOptions = {},
): MotionStore<MotionValue> {
  return motion(bySpring, value, options);
}

function motion(
  move: Move,
  value: MotionValue,
  { session, options, ...rest }: FollowingOptions & GpuStoreOptions,
): MotionStore<MotionValue> {
  const subscribers = new Set<{ run: (value: Moved<MotionValue>) => void }>();
  const follower = new Follower(move, value, (at) => {
    for (const { run } of subscribers) run(at);
  });
  const source: GpuStoreOptions = {
    ...(session && { session }),
    ...(options && { options }),
  };

  function set(to: MotionValue): Promise<boolean> {
    const gpu = sessionOf(source);
    if (gpu !== undefined) return follower.follow(gpu, to, rest);
    follower.jump(to);
    return Promise.resolve(true);
  }

  return {
    subscribe(run) {
      const subscriber = { run };
      subscribers.add(subscriber);
      run(follower.at);
      return once(() => {
        subscribers.delete(subscriber);
        if (subscribers.size === 0) follower.stop();
      });
    },
    set,
    update: (next) => set(next(follower.at)),
  };
}
