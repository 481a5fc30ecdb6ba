// Tweens and springs as hooks: a value follows its target for as long as the component
// is mounted. How values move is told in `../animation`.

import { useEffect, useState } from "react";
import {
  bySpring,
  byTween,
  Follower,
  type FollowingOptions,
  type FollowingSpringOptions,
  type FollowingTweenOptions,
  keyOf,
  type Move,
} from "../animation/follower.js";
import type { MotionValue, Moved, Several } from "../animation/index.js";
import { useGpu } from "./provider.js";
// The session's methods.
import "../animation/index.js";

/** What `useTween` takes last: the options of `gpu.tween`, and where it begins. */
export type UseTweenOptions<Value extends MotionValue> =
  FollowingTweenOptions<Value>;

/** What `useSpring` takes last: the options of `gpu.spring`, and where it begins. */
export type UseSpringOptions<Value extends MotionValue> =
  FollowingSpringOptions<Value>;

/**
 * A value that goes to `to` whenever that changes, from where it is, in a given time.
 * The component renders once a frame while it moves; with `onUpdate`, which hears of
 * every value, only when it has arrived. All of a page's are stepped together. An array
 * is new each time. Wrong options throw from an effect, with what `gpu.tween` throws.
 *
 * @example
 * const opacity = useTween(isOpen ? 1 : 0, { duration: 0.2 });
 * return <div style={{ opacity }} />;
 */
export function useTween(to: number, options?: UseTweenOptions<number>): number;
export function useTween(
  to: Several,
  options?: UseTweenOptions<Several>,
): Float32Array;
export function useTween(
  to: MotionValue,
  options: FollowingOptions = {},
): Moved<MotionValue> {
  return useMotion(byTween, to, options);
}

/**
 * The same, pulled by a damped spring: a change of `to` keeps the velocity.
 *
 * @example
 * const x = useSpring(isOpen ? 240 : 0, { stiffness: 300 });
 * return <div style={{ transform: `translateX(${x}px)` }} />;
 */
export function useSpring(
  to: number,
  options?: UseSpringOptions<number>,
): number;
export function useSpring(
  to: Several,
  options?: UseSpringOptions<Several>,
): Float32Array;
export function useSpring(
  to: MotionValue,
  options: FollowingOptions = {},
): Moved<MotionValue> {
  return useMotion(bySpring, to, options);
}

function useMotion(
  move: Move,
  to: MotionValue,
  options: FollowingOptions,
): Moved<MotionValue> {
  const gpu = useGpu();
  const [follower] = useState(
    () => new Follower(move, options.from ?? to, (at) => setValue(at)),
  );
  const [value, setValue] = useState(follower.at);
  useEffect(() => {
    follower.onUpdate = options.onUpdate;
  });
  useEffect(() => () => follower.stop(), [gpu, follower]);
  useEffect(() => {
    if (gpu !== undefined) void follower.follow(gpu, to, options);
    // Other options count from the next target on.
  }, [gpu, follower, keyOf(to)]);
  return value;
}
