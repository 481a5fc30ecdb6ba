// The operands of a method on arrays: one to four of the same length, and a number for
// all items or one an item.
//
// What may be wrong with arguments is found in `arguments.ts`; which methods there are is
// listed in `methods.ts`.

import { allocate } from "../checks/allocation.js";
import { type Arena } from "../memory/arena.js";
import { aligned, wordsIn, type Operand } from "../memory/arrays.js";
import {
  type Arguments,
  checkInto,
  checkOperands,
  type Fraction,
} from "./arguments.js";
import type { CheckedOptions } from "./call-options.js";
import type { Method } from "./methods.js";
import { Operands } from "./operands.js";
import type { Structures } from "./structures.js";

/** Takes the place of an array that is written. */
const WRITTEN = new Float32Array(0);

/** The arrays of one call, until they are written. */
export class ArrayOperands extends Operands implements Arguments {
  declare readonly method: Method;

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

  get rows(): number {
    const { method, a, t } = this;
    return typeof t === "object" ? t.length : a.length / method.width;
  }

  get elements(): number {
    const { method, a, t } = this;
    const growth = method.last === "steps" ? (t as number) : 1;
    return a.length * method.growth * growth;
  }

  get isEmpty(): boolean {
    return this.a.length === 0;
  }

  override get scalar(): number {
    return typeof this.t === "number" ? this.t : 0;
  }

  override check(about: string, terms: CheckedOptions | undefined): void {
    const width = terms === undefined ? this.method.width : terms.width;
    checkOperands(about, this, width);
    if (terms?.into !== undefined) checkInto(about, this, terms.into);
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
    let width = terms === undefined ? method.width : terms.width;
    if (method.last === "steps") width = t as number;
    const fractions = typeof t === "object" ? t.length : 0;
    const structure = this.structures.id(
      method,
      fractions > 0,
      width,
      terms?.field,
    );
    // All arrays have one length.
    const each = aligned(wordsIn(a));
    const words = each * method.operands.length;
    let at = arena.reserve(words + aligned(fractions));
    arena.put(a, at);
    if (b !== undefined) arena.put(b, (at += each));
    if (rest !== undefined) {
      for (let k = 0; k < rest.length; k += 1) arena.put(rest[k], (at += each));
    }
    if (typeof t === "object") arena.put(t, at + each);
    // A pending call keeps no arrays of its caller alive.
    this.a = WRITTEN;
    this.b = this.rest = undefined;
    if (typeof t === "object") this.t = undefined;
    return structure;
  }
}

// A new array and not `slice`, which is a view where Node's buffers are given.
function copyOf<Kind extends Operand>(about: string, operand: Kind): Kind {
  const Kind = operand.BYTES_PER_ELEMENT === 4 ? Float32Array : Uint8Array;
  const { byteLength: bytes } = operand;
  const instead = "await gpu.ready, so that it need not be kept";
  return allocate({ about, bytes, instead }, () => new Kind(operand) as Kind);
}
