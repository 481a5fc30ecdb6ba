// framebatch as a page opens it, under each policy and each engine: nobody flushes by hand.

import { open, type OpenOptions } from "framebatch";
import { hold, known } from "../systems/framebatch.ts";
import type { Answering } from "./system.ts";

export const POLICIES = ["auto", "frame", "eager"] as const;
export const ENGINES = ["gpu", "auto"] as const;

type Policy = (typeof POLICIES)[number];
type Engine = (typeof ENGINES)[number];

/** The options that every session here is opened with. */
function sessionOptions(policy: Policy, engine: Engine): OpenOptions {
  return {
    engine,
    flush: policy,
    // A load does not wait for room, so a full queue has to refuse.
    overflow: "reject",
    // Work in software may take longer than a GPU may owe an answer by default.
    stallMs: 120_000,
  };
}

export const systemName = (policy: string, engine: string) =>
  `framebatch-${policy}-${engine}`;

function framebatch(policy: Policy, engine: Engine): Answering {
  const options = sessionOptions(policy, engine);
  return {
    name: systemName(policy, engine),
    options,
    about: `this package, flush: "${policy}", engine: "${engine}"`,
    bound: "own",
    async open(kinds) {
      const gpu = await open(options);
      await known(gpu);
      const held = kinds.map(({ op, calls }) => hold(gpu, op, calls));
      return {
        ask: (kind, call) => kinds[kind].op.framebatch(gpu, call, held[kind]),
        stats: () => gpu.stats(),
        close: () => gpu.dispose(),
      };
    },
  };
}

/** An engine after the other, each under every policy. */
export const FRAMEBATCH: readonly Answering[] = ENGINES.flatMap((engine) =>
  POLICIES.map((policy) => framebatch(policy, engine)),
);

/** The policy that others are compared with: the same engine, one flush a frame. */
export function flushedByFrame(system: string): string {
  const [, , engine = ENGINES[0]] = system.split("-");
  const isOurs = FRAMEBATCH.some(({ name }) => name === system);
  return systemName("frame", isOurs ? engine : ENGINES[0]);
}
