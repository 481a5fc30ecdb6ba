// The kernels of a session: what the core is told of them.

import type { Core } from "../core/core.js";
import type { CoreInstance } from "../core/core-instance.js";
import type { Calls } from "../session/calls.js";
import type { Companion } from "../session/companion.js";
import {
  checkDefinition,
  type Checked,
  type Inputs,
  type KernelDefinition,
  type Params,
  typeNumber,
} from "./definition.js";
import { type Kernel, kernelOf } from "./kernel.js";
import { explain, textOf } from "./text.js";
import { twinOf } from "./twin.js";

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
