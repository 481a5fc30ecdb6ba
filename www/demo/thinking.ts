// One frame of the creatures by one way: they look, ask, and make up their minds.
//
// What is timed is the calls alone, from the first to the last result: looking and deciding
// are the same whoever answers.

import { type Counts, counted } from "../ways/counting.ts";
import type { World } from "./creatures/world.ts";
import { HEADINGS } from "./creatures/senses.ts";
import type { Way } from "./ways.ts";

export interface Frame extends Counts {
  milliseconds: number;
  ranOn: string;
  /** Batches of framebatch; undefined for other ways. */
  batches: number | undefined;
}

export async function think(
  world: World,
  way: Way,
  headings = HEADINGS,
): Promise<Frame> {
  world.sense();
  const before = way.batches?.();
  const counts = await counted(() => way.answer(world.creatures, headings));
  const after = way.batches?.();
  // Creatures that weigh one heading only have nothing to choose, and keep to what they chose.
  if (headings === HEADINGS) {
    for (const creature of world.creatures) creature.decide();
  }
  world.feed();
  return {
    ...counts,
    ranOn: way.ranOn(),
    batches: after === undefined ? undefined : after - before!,
  };
}
