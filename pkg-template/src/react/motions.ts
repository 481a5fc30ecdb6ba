// Tweens and springs as hooks: a value follows its target for as long as the component
// is mounted. How values move is told in `../animation`.

import { useEffect, useRef, useState } from "react";
import type {
  MotionValue,
  Moved,
  Several,
  Spring,
  SpringOptions,
  TweenOptions,
} from "../animation/index.js";
import type { Session } from "../index.js";
import { useGpu } from "./provider.js";
// The session's methods.
import "../animation/index.js";

interface From<Value> {
  /** Where it begins, as the component mounts. Default: at its target. */
  from?: Value;
}

/** What `useTween` takes last: the options of `gpu.tween`, and where it begins. */
export type UseTweenOptions<Value extends MotionValue> = From<Value> &
  Omit<TweenOptions<Value>, "signal">;

/** What `useSpring` takes last: the options of `gpu.spring`, and where it begins. */
export type UseSpringOptions<Value extends MotionValue> = From<Value> &
  Omit<SpringOptions<Value>, "signal">;

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
  options: Options = {},
): Moved<MotionValue> {
  return useMotion(to, options, (gpu, before, [from, to], rest) => {
    before?.cancel();
    return gpu.tween(from as number, to as number, rest);
  });
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
  options: Options = {},
): Moved<MotionValue> {
  return useMotion(to, options, (gpu, before, [from, to], rest) => {
    if (before === undefined) {
      return gpu.spring(from as number, to as number, rest);
    }
    (before as Spring).to(to as number);
    return before;
  });
}

/** Options, as far as they are of the hooks. */
interface Options {
  readonly from?: MotionValue;
  readonly onUpdate?: (value: never) => void;
}

/** A tween or a spring, as far as both are alike. */
interface Running {
  readonly finished: Promise<boolean>;
  cancel(): void;
}

/** What of a motion outlives a render. */
interface MotionState {
  /** Where it is. */
  at: MotionValue;
  running: Running | undefined;
  options: Options;
}

type Go = (
  gpu: Session,
  before: Running | undefined,
  ends: readonly [from: MotionValue, to: MotionValue],
  options: { onUpdate: (value: Moved<MotionValue>) => void },
) => Running;

function useMotion(
  to: MotionValue,
  options: Options,
  go: Go,
): Moved<MotionValue> {
  const gpu = useGpu();
  const [value, setValue] = useState(() => copied(options.from ?? to));
  const ref = useRef<MotionState>(undefined);
  const state = (ref.current ??= { at: value, running: undefined, options });
  useEffect(() => {
    state.options = options;
  });
  useEffect(
    () => () => {
      state.running?.cancel();
      state.running = undefined;
    },
    [gpu, state],
  );
  // Equal numbers are the same target, whatever array they are in.
  const target = typeof to === "number" ? to : to.join();
  useEffect(() => {
    if (gpu === undefined) return;
    if (state.running === undefined && isSame(state.at, to)) return;
    const { from: _, ...rest } = state.options;
    const onUpdate = (now: Moved<MotionValue>): void => {
      const next = copied(now);
      state.at = next;
      if (state.options.onUpdate === undefined) setValue(next);
      else state.options.onUpdate(now as never);
    };
    const ends = [state.at, to] as const;
    const running = go(gpu, state.running, ends, { ...rest, onUpdate });
    state.running = running;
    void running.finished.then((isFinished) => {
      if (!isFinished || state.running !== running) return;
      state.running = undefined;
      setValue(copied(state.at));
    });
    // Other options count from the next target on.
  }, [gpu, state, target]);
  return value;
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
