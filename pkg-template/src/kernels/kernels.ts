// The kernels of a session: what the core is told of them, and what computes them on the CPU.

import type { Core, Twin } from "../core/core.js";
import type { CoreInstance } from "../core/core-instance.js";
import type { Calls } from "../session/calls.js";
import type { Companion } from "../session/companion.js";
import {
  checkDefinition,
  type Checked,
  type ElementFunction,
  type Inputs,
  type KernelDefinition,
  type KernelInput,
  type Params,
  type PlaceFunction,
  typeNumber,
} from "./definition.js";
import { type Kernel, kernelOf } from "./kernel.js";
import { explain, textOf } from "./text.js";

/** The kernels of each session. */
const sessions = new WeakMap<Calls, SessionKernels>();

/** What each instance of the core knows: kernels by their number and whether they have twins. */
const known = new WeakMap<CoreInstance, Map<string, Checked>>();

/** Defines a kernel for a session. */
export function defineKernel(
  calls: Calls,
  definition: KernelDefinition<Inputs, Params>,
): Kernel<Inputs, Params> {
  const checked = checkDefinition(definition);
  let kernels = sessions.get(calls);
  if (kernels === undefined) {
    sessions.set(calls, (kernels = new SessionKernels(calls)));
    calls.join(kernels);
  }
  kernels.define(checked);
  return kernelOf(calls, checked);
}

class SessionKernels implements Companion {
  /** The kernels that the core is to be told of. */
  private untold: Checked[] = [];

  constructor(private readonly calls: Calls) {}

  define(kernel: Checked): void {
    this.untold.push(kernel);
    this.tell();
    // The core may be at work at this moment.
    if (this.untold.length > 0) queueMicrotask(() => this.tell());
  }

  open(_core: Core): void {
    this.tell();
  }

  hear(): void {
    // Definitions are of no device.
  }

  close(): void {
    this.untold = [];
  }

  private tell(): void {
    const { core, instance } = this.calls;
    if (core === undefined || instance === undefined) return;
    for (const kernel of this.untold) tell(core, instance, kernel);
    this.untold = [];
  }
}

function tell(core: Core, instance: CoreInstance, kernel: Checked): void {
  const { number, name, source, inputs, maxPasses, params } = kernel;
  const twin = twinOf(instance, kernel);
  let told = known.get(instance);
  if (told === undefined) {
    const kernels = (told = new Map<string, Checked>());
    known.set(instance, told);
    core.explain_kernels((module, text) =>
      explain(kernels.values(), module, text),
    );
  }
  const mark = `${number} ${twin !== undefined}`;
  if (told.has(mark)) return;
  told.set(mark, kernel);
  const form = source.form === "at" ? 1 : 0;
  const sizes = [form, inputs.length, source.hasLoops ? maxPasses : 0];
  const types = params.map(([, type]) => typeNumber(type));
  core.kernel(
    number,
    name,
    textOf(kernel),
    Uint32Array.from([...sizes, ...types]),
    twin,
  );
}

/** The function that the core calls for elements. */
function twinOf(instance: CoreInstance, kernel: Checked): Twin | undefined {
  const { name, inputs, params, cpu, cpuAt } = kernel;
  if (cpu === undefined && cpuAt === undefined) return undefined;
  return (columns, first, elements, to) => {
    const { memory } = instance;
    const numbers: Record<string, number> = {};
    for (const [at, [param, type]] of params.entries()) {
      const place = columns[3 * (inputs.length + at)];
      numbers[param] = numberAt(memory.buffer, place, type);
    }
    // Memory may grow while the page's function runs, which detaches views of it.
    const own = inputs.map((_, at) => {
      const [place, count] = columns.subarray(3 * at);
      return new Float32Array(memory.buffer, place, count).slice();
    });
    const results = new Float32Array(elements);
    const run = (): void => {
      if (cpu !== undefined) fill(results, cpu, { inputs, own, numbers });
      else fillAt(results, cpuAt!, { inputs, own, numbers, columns, first });
    };
    let failure: string | undefined;
    instance.callOut(() => {
      try {
        run();
      } catch (thrown) {
        failure = `${name}: its function for the CPU threw: ${messageOf(thrown)}`;
      }
    });
    new Float32Array(memory.buffer, to, elements).set(results);
    return failure;
  };
}

/** What a function of the page's computes elements of. */
interface Elements {
  /** The names of the inputs, and their elements. */
  readonly inputs: readonly string[];
  readonly own: readonly Float32Array[];
  readonly numbers: Record<string, number>;
}

function fill(
  results: Float32Array,
  cpu: ElementFunction,
  { inputs, own, numbers }: Elements,
): void {
  const values: Record<string, number> = {};
  for (let i = 0; i < results.length; i += 1) {
    for (let at = 0; at < own.length; at += 1) values[inputs[at]] = own[at][i];
    results[i] = cpu(values, numbers);
  }
}

function fillAt(
  results: Float32Array,
  cpu: PlaceFunction,
  {
    inputs,
    own,
    numbers,
    columns,
    first,
  }: Elements & { readonly columns: Uint32Array; readonly first: number },
): void {
  const looked: Record<string, KernelInput> = {};
  for (const [at, input] of inputs.entries()) {
    looked[input] = inputOf(own[at], columns[3 * at + 2]);
  }
  for (let i = 0; i < results.length; i += 1) {
    results[i] = cpu(first + i, looked, numbers);
  }
}

function inputOf(values: Float32Array, columns: number): KernelInput {
  const size = values.length;
  const rows = size / columns;
  const within = (place: number, end: number): number =>
    Math.min(Math.max(Math.trunc(place), 0), end - 1);
  const at = (row: number, column: number): number =>
    values[within(row, rows) * columns + within(column, columns)];
  const look = (place: number): number => values[within(place, size)];
  return Object.assign(look, { at, size, rows, columns });
}

function numberAt(
  memory: ArrayBufferLike,
  place: number,
  type: Checked["params"][number][1],
): number {
  if (type === "f32") return new Float32Array(memory, place, 1)[0];
  const bits = new Uint32Array(memory, place, 1)[0];
  return type === "u32" ? bits : bits | 0;
}

const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);
