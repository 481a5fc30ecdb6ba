// A frame of animation: everybody's pose at a time, back in the page or in the buffer
// that a renderer draws from.

import { oneBatch, perCall } from "../clips/by-hand.ts";
import { framebatch } from "../clips/framebatch.ts";
import { loop, mixer } from "../clips/on-page.ts";
import type { Posing } from "../clips/posing.ts";
import {
  DURATION,
  phaseOf,
  rowOf,
  sampled,
  type Scene,
  trackOf,
} from "../clips/scene.ts";
import { clocked, repeat, type Terms } from "../measure.ts";
import { timed } from "../record.ts";
import type { Finding } from "../run.ts";
import type { System } from "../systems/system.ts";

/** Seconds between frames; times stay exact in 32 bits. */
const STEP = 1 / 64;
/** By whose trigonometry rows are made. */
const BOUNDS = { own: 1e-5, builtin: 1e-3 };
/** Every so manieth instance is checked. */
const STRIDE = 61;

const WAYS: Record<string, (scene: Scene) => Promise<Posing>> = {
  "one-batch": oneBatch,
  "per-call": perCall,
  "cpu-loop": loop,
  "animation-mixer": mixer,
};

export async function measureClips(
  scene: Scene,
  system: System,
  terms: Terms,
): Promise<Finding> {
  const way = WAYS[system.name];
  const posing = way ? await way(scene) : await framebatch(scene, system);
  let frames = 0;
  const pose = () => posing.pose((frames += 1) * STEP);
  try {
    await pose();
    const times = await repeat(() => clocked(pose), terms);
    // The last of them, so that what was timed is what is right.
    const error = worst(scene, frames * STEP, await posing.rows());
    if (!(error <= BOUNDS[system.bound])) {
      throw new Error(`a row is wrong by ${error}`);
    }
    return { ...timed(times), error };
  } finally {
    await posing.close();
  }
}

function worst(scene: Scene, now: number, rows: Float32Array): number {
  const width = rowOf(scene);
  if (rows.length !== scene.instances * width) return NaN;
  let worst = 0;
  for (let i = 0; i < scene.instances; i += STRIDE) {
    const phase = phaseOf(Math.floor(i / scene.together));
    const time = (now + phase) % DURATION;
    const row = scene.kinds.flatMap((_, k) =>
      sampled(trackOf(scene, i, k), time),
    );
    row.forEach((want, k) => {
      const off = Math.abs(rows[i * width + k] - want);
      // Written so that NaN counts as wrong.
      if (!(off <= worst)) worst = off;
    });
  }
  return worst;
}
