// The kernels of a session: what the core is told of them, and what computes them on the CPU.

import type { Core, Twin } from "../core/core.js";
import type { CoreInstance } from "../core/core-instance.js";
import type { Calls } from "../session/calls.js";
import type { Companion } from "../session/companion.js";
import {
  checkDefinition,
  type Checked,
  type CpuFunction,
  type Inputs,
  type KernelDefinition,
  type Params,
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
  const { number, name, source, maxPasses, params, cpu } = kernel;
  let told = known.get(instance);
  if (told === undefined) {
    const kernels = (told = new Map<string, Checked>());
    known.set(instance, told);
    core.explain_kernels((module, text) =>
      explain(kernels.values(), module, text),
    );
  }
  const mark = `${number} ${cpu !== undefined}`;
  if (told.has(mark)) return;
  told.set(mark, kernel);
  const sizes = [source.inputs.length, source.hasLoops ? maxPasses : 0];
  const types = params.map(([, type]) => typeNumber(type));
  core.kernel(
    number,
    name,
    textOf(kernel),
    Uint32Array.from([...sizes, ...types]),
    cpu === undefined ? undefined : twinOf(instance, kernel, cpu),
  );
}

/** The function that the core calls for columns of elements. */
function twinOf(
  instance: CoreInstance,
  { name, source, params }: Checked,
  cpu: CpuFunction,
): Twin {
  return (columns, elements, to) => {
    const { memory } = instance;
    const column = (at: number): Float32Array =>
      new Float32Array(memory.buffer, columns[at], elements).slice();
    const inputs = source.inputs.map(
      (input, at) => [input, column(at)] as const,
    );
    const numbers: Record<string, number> = {};
    for (const [at, [param, type]] of params.entries()) {
      const place = columns[source.inputs.length + at];
      numbers[param] = numberAt(memory.buffer, place, type);
    }
    const results = new Float32Array(elements);
    let failure: string | undefined;
    instance.callOut(() => {
      try {
        const values: Record<string, number> = {};
        for (let i = 0; i < elements; i += 1) {
          for (const [input, of] of inputs) values[input] = of[i];
          results[i] = cpu(values, numbers);
        }
      } catch (thrown) {
        failure = `${name}: its function cpu threw: ${messageOf(thrown)}`;
      }
    });
    // Memory may have grown meanwhile, which detaches earlier views of it.
    new Float32Array(memory.buffer, to, elements).set(results);
    return failure;
  };
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
