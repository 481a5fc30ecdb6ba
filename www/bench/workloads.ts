// What is measured: a table. A new row is one entry here, and a new operation one file in ops/.

import { crowd, rotations, type Scene } from "./clips/scene.ts";
import { chain, deep, deepResident } from "./ops/chains.ts";
import { gradients } from "./ops/gradients.ts";
import { lerp } from "./ops/lerp.ts";
import { matmul } from "./ops/matmul.ts";
import { network } from "./ops/network.ts";
import type { Op } from "./ops/op.ts";
import { slerp } from "./ops/slerp.ts";
import type { Terms } from "./measure.ts";
import type { Measured } from "./run.ts";
import { measureCalls } from "./special/calls.ts";
import { measureClips } from "./special/clips.ts";
import { measureFirstCall } from "./special/first-call.ts";
import { measureKernel } from "./special/kernel.ts";
import { measureMainThread } from "./special/main-thread.ts";
import { measurePaced } from "./special/paced.ts";
import { measureSearch } from "./special/search.ts";
import { measureTrace } from "./special/trace.ts";
import { framebatchAwaited, measureTexts, TEXTS } from "./stories/texts.ts";
import { animationMixer } from "./systems/animation-mixer.ts";
import { cpuLoop } from "./systems/cpu-loop.ts";
import {
  framebatchAuto,
  framebatchCpu,
  framebatchGpu,
} from "./systems/framebatch.ts";
import { SYSTEMS } from "./systems/index.ts";
import { jaxJs } from "./systems/jax-js.ts";
import { oneBatch } from "./systems/one-batch.ts";
import { perCall } from "./systems/per-call.ts";
import type { Shape, System } from "./systems/system.ts";
import { tfjsGpu } from "./systems/tfjs.ts";

export interface Workload extends Measured<System> {
  /** Whether the parts of a row add up to its time. */
  readonly isSum?: true;
}

const ALL_CALLS = "from the first call to the last result";

const counted = (count: number) => count.toLocaleString("en");

/** Independent calls, awaited together; `of` says of what. */
function calls(name: string, of: string, op: Op, shape: Shape): Workload {
  return {
    name,
    about: `${of}, ${ALL_CALLS}`,
    ...shape,
    systems: SYSTEMS,
    measure: (system, terms) => measureCalls(op, shape, system, terms),
  };
}

/** Where the time of one warm batch goes. */
function trace(
  name: string,
  op: Op,
  shape: Shape,
  more: Partial<Workload> = {},
): Workload {
  return {
    name,
    about: `${counted(shape.calls)} ${shape.calls === 1 ? "call" : "calls"} of ${op.name} on ${counted(shape.items)}: where the time of one warm batch goes; parts add up to it`,
    ...shape,
    systems: [framebatchGpu],
    isSum: true,
    measure: (system, terms) => measureTrace(op, shape, system, terms),
    ...more,
  };
}

const smallLerp = (calls_: number, items: number) =>
  calls(
    `small-lerp-${calls_}x${items}`,
    `${counted(calls_)} ${calls_ === 1 ? "lerp" : "lerps"} of ${items} floats, a call each`,
    lerp,
    { calls: calls_, items },
  );

const small = (calls_: number, items: number) =>
  calls(
    `small-${calls_}x${items}`,
    `${counted(calls_)} chains of three operations on ${items} floats, a call each`,
    chain,
    { calls: calls_, items },
  );

/** Floats of each vector of the deep chains: ten thousand, a hundred thousand, a million. */
const VECTORS = ["1e4", "1e5", "1e6"];

const ofFive = (items: string) =>
  `one chain of five operations on vectors of ${counted(Number(items))} floats`;

const deep5 = (items: string) =>
  calls(`deep5-${items}`, ofFive(items), deep, {
    calls: 1,
    items: Number(items),
  });

/** Systems that upload every time, whatever was there before, are left out. */
const deep5Resident = (items: string): Workload => ({
  ...calls(
    `deep5-resident-${items}`,
    `${ofFive(items)} that are on the device, to an array that is kept`,
    deepResident,
    { calls: 1, items: Number(items) },
  ),
  systems: SYSTEMS.filter((system) => system !== perCall),
});

/** The product of two matrices, both up and the result down. */
const product = (side: number, more: Partial<Workload> = {}): Workload => ({
  ...calls(
    `matmul-${side}`,
    `a product of matrices of ${side} x ${side}, both up and the result down`,
    matmul,
    { calls: 1, items: side },
  ),
  ...more,
});

/** One product by itself, found by chains of `few` and of `many`. */
const productAlone = (
  side: number,
  chains: readonly [few: number, many: number],
  more: Partial<Workload> = {},
): Workload => ({
  name: `matmul-kernel-${side}`,
  about: `one product of matrices of ${side} x ${side} that stay on the device: the time of ${chains[1]} in a row less that of ${chains[0]}, over the ${chains[1] - chains[0]} between; parts: 10^12 operations a second, both times`,
  unit: "ms a product",
  ...{ calls: 1, items: side },
  systems: [framebatchGpu, tfjsGpu, jaxJs],
  measure: (system, terms) => measureKernel(side, chains, system, terms),
  ...more,
});

const LONG = { isLong: true } as const;

const framebatch = [framebatchGpu, framebatchCpu, framebatchAuto];

/** Queries of a frame against 100,000 vectors of 384 floats that stay where they are. */
const search = (queries: number): Workload => ({
  name: `search-100k-${queries}`,
  about: `${ALL_CALLS}: ${queries} ${queries === 1 ? "query" : "queries"} for the 10 of 100,000 vectors of 384 floats with the largest cosine; the index is there before`,
  ...{ calls: queries, items: 384 },
  ...LONG,
  systems: [...framebatch, cpuLoop],
  measure: (system, terms) => measureSearch(queries, system, terms),
});

