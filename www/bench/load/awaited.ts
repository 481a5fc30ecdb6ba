// Calls that somebody awaits, one after the other: what a newcomer times first. And a
// frame's calls, made in its callback.
//
// Each call begins when the one before is answered; loads are another matter.

import { check, clocked, frame, pause, type Terms } from "../measure.ts";
import type { Call, Op } from "../ops/op.ts";
import { quantile } from "../record.ts";
import type { Finding } from "../run.ts";
import { kind } from "./mix.ts";
import type { Answering, Target } from "./system.ts";
import { summary } from "./trace.ts";

/** Calls of which each begins so many milliseconds after the answer before. */
interface Awaited {
  readonly op: Op;
  readonly items: number;
  readonly pauseMs: number;
}

export async function measureAwaited(
  { op, items, pauseMs }: Awaited,
  system: Answering,
  { signal, effort }: Terms,
): Promise<Finding> {
  const { calls } = kind(op, items);
  const target = await system.open([{ op, calls }]);
  try {
    const error = await checkOnce(op, system, target, calls);
    const times = await awaited(effort.awaited, signal, async (at) => {
      if (pauseMs > 0) await pause(pauseMs);
      return clocked(() => target.ask(0, calls[at % calls.length]));
    });
    return { ...summary(times).timed, error };
  } finally {
    await target.close();
  }
}

/** The times of so many turns, after half as many that do not count. */
export async function awaited(
  count: number,
  signal: AbortSignal,
  turn: (at: number) => Promise<number>,
): Promise<Float64Array> {
  const times = new Float64Array(count);
  for (let at = -Math.ceil(count / 2); at < count; at++) {
    signal.throwIfAborted();
    const ms = await turn(Math.abs(at));
    if (at >= 0) times[at] = ms;
  }
  return times;
}

/** Calls of as many items each in the callback of a frame. */
interface FrameOfCalls {
  readonly op: Op;
  readonly count: number;
  readonly items: number;
}

/** From the first call to the last answer, a frame after the other. */
export async function measureFrames(
  { op, count, items }: FrameOfCalls,
  system: Answering,
  { signal, effort }: Terms,
): Promise<Finding> {
  const calls = op.calls(count, items);
  const target = await system.open([{ op, calls }]);
  const answer = () => Promise.all(calls.map((call) => target.ask(0, call)));
  try {
    const error = await checkOnce(op, system, target, calls);
    const submits: number[] = [];
    const times = await awaited(effort.awaited, signal, async (at) => {
      await frame();
      const before = target.stats?.().submits;
      const ms = await clocked(answer);
      const after = target.stats?.().submits;
      if (before !== undefined) submits[at] = after! - before;
      return ms;
    });
    const { timed } = summary(times);
    if (submits.length === 0) return { ...timed, error };
    const parts = {
      submits: quantile(submits, 0.5),
      submitsMax: Math.max(...submits),
    };
    return { ...timed, error, parts };
  } finally {
    await target.close();
  }
}

async function checkOnce(
  op: Op,
  system: Answering,
  target: Target,
  calls: readonly Call[],
): Promise<number> {
  const answers = calls.map((call) => target.ask(0, call));
  return check(op, system, [...calls], await Promise.all(answers));
}
