// What the page measures: awaited calls, a frame's calls, and loads. A table.

import { chain } from "../ops/chains.ts";
import type { Measured } from "../run.ts";
import { BURST_MS } from "./arrivals.ts";
import { measureAwaited, measureFrames } from "./awaited.ts";
import { FRAMEBATCH, flushedByFrame } from "./framebatch.ts";
import { type Load, measureLoad } from "./measure-load.ts";
import { ABOUT_MIX } from "./mix.ts";
import { RIVALS } from "./rivals.ts";
import type { Answering } from "./system.ts";
import { measureText } from "./text.ts";
import type { Trace } from "./trace.ts";

export type Workload = Measured<Answering>;

/** Who hears how a load went. */
export type Show = (workload: string, system: string, trace: Trace) => void;

export const SYSTEMS: readonly Answering[] = [...FRAMEBATCH, ...RIVALS];

/** Ratios are those to one flush a frame, in the same run. */
const BY_FRAME = {
  compared: "one flush a frame",
  referenceOf: flushedByFrame,
} as const;

export const loadName = ({ arrivals, rate, mix, frames }: Load) =>
  [arrivals, rate, mix, ...(frames === "animated" ? [frames] : [])].join("-");

/** A load as a workload. */
export function load(
  load: Load,
  show: Show,
  more: Partial<Workload> = {},
): Workload {
  const { arrivals, rate, mix, frames } = load;
  const name = loadName(load);
  const come =
    arrivals === "poisson"
      ? "at random, independently of each other"
      : `at once every ${BURST_MS} ms`;
  const besides =
    frames === "animated" ? "; the page makes one more call in each frame" : "";
  return {
    name,
    about: `${rate} calls a second that come ${come}${besides}: ${ABOUT_MIX[mix]}; from the moment a call is due to its answer`,
    ...BY_FRAME,
    systems: SYSTEMS,
    measure: (system, terms) =>
      measureLoad(load, system, terms, (trace) =>
        show(name, system.name, trace),
      ),
    ...more,
  };
}

/** One chain after the other. */
const awaitedChain = (pauseMs: number): Workload => ({
  name: pauseMs === 0 ? "awaited-chain-4096" : "awaited-chain-4096-paused",
  about: `relu, scale and add of 4,096 floats, each call awaited, ${pauseMs === 0 ? "in a loop" : `${pauseMs} ms after the answer before`}`,
  ...{ calls: 1, items: 4096 },
  ...BY_FRAME,
  systems: SYSTEMS,
  measure: (system, terms) =>
    measureAwaited({ op: chain, items: 4096, pauseMs }, system, terms),
});

/** The calls of a frame. */
const frameChains = (items: number): Workload => ({
  name: `frame-100-chains-${items}`,
  about: `100 chains of relu, scale and add of ${items} floats, made in the callback of a frame, from the first call to the last answer; parts: submissions a frame`,
  ...{ calls: 100, items },
  ...BY_FRAME,
  systems: SYSTEMS,
  measure: (system, terms) =>
    measureFrames({ op: chain, count: 100, items }, system, terms),
});

/** More than a software adapter can take: asked for there by name. */
const HARD = { isLong: true } as const;

/** Everything that is offered; loads last `seconds`, where that is given. */
export function workloads(show: Show, seconds?: number): readonly Workload[] {
  const mixed = (rate: number, more: Partial<Workload> = {}) =>
    load(
      { arrivals: "poisson", rate, mix: "mixed", frames: "still", seconds },
      show,
      more,
    );
  return [
    awaitedChain(0),
    awaitedChain(7),
    {
      name: "awaited-text-8",
      about:
        "one text of 8 tokens, awaited, in a loop, by an encoder of the sizes of all-MiniLM-L6-v2 with drawn weights",
      calls: 1,
      ...BY_FRAME,
      ...HARD,
      systems: FRAMEBATCH,
      measure: (system, terms) => measureText(8, system, terms),
    },
    frameChains(64),
    frameChains(4096),
    mixed(200),
    mixed(500),
    mixed(2000),
    mixed(10_000),
    mixed(50_000, HARD),
    load(
      {
        ...{ arrivals: "poisson", rate: 2000, mix: "mixed" },
        ...{ frames: "animated", seconds },
      },
      show,
    ),
    load(
      {
        ...{ arrivals: "burst", rate: 10_000, mix: "mixed" },
        ...{ frames: "still", seconds },
      },
      show,
    ),
    load(
      {
        ...{ arrivals: "poisson", rate: 200_000, mix: "lerp" },
        ...{ frames: "still", seconds },
      },
      show,
      HARD,
    ),
  ];
}
