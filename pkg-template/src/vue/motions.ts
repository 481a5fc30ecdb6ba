// Tweens and springs as composables: a ref follows its target for as long as its scope is
// alive. How values move is told in `../animation`.

import {
  type MaybeRefOrGetter,
  onScopeDispose,
  type ShallowRef,
  shallowRef,
  toValue,
  watch,
} from "vue";
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
 * A ref that goes to `to`, a value, a ref or a getter, whenever that changes, from where it
 * is, in a given time. It changes once a frame while it moves; with `onUpdate`, which hears
 * of every value, only when it has arrived. All of a page's are stepped together. An array
 * is new each time. It stops with its component or scope. Wrong options throw from a watcher,
 * with what `gpu.tween` throws.
 *
 * @example
 * const opacity = useTween(() => (props.isOpen ? 1 : 0), { duration: 0.2 });
 * // <aside :style="{ opacity }" />
 */
export function useTween(
  to: MaybeRefOrGetter<number>,
  options?: UseTweenOptions<number>,
): Readonly<ShallowRef<number>>;
export function useTween(
  to: MaybeRefOrGetter<Several>,
  options?: UseTweenOptions<Several>,
): Readonly<ShallowRef<Float32Array>>;
export function useTween(
  to: MaybeRefOrGetter<MotionValue>,
  options: FollowingOptions = {},
): Readonly<ShallowRef<Moved<MotionValue>>> {
  return useMotion(byTween, to, options);
}

/**
 * The same, pulled by a damped spring: a change of `to` keeps the velocity.
 *
 * @example
 * const x = useSpring(() => (props.isOpen ? 240 : 0), { stiffness: 300 });
 * // <aside :style="{ transform: `translateX(${x}px)` }" />
 */
export function useSpring(
  to: MaybeRefOrGetter<number>,
  options?: UseSpringOptions<number>,
): Readonly<ShallowRef<number>>;
export function useSpring(
  to: MaybeRefOrGetter<Several>,
  options?: UseSpringOptions<Several>,
): Readonly<ShallowRef<Float32Array>>;
export function useSpring(
  to: MaybeRefOrGetter<MotionValue>,
  options: FollowingOptions = {},
): Readonly<ShallowRef<Moved<MotionValue>>> {
  return useMotion(bySpring, to, options);
}

function useMotion(
  move: Move,
  to: MaybeRefOrGetter<MotionValue>,
  options: FollowingOptions,
): Readonly<ShallowRef<Moved<MotionValue>>> {
  const gpu = useGpu();
  const from = options.from ?? toValue(to);
  const follower = new Follower(move, from, (at) => (value.value = at));
  const value = shallowRef(follower.at);
  watch(
    [gpu, () => keyOf(toValue(to))],
    ([session]) => {
      if (session === undefined) return;
      void follower.follow(session, toValue(to), options);
    },
    { immediate: true },
  );
  onScopeDispose(() => follower.stop());
  return value;
}