/** A frame of keyframe tracks that lie where they are sampled. */
const clips = (
  name: string,
  about: string,
  shape: Shape,
  make: () => Scene,
  systems: readonly System[],
): Workload => ({
  name,
  about,
  ...shape,
  ...LONG,
  systems,
  measure: (system, terms) => measureClips(make(), system, terms),
});

const TRACKS = 10_000;
const CROWD = 100_000;

/** Tracks of 16 rotations, so many of them a clip, whose time is its own. */
const tracks = (together: number, name: string, whose: string): Workload =>
  clips(
    name,
    `${ALL_CALLS}: 10,000 tracks of 16 rotations, ${whose}`,
    { calls: TRACKS / together, items: together },
    () => rotations(TRACKS, together),
    [oneBatch, ...framebatch, cpuLoop, animationMixer, perCall],
  );

/** Where a CPU takes a minute. */
const onGpus = SYSTEMS.filter(
  (system) => system !== cpuLoop && system !== framebatchCpu,
);

const THOUSAND: Shape = { calls: 1000, items: 64 };
const MANY: Shape = { calls: 10_000, items: 16 };

/** All that workloads are about. */
export const MENU: readonly System[] = [
  ...SYSTEMS,
  animationMixer,
  framebatchAwaited,
];

export const WORKLOADS: readonly Workload[] = [
  smallLerp(256, 256),
  smallLerp(1000, 64),
  ...[1, 10, 100, 1000, 10_000].map((count) => smallLerp(count, 16)),
  small(256, 256),
  small(1000, 64),
  small(10_000, 16),
  ...VECTORS.map(deep5),
  ...VECTORS.map(deep5Resident),
  calls("slerp-1e5", "100,000 slerps in one call", slerp, {
    calls: 1,
    items: 1e5,
  }),
  calls("slerp-1e5-by-100", "1,000 calls of 100 slerps", slerp, {
    calls: 1000,
    items: 100,
  }),
  calls("gradients-1e5", "gradients of 100,000 states in one call", gradients, {
    calls: 1,
    items: 1e5,
  }),
  calls(
    "gradients-1e5-by-100",
    "1,000 calls of gradients of 100 states",
    gradients,
    { calls: 1000, items: 100 },
  ),
  product(256),
  product(1024, LONG),
  product(4096, { ...LONG, systems: onGpus }),
  productAlone(256, [4, 36], LONG),
  productAlone(1024, [10, 60], LONG),
  productAlone(4096, [2, 10], LONG),
  calls(
    "network-500",
    "500 callers of one network of 32, 64 and 10 numbers, with 1 to 40 rows each",
    network,
    { calls: 500, items: 40 },
  ),
  {
    name: `texts-${TEXTS}`,
    about: `${TEXTS} texts of 8 to 32 tokens, by an encoder of the sizes of all-MiniLM-L6-v2 with drawn weights, ${ALL_CALLS}`,
    ...{ calls: TEXTS, items: 1 },
    systems: [framebatchAuto, framebatchAwaited],
    measure: measureTexts,
  },
  ...[1, 64].map((queries) => search(queries)),
  tracks(TRACKS, "clip-10k-tracks", "all of one clip"),
  tracks(100, "clip-10k-tracks-by-100", "100 of a clip, each at its own time"),
  tracks(1, "clip-10k-tracks-by-1", "a clip for each, at its own time"),
  clips(
    "clip-100k",
    "a frame of 100,000 instances of one clip (position, rotation, scale; 16 keys each), each at its own time, until the GPU has it in the buffer that is drawn from; nothing comes back",
    { calls: 1, items: CROWD },
    () => crowd(CROWD),
    [oneBatch, framebatchGpu, cpuLoop, animationMixer, perCall],
  ),
  {
    name: "first-call",
    about:
      "the first call of a session in a fresh page, opening not included; parts.open is the opening, loading included",
    ...{ calls: 1, items: 256 },
    systems: SYSTEMS.filter((system) => system !== cpuLoop),
    measure: measureFirstCall,
  },
  ...(["frame", "eager"] as const).map((flush) => ({
    name: `paced-${flush}-1000x64`,
    about: `one flush a frame, flush: "${flush}", from the flush to the last result; parts: the main thread's share of it`,
    ...THOUSAND,
    systems: framebatch,
    measure: (system: System, terms: Terms) =>
      measurePaced(flush, THOUSAND, system, terms),
  })),
  {
    name: "main-thread-10000x16",
    about:
      "the main thread's share of a call, from making it to its result; parts: of what, and bytes of memory that a batch leaves",
    unit: "µs a call",
    ...MANY,
    systems: framebatch,
    measure: (system, terms) => measureMainThread(MANY, system, terms),
  },
  trace("trace-lerp-1000x64", lerp, THOUSAND),
  trace("trace-lerp-10000x16", lerp, MANY),
  trace("trace-chain-1000x64", chain, THOUSAND),
  trace("trace-deep5-1e6", deep, { calls: 1, items: 1e6 }),
  trace("trace-slerp-1e5", slerp, { calls: 1, items: 1e5 }),
  trace("trace-matmul-1024", matmul, { calls: 1, items: 1024 }, LONG),
  trace("trace-network-500", network, { calls: 500, items: 40 }),
  trace("trace-gradients-1e5", gradients, { calls: 1, items: 1e5 }),
];
