// The three ways to sample the components' shapes. A way answers one frame of all.

import { open, type Session } from "framebatch";
import "framebatch/animation";
import { PerCall } from "../ways/per-call.ts";
import { SAMPLE } from "./by-hand.ts";
import { type Field, FORMS, TILE, WIDTH } from "./field.ts";

/** The names of the ways, as the page's switch has them. */
export type WayName = "framebatch" | "per-call" | "loop";
export type Way = (field: Field) => Promise<void>;

/** Opens what the ways need. Without a GPU, the main thread remains. */
export async function openWays(): Promise<{
  ways: Partial<Record<WayName, Way>>;
  gpu?: Session;
  problem?: unknown;
}> {
  const loop: Way = async (field) => {
    for (let tile = 0; tile < field.tiles; tile++) {
      sample(field.timesOf(tile), field.rowsOf(tile));
    }
  };
  try {
    const gpu = await open({ engine: "gpu" });
    const clip = gpu.clip({ tracks: [FORMS] });
    const perCall = await PerCall.open(SAMPLE);
    const framebatch = answeredBy((times, into) =>
      clip.sample(times, { into }),
    );
    const alone = answeredBy((times, into) => perCall.ask(times, into));
    return { ways: { framebatch, "per-call": alone, loop }, gpu };
  } catch (problem) {
    return { ways: { loop }, problem };
  }
}

/** Every component asks for its rows, and all of them wait together. */
function answeredBy(
  ask: (
    times: Float32Array<ArrayBuffer>,
    into: Float32Array<ArrayBuffer>,
  ) => Promise<unknown>,
): Way {
  return async (field) => {
    const tiles = Array.from({ length: field.tiles }, (_, tile) => tile);
    await Promise.all(
      tiles.map((tile) => ask(field.timesOf(tile), field.rowsOf(tile))),
    );
  };
}

/** The clip as a loop over typed arrays. */
function sample(times: Float32Array, rows: Float32Array): void {
  const { times: keys, values } = FORMS;
  for (let i = 0; i < TILE; i++) {
    const key = times[i] < keys[1] ? 0 : 1;
    const t = (times[i] - keys[key]) / (keys[key + 1] - keys[key]);
    for (let k = 0, a = key * WIDTH; k < WIDTH; k++, a++) {
      rows[i * WIDTH + k] = values[a] + (values[a + WIDTH] - values[a]) * t;
    }
  }
}
