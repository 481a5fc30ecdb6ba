// The operands of a method on arrays: one to four of the same length, and a number for
// all items or one an item.
//
// What may be wrong with arguments is found in `arguments.ts`; which methods there are is
// listed in `methods.ts`.

import { allocate } from "../checks/allocation.js";
import { type Arena } from "../memory/arena.js";
import { aligned, wordsIn, type Operand } from "../memory/arrays.js";
import { type Arguments, checkArguments, type Fraction } from "./arguments.js";
import type { CheckedOptions } from "./call-options.js";
import type { Method } from "./methods.js";
import { Operands } from "./operands.js";
import type { Structures } from "./structures.js";

/** Takes the place of an array that is written. */
const WRITTEN = new Float32Array(0);

/** The arrays of one call, until they are written. */
export class ArrayOperands extends Operands implements Arguments {
  declare readonly method: Method;
  rows = 0;
  elements = 0;

  constructor(
    private readonly structures: Structures,
    method: Method,
    public a: Operand,
    public b: Operand | undefined,
    public t: Fraction | undefined,
    public rest: readonly Operand[] | undefined,
  ) {
    super(method);
  }

  get isEmpty(): boolean {
    return this.a.length === 0;
  }

  override get scalar(): number {
    return typeof this.t === "number" ? this.t : 0;
  }

  override check(about: string, terms: CheckedOptions | undefined): void {
    checkArguments(about, this, terms);
  }

  override copy(about: string): void {
    const { a, b, t, rest } = this;
    const copied = <Kind extends Operand>(array: Kind): Kind =>
      copyOf(about, array);
    this.a = copied(a);
    this.b = b && copied(b);
    this.t = typeof t === "object" ? copied(t) : t;
    this.rest = rest?.map(copied);
  }

  write(arena: Arena, terms: CheckedOptions | undefined): number {
    const { method, a, b, t, rest } = this;
    const fractions = typeof t === "object" ? t : undefined;
    const isSequence = method.last === "steps";
    let width = terms === undefined ? method.width : terms.width;
    if (isSequence) width = t as number;
    const structure =
      terms?.field === undefined
        ? this.structures.id(method, fractions !== undefined, width)
        : this.structures.fieldId(terms.field);
    // All arrays have one length.
    const each = aligned(wordsIn(a));
    let words = b === undefined ? each : each * 2;
    if (rest !== undefined) words += each * rest.length;
    const at = arena.reserve(
      fractions === undefined ? words : words + aligned(fractions.length),
    );
    arena.put(a, at);
    if (b !== undefined) arena.put(b, at + each);
    if (rest !== undefined) {
      for (let k = 0; k < rest.length; k += 1) {
        arena.put(rest[k], at + each * (k + 2));
      }
    }
    if (fractions !== undefined) arena.put(fractions, at + words);
    this.rows =
      fractions === undefined ? a.length / method.width : fractions.length;
    const growth = isSequence ? method.growth * width : method.growth;
    this.elements = a.length * growth;
    this.forget();
    return structure;
  }

  // A pending call keeps no arrays of its caller alive.
  private forget(): void {
    this.a = WRITTEN;
    this.b = this.rest = undefined;
    if (typeof this.t === "object") this.t = undefined;
  }
}

// A new array and not `slice`, which is a view where Node's buffers are given.
function copyOf<Kind extends Operand>(about: string, operand: Kind): Kind {
  const Kind = operand.BYTES_PER_ELEMENT === 4 ? Float32Array : Uint8Array;
  const { byteLength: bytes } = operand;
  const instead = "await gpu.ready, so that it need not be kept";
  return allocate({ about, bytes, instead }, () => new Kind(operand) as Kind);
}
