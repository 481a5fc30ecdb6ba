// Asks the same questions the four ways, by turns; counts, times and checks them.
//
// Nothing is shown here; the page and the command line show what is returned.

import { BRAINS } from "./creatures/brains.ts";
import type { Creature } from "./creatures/creature.ts";
import { expected } from "./creatures/network.ts";
import { HEADINGS } from "./creatures/senses.ts";
import type { World } from "./creatures/world.ts";
import { type Frame, think } from "./thinking.ts";
import type { WayName, Ways } from "./ways.ts";

/** One way's figures for one frame. */
export interface Row extends Omit<Frame, "milliseconds"> {
  way: WayName;
  calls: number;
  /** Rows of each call. */
  headings: number;
  /** Median over `runs`, from the first call to the last result. */
  milliseconds: number;
  runs: number;
  /** The largest difference from the network in double precision. */
  error: number;
}

/** How much is measured: a look, or enough for a table. */
export interface Extent {
  readonly rounds: number;
  /** Frames of a way that are not timed, at first. */
  readonly warm: number;
  /** Frames of a way in a round. */
  readonly runs: number;
  /** A way that takes longer than these milliseconds in a round ends its round. */
  readonly enough: number;
}

export const LOOK: Extent = { rounds: 1, warm: 25, runs: 15, enough: 1000 };
export const WHOLE: Extent = { rounds: 3, warm: 30, runs: 15, enough: 2000 };

/** What is told while it is measured. */
export type OnFrame = (way: WayName, headings: number, frame: Frame) => void;

interface Sample {
  way: WayName;
  headings: number;
  frames: Frame[];
  error: number;
}

/** Measures every way, with all headings and with one. */
export async function measure(
  ways: Ways,
  world: World,
  extent: Extent,
  onFrame: OnFrame,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const headings of [HEADINGS, 1]) {
    const samples = (Object.keys(ways) as WayName[]).map((way): Sample => ({
      way,
      headings,
      frames: [],
      error: 0,
    }));
    const turn = async (sample: Sample, runs: number): Promise<Frame[]> => {
      const { way } = sample;
      const frames: Frame[] = [];
      const start = performance.now();
      do {
        await nextFrame();
        const frame = await think(world, ways[way], headings);
        sample.error = Math.max(sample.error, worst(world.creatures, headings));
        onFrame(way, headings, frame);
        frames.push(frame);
      } while (
        frames.length < runs &&
        performance.now() - start < extent.enough
      );
      return frames;
    };
    for (const sample of samples) await turn(sample, extent.warm);
    for (let round = 0; round < extent.rounds; round++) {
      for (const sample of samples) {
        sample.frames.push(...(await turn(sample, extent.runs)));
      }
    }
    rows.push(...samples.map((each) => summed(each, world.creatures.length)));
  }
  return rows;
}

/** The largest difference between any two ways' answers to the same questions. */
export async function apart(ways: Ways, world: World): Promise<number> {
  world.sense();
  const { creatures } = world;
  let most = 0;
  let [low, high]: Float32Array[][] = [[], []];
  for (const way of Object.values(ways)) {
    for (const { answers } of creatures) answers.fill(NaN);
    await way.answer(creatures, HEADINGS);
    const all = creatures.map(({ answers }) => answers.slice());
    if (low.length === 0) [low, high] = [all, all.map((own) => own.slice())];
    all.forEach((own, i) =>
      own.forEach((answer, k) => {
        low[i][k] = Math.min(low[i][k], answer);
        high[i][k] = Math.max(high[i][k], answer);
        most = larger(most, high[i][k] - low[i][k]);
      }),
    );
  }
  return most;
}

function summed({ way, headings, frames, error }: Sample, calls: number): Row {
  const times = frames.map(({ milliseconds }) => milliseconds);
  times.sort((a, b) => a - b);
  const last = frames.at(-1)!;
  return {
    ...last,
    ...{ way, headings, calls, error },
    milliseconds: times[times.length >> 1],
    runs: frames.length,
  };
}

/** The largest difference between what creatures were answered and what is right. */
function worst(creatures: readonly Creature[], headings: number): number {
  let error = 0;
  for (const creature of creatures) {
    creature.think(({ species, inputs, into }) => {
      expected(BRAINS[species], inputs).forEach((right, i) => {
        error = larger(error, Math.abs(into[i] - right));
      });
    }, headings);
  }
  return error;
}

/** The larger of two, where NaN is larger than anything: results travel as JSON, which has none. */
const larger = (most: number, value: number) =>
  value <= most ? most : Number.isNaN(value) ? Number.MAX_VALUE : value;

/** Resolves inside the next frame's callbacks. */
const nextFrame = () =>
  new Promise((resolve) => requestAnimationFrame(resolve));
