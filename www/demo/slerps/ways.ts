// The three ways to answer the slerps of a frame, behind one shape.
//
// A way answers one frame of all components; it neither counts nor measures.

import { open, type Session } from "framebatch";
import { openSlerp } from "./by-hand.ts";
import type { Component, Slerp } from "./component.ts";
import { slerp } from "./quaternion.ts";

/** The names of the ways, as the page's second table has them. */
export type SlerpWayName = "framebatch" | "per-call" | "loop";

/** One way to answer a frame's calls; done when every component has its answer. */
export type SlerpWay = (
  components: Component[],
  seconds: number,
) => Promise<void>;

/** The ways that work here; `gpu` is the session behind the first. */
export interface SlerpWays {
  ways: Partial<Record<SlerpWayName, SlerpWay>>;
  gpu: Session | undefined;
  /** Why there is no GPU, where there is none. */
  problem: unknown;
}

/** Opens what the ways need. Without a GPU, the plain loop remains. */
export async function openSlerpWays(): Promise<SlerpWays> {
  const loop: SlerpWay = async (components, seconds) => {
    for (const component of components) component.turnAtOnce(slerp, seconds);
  };
  try {
    const gpu = await open({ engine: "gpu" });
    const together: Slerp = (from, to, t) => gpu.slerp(from, to, t);
    const ways = {
      framebatch: answeredBy(together),
      "per-call": answeredBy(await openSlerp()),
      loop,
    };
    return { ways, gpu, problem: undefined };
  } catch (problem) {
    return { ways: { loop }, gpu: undefined, problem };
  }
}

/** Every component asks, and all of them wait together. */
function answeredBy(slerp: Slerp): SlerpWay {
  return async (components, seconds) => {
    await Promise.all(
      components.map((component) => component.turn(slerp, seconds)),
    );
  };
}
