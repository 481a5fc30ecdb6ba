// The four ways to answer the creatures' questions, behind one shape.
//
// A way answers the questions of one frame; it neither counts nor measures.

import { open, type Session } from "framebatch";
import { BRAINS } from "./creatures/brains.ts";
import type { Ask, Creature } from "./creatures/creature.ts";
import { HIDDEN, INPUTS, OUTPUTS, PlainLoop } from "./creatures/network.ts";
import type { SpeciesName } from "./creatures/species.ts";
import { type Backend, openTensorFlow } from "./tensorflow.ts";

/** The names of the ways, as the page's switch has them. */
export type WayName = "framebatch" | "awaited" | "tfjs" | "loop";

export interface Way {
  /** Answers all creatures about so many headings each; done when the last has its answer. */
  answer(creatures: readonly Creature[], headings: number): Promise<void>;
  /** Where the last frame was computed. */
  ranOn(): string;
  /** Batches that were sent since the page opened; undefined where the word means nothing. */
  batches?(): number;
}

export type Ways = Readonly<Record<WayName, Way>>;

/** Opens what the ways need, framebatch by its default options. */
export async function openWays(backend: Backend): Promise<Ways> {
  return {
    framebatch: await openTogether(),
    awaited: await openAwaited(),
    tfjs: openedLate(async () => {
      const { ask, ranOn } = await openTensorFlow(backend);
      return { answer: (...frame) => allOf(ask, ...frame), ranOn };
    }),
    loop: plainLoop(),
  };
}

/**
 * Every creature asks, and all of them wait together. The page flushes when the last of a
 * frame has asked; without that the calls go when the frame ends, after the browser has drawn it.
 */
async function openTogether(): Promise<Way> {
  const gpu = await open();
  const ask = asked(gpu);
  return {
    async answer(creatures, headings) {
      const answers = allOf(ask, creatures, headings);
      gpu.flush();
      await answers;
    },
    ...facts(gpu),
  };
}

/** A creature asks when the one before has its answer, and is sent at once. */
async function openAwaited(): Promise<Way> {
  const gpu = await open();
  const ask = asked(gpu, { flush: "now" });
  return {
    async answer(creatures, headings) {
      for (const creature of creatures) await creature.think(ask, headings);
    },
    ...facts(gpu),
  };
}

async function allOf(
  ask: Ask,
  creatures: readonly Creature[],
  headings: number,
): Promise<void> {
  await Promise.all(creatures.map((creature) => creature.think(ask, headings)));
}

/** What a component writes that asks its network by framebatch. */
function asked(gpu: Session, options: { flush?: "now" } = {}): Ask {
  const network = (species: SpeciesName) => {
    const { first, firstBias, second, secondBias } = BRAINS[species];
    return {
      first: gpu.tensor(first, [INPUTS, HIDDEN]),
      firstBias: gpu.tensor(firstBias),
      second: gpu.tensor(second, [HIDDEN, OUTPUTS]),
      secondBias: gpu.tensor(secondBias),
    };
  };
  const networks = { grazer: network("grazer"), hunter: network("hunter") };
  return ({ species, inputs, into }) => {
    const { first, firstBias, second, secondBias } = networks[species];
    return gpu
      .tensor(inputs, [inputs.length / INPUTS, INPUTS])
      .matmul(first)
      .add(firstBias)
      .relu()
      .matmul(second)
      .add(secondBias)
      .read({ into, ...options });
  };
}

/** What a session says of its last frame. */
function facts(gpu: Session): Pick<Way, "ranOn" | "batches"> {
  let before = { gpu: 0, cpu: 0 };
  return {
    ranOn() {
      const now = gpu.stats().ranOn;
      const [onGpu, onCpu] = [now.gpu - before.gpu, now.cpu - before.cpu];
      before = { ...now };
      if (onCpu === 0) return "GPU";
      return onGpu === 0 ? "CPU" : "both";
    },
    batches: () => gpu.stats().batches,
  };
}

function plainLoop(): Way {
  const loops = {
    grazer: new PlainLoop(BRAINS.grazer),
    hunter: new PlainLoop(BRAINS.hunter),
  };
  const ask: Ask = ({ species, inputs, into }) =>
    loops[species].answer(inputs, into);
  return {
    async answer(creatures, headings) {
      for (const creature of creatures) creature.think(ask, headings);
    },
    ranOn: () => "CPU",
  };
}

/** A way that is opened by its first frame: a library of its own is not loaded for nothing. */
function openedLate(openWay: () => Promise<Way>): Way {
  let way: Promise<Way> | undefined;
  let ranOn = "";
  return {
    async answer(creatures, headings) {
      const opened = await (way ??= openWay());
      await opened.answer(creatures, headings);
      ranOn = opened.ranOn();
    },
    ranOn: () => ranOn,
  };
}
