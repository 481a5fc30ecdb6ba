// What is tried with a kernel: it is defined, drawn, called by many at once, compared with its
// function for the CPU, and profiled.
//
// Nothing here is shown: what was found goes to a listener, step by step.

import type { Elements, Session, Tensor } from "framebatch";
import "framebatch/kernels";
import type { SizesProfile, ValueType, Verification } from "framebatch/kernels";
import { filler, type InputData, nested } from "./data.ts";
import { type Definition, definitionOf } from "./definition.ts";
import { lanesOf, type Numbers } from "./lanes.ts";
import type { Sketch } from "./sketch.ts";

/** A result of the call that is drawn. */
export interface Drawn {
  /** The name of the field; empty where the kernel gives no struct. */
  readonly field: string;
  readonly lanes: number;
  /** The places. */
  readonly shape: readonly number[];
  readonly data: Elements;
}

/** How the calls of many went. */
export interface Merged {
  readonly callers: number;
  readonly places: number;
  readonly batches: number;
  readonly submits: number;
  readonly dispatches: number;
  /** What `gpu.explain` says of them. */
  readonly plan: string;
}

export interface Listener {
  drawn(results: readonly Drawn[]): void;
  merged(merged: Merged): void;
  /** Undefined where there is no function for the CPU. */
  verified(found: Verification | undefined): void;
  profiled(profile: SizesProfile, places: number): void;
}

/** Runs of each size that count: with more, a software adapter takes seconds. */
const ITERATIONS = 5;

/** Values of a call by the names of the inputs. */
type Values = Record<string, InputData>;

/** Tries a sketch. Rejects with the first thing that is wrong. */
export async function experiment(
  gpu: Session,
  sketch: Sketch,
  listener: Listener,
): Promise<void> {
  const definition = definitionOf(sketch);
  const kernel = gpu.kernel(definition);
  const params = Object.fromEntries(
    Object.entries(sketch.params).map(([name, { value }]) => [name, value]),
  );
  const valuesOf = filling(definition, sketch);
  const tensors: Tensor<Elements>[] = [];
  /** Makes a call of values, and what reads all of its results. */
  const asking = (values: Values) => {
    const given: Record<string, Tensor<Elements> | Numbers> = {};
    for (const [name, { data, dims }] of Object.entries(values)) {
      // Data of one axis goes with its call.
      given[name] = data;
      if (dims.length > 1) tensors.push((given[name] = gpu.tensor(data, dims)));
    }
    return () => read(gpu, listed(kernel(given, params)));
  };
  try {
    const drawn = valuesOf(sketch.shape, 0);
    const data = await asking(drawn)();
    const results = resultsOf(definition).map(([field, type], at) => ({
      field,
      lanes: lanesOf(type),
      shape: sketch.shape,
      data: data[at],
    }));
    listener.drawn(results);

    const shape = shapeOfCaller(sketch);
    const callers = Array.from({ length: sketch.callers }, (_, caller) =>
      asking(valuesOf(shape, caller)),
    );
    const ask = (count: number) =>
      Promise.all(callers.slice(0, count).map((call) => call()));
    listener.merged(await merge(gpu, sketch, () => ask(sketch.callers)));

    listener.verified(
      gpu.info?.engine === "gpu" && (definition.cpu || definition.cpuAt)
        ? await gpu.verify(kernel, [{ values: lists(drawn), params }])
        : undefined,
    );

    const profile = await gpu.profileSizes(ask, sizesTo(sketch.callers), {
      iterations: ITERATIONS,
    });
    listener.profiled(profile, sketch.places);
  } finally {
    for (const tensor of tensors) tensor.dispose();
  }
}

/** What gives the values of each caller. */
function filling({ inputs }: Definition, { inputs: expressions }: Sketch) {
  const fillers = Object.entries(inputs).map(
    ([name, type]) =>
      [name, filler(name, expressions[name] ?? "0", type)] as const,
  );
  return (shape: readonly number[], caller: number): Values =>
    Object.fromEntries(
      fillers.map(([name, fill]) => [name, fill(shape, caller)]),
    );
}

async function merge(
  gpu: Session,
  { callers, places }: Sketch,
  ask: () => Promise<unknown>,
): Promise<Merged> {
  const before = gpu.stats();
  await ask();
  const after = gpu.stats();
  return {
    callers,
    places,
    batches: after.batches - before.batches,
    submits: after.submits - before.submits,
    dispatches: after.dispatches - before.dispatches,
    plan: gpu.explain(() => {
      // Calls of a plan are sent nowhere, and say so by rejecting.
      ask().catch(() => {});
    }),
  };
}

/** The names and types of what a kernel gives. */
const resultsOf = ({ output }: Definition): [string, ValueType][] =>
  typeof output === "string" ? [["", output]] : Object.entries(output);

const listed = (
  given: Tensor<Elements> | Readonly<Record<string, Tensor<Elements>>>,
): Tensor<Elements>[] =>
  typeof given.read === "function"
    ? [given as Tensor<Elements>]
    : Object.values(given as Readonly<Record<string, Tensor<Elements>>>);

/** The results of one call, in one call. */
async function read(
  gpu: Session,
  tensors: readonly Tensor<Elements>[],
): Promise<readonly Elements[]> {
  if (tensors.length === 1) return [await tensors[0].read()];
  return gpu.readAll(tensors);
}

const lists = (values: Values): Record<string, number[]> =>
  Object.fromEntries(
    Object.entries(values).map(([name, data]) => [name, nested(data)]),
  );

/** The shape of a caller's own data: as many axes as are drawn, a square where that is possible. */
function shapeOfCaller({ shape, places }: Sketch): readonly number[] {
  const side = Math.sqrt(places);
  if (shape.length === 1) return [places];
  return Number.isInteger(side) ? [side, side] : [1, places];
}

/** Powers of ten below a number, and the number. */
function sizesTo(most: number): number[] {
  const sizes: number[] = [];
  for (let size = 1; size < most; size *= 10) sizes.push(size);
  return [...sizes, most];
}
