// The kernels of a session: what the core is told of them.

import type { Core } from "../core/core.js";
import type { CoreHome } from "../core/core-home.js";
import type { Calls } from "../session/calls.js";
import type { Companion } from "../session/companion.js";
import { checkDefinition } from "./check-definition.js";
import type {
  AnyDefinition,
  Checked,
  Inputs,
  Output,
  Params,
} from "./definition.js";
import { type Kernel, kernelOf } from "./kernel.js";
import { SCALARS, type Type } from "./source.js";
import { explain, type Part, partsOf, textOf } from "./text.js";
import { twinOf } from "./twin.js";

/** Stands for operations that a definition does not count. */
const UNKNOWN = 2 ** 32 - 1;

/** The kernels of each session. */
const sessions = new WeakMap<Calls, SessionKernels>();

/** What each instance of the core knows: results of kernels by their number and whether they have twins. */
const known = new WeakMap<CoreHome, Map<string, Part>>();

/** Defines a kernel for a session. */
export function defineKernel(
  calls: Calls,
  definition: AnyDefinition,
): Kernel<Inputs, Params, Output> {
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
    for (const kernel of this.untold) {
      for (const part of partsOf(kernel)) tell(core, instance, part);
    }
    this.untold = [];
  }
}

function tell(core: Core, instance: CoreHome, part: Part): void {
  const { kernel, number, result, type } = part;
  const { name, source, tensors, maxPasses, flops, params } = kernel;
  const twin = twinOf(instance, part);
  let told = known.get(instance);
  if (told === undefined) {
    const parts = (told = new Map<string, Part>());
    known.set(instance, told);
    core.explain_kernels((module, text) =>
      explain(parts.values(), module, text),
    );
  }
  const mark = `${number} ${twin !== undefined}`;
  if (told.has(mark)) return;
  told.set(mark, part);
  const toldBy =
    result === undefined ? undefined : kernel.results[result].toldBy;
  const inputs = tensors.map(
    ({ type, isWhole }) => codeOf(type) | (isWhole ? WHOLE : 0),
  );
  const sizes = [
    source.form === "at" ? 1 : 0,
    source.hasLoops ? maxPasses : 0,
    flops ?? UNKNOWN,
    toldBy === undefined ? 0 : toldBy + 1,
    codeOf(type),
    inputs.length,
    ...inputs,
    ...params.map(([, scalar]) => SCALARS.indexOf(scalar)),
  ];
  core.kernel(number, name, textOf(part), Uint32Array.from(sizes), twin);
}

/** The number of a type on the wire. */
const codeOf = ({ scalar, lanes }: Type): number =>
  SCALARS.indexOf(scalar) | (lanes << 2);

/** Set in the type of a tensor that does not broadcast. */
const WHOLE = 32;
