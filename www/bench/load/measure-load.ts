// One load on one system: a session of its own, a warm-up, the load, and a row of it.

import type { Stats } from "framebatch";
import { check, pause, type Terms } from "../measure.ts";
import type { Finding } from "../run.ts";
import { dueTimes, type Rhythm } from "./arrivals.ts";
import { type Kind, kindsOf, type Mix } from "./mix.ts";
import { isRefusal, OpenLoop, type Outcome } from "./open-loop.ts";
import { PageWatch } from "./page-watch.ts";
import type { Answering, Target } from "./system.ts";
import { quantiles, summary, type Trace, traceOf } from "./trace.ts";

/** Whether the page itself makes a call in each frame's callback, besides the load's. */
export type Frames = "still" | "animated";

/** What comes, and for how long. */
export interface Load extends Rhythm {
  readonly mix: Mix;
  readonly frames: Frames;
  /** The run is as long as the effort says where nothing is given. */
  readonly seconds?: number;
}

/** Before it counts, a load runs for so much of its time, so that kernels are there and routes chosen. */
const WARM_SHARE = 0.3;

/** A load as it went, and what it did to the page and to the system. */
interface Run {
  readonly outcome: Outcome;
  readonly watch: PageWatch;
  readonly before?: Stats;
  readonly after?: Stats;
}

export async function measureLoad(
  load: Load,
  system: Answering,
  { signal, effort }: Terms,
  show: (trace: Trace) => void,
): Promise<Finding> {
  const seconds = load.seconds ?? effort.seconds;
  const kinds = kindsOf(load.mix);
  const target = await system.open(kinds);
  try {
    // All different calls first: what is compiled meanwhile holds nobody up.
    for (const [kind, { calls }] of kinds.entries()) {
      await Promise.all(calls.map((call) => target.ask(kind, call)));
    }
    const run = (seconds: number) =>
      runOnce({ load, target, kinds, seconds, signal });
    await run(seconds * WARM_SHARE);
    const counted = await run(seconds);
    const { outcome } = counted;
    const error = checkSamples(system, kinds, outcome);
    const waits = outcome.latencies.until(outcome.end);
    if (waits.ms.length === 0) throw new Error("every call was refused");
    show(traceOf(waits, outcome.start));
    const { timed, tails } = summary(waits.ms);
    return {
      ...{ ...timed, error, ...noteOf(outcome) },
      parts: {
        ...{ ...tails, ...countsOf(outcome) },
        ...{ ...paceOf(counted), ...framesOf(counted.watch) },
      },
    };
  } finally {
    await target.close();
  }
}

/** What a load is run with. */
interface Setting {
  readonly load: Load;
  readonly target: Target;
  readonly kinds: readonly Kind[];
  readonly seconds: number;
  readonly signal: AbortSignal;
}

async function runOnce(setting: Setting): Promise<Run> {
  const { load, target, kinds, seconds, signal } = setting;
  const { animate, ended } = animation(load, target, kinds[0]);
  const watch = new PageWatch(animate);
  try {
    const times = dueTimes(load, seconds);
    const loop = new OpenLoop(target, kinds, times, signal);
    // A load that is stopped before it begins ends this, too.
    await Promise.race([loop.done, pause(loop.start - performance.now())]);
    const before = target.stats?.();
    watch.restart();
    const outcome = await loop.done;
    const after = target.stats?.();
    watch.stop();
    await loop.idle();
    await ended();
    return { outcome, watch, before, after };
  } finally {
    watch.stop();
  }
}

/** What a frame's callback does, and the end of that, which throws where a call failed. */
function animation({ frames }: Load, target: Target, { calls }: Kind) {
  if (frames === "still") return { animate: () => {}, ended: async () => {} };
  let problem: unknown;
  let frame = 0;
  return {
    animate() {
      const call = calls[frame++ % calls.length];
      target.ask(0, call).catch((error: unknown) => {
        if (!isRefusal(error)) problem = error;
      });
    },
    async ended() {
      if (problem !== undefined) throw problem;
    },
  };
}

/** The largest difference from float64 in the answers that were kept. */
function checkSamples(
  system: Answering,
  kinds: readonly Kind[],
  { samples }: Outcome,
): number {
  const worst = kinds.map(({ op }, kind) => {
    const own = samples.filter((sample) => sample.kind === kind);
    const calls = own.map(({ call }) => call);
    const answers = own.map(({ answer }) => answer);
    return check(op, system, calls, answers);
  });
  return Math.max(...worst);
}

function noteOf({ stoppedBehind, start, end }: Outcome): { note?: string } {
  if (stoppedBehind === undefined) return {};
  const after = ((end - start) / 1000).toFixed(1);
  const behind = (stoppedBehind / 1000).toFixed(1);
  return {
    note: `stopped after ${after} s, when an answer was ${behind} s behind`,
  };
}

/** Calls, and how much later than due they were made. */
function countsOf({ latencies, late, end }: Outcome) {
  const { due, answered, refused } = latencies;
  const calls = due.filter((time) => time <= end).length;
  const below = quantiles(late);
  return {
    ...{ due: calls, answered, refused },
    unanswered: calls - answered - refused,
    late50: below(0.5),
    late99: below(0.99),
  };
}

/** Counts a second. */
function paceOf({ outcome, before, after }: Run): Record<string, number> {
  const { latencies, start, end } = outcome;
  const seconds = (end - start) / 1000;
  const answers = { answersPerSecond: latencies.answered / seconds };
  if (after === undefined || before === undefined) return answers;
  const batches = after.batches - before.batches;
  return {
    ...answers,
    submitsPerSecond: (after.submits - before.submits) / seconds,
    readbacksPerSecond: (after.readbacks - before.readbacks) / seconds,
    batchesPerSecond: batches / seconds,
    callsABatch: (after.calls - before.calls) / Math.max(1, batches),
  };
}

function framesOf({ gaps, longTasks }: PageWatch): Record<string, number> {
  const below = quantiles(Float64Array.from(gaps));
  const all = gaps.reduce((sum, gap) => sum + gap, 0);
  return {
    framesPerSecond: (gaps.length / all) * 1000,
    frameGap50: below(0.5),
    frameGap99: below(0.99),
    frameGapMax: below(1),
    ...(longTasks && {
      tasksOver50: longTasks.count,
      longestTask: longTasks.longest,
    }),
  };
}
