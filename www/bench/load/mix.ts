// What the calls of a load are: operations of the bench, in sizes that components ask for.

import { chain } from "../ops/chains.ts";
import { gradients } from "../ops/gradients.ts";
import { lerp } from "../ops/lerp.ts";
import { network } from "../ops/network.ts";
import type { Call, Op } from "../ops/op.ts";
import { slerp } from "../ops/slerp.ts";

/** Calls of one operation, of which a load takes one after the other. */
export interface Kind {
  readonly op: Op;
  readonly calls: readonly Call[];
}

export const MIXES = ["mixed", "lerp"] as const;
export type Mix = (typeof MIXES)[number];

/** The parts of a mix, in words. */
export const ABOUT_MIX: Record<Mix, string> = {
  mixed:
    "lerps of 64 floats, slerps of 16 rotations, chains of three operations on 256 floats, a network of 32, 64 and 10 numbers for 1 to 8 rows, gradients of 16 states, as many of each",
  lerp: "lerps of 64 floats",
};

/** Different calls of a kind: enough that no cache holds one's numbers for the next. */
const POOL = 64;

export function kindsOf(mix: Mix): readonly Kind[] {
  return mix === "lerp"
    ? [kind(lerp, 64)]
    : [
        kind(lerp, 64),
        kind(slerp, 16),
        kind(chain, 256),
        kind(network, 8),
        kind(gradients, 16),
      ];
}

/** A kind of calls of so many items each, of which a mix has a pool of different ones. */
export const kind = (op: Op, items: number): Kind => ({
  op,
  calls: op.calls(POOL, items),
});
