// The calls a session offers, as data: what each takes, gives, and merges with.
//
// A new call of the same kind (one or two operands and a `t`) is one more entry
// here and a typed line on the session. No argument is looked at in this file.

import { checked, type Core } from "./core.js";

/** What the elements of an operand or a result are. */
export type Element = "float32" | "uint8";

/** One call of the session. */
export interface Method {
  /** Its place in {@link METHODS}. */
  readonly index: number;
  /** As the caller writes it, and the core knows it; every message begins with it. */
  readonly name: string;
  /** The names of its operands, as messages give them; `t` follows where there are two. */
  readonly operands: readonly [string] | readonly [string, string];
  /** Elements of an operand. */
  readonly takes: Element;
  /** Elements of the result. */
  readonly gives: Element;
  /** Elements of one item in an operand, unless the caller may choose (`lerp`). */
  readonly width: number;
  /** Elements of the result for each element of the first operand. */
  readonly growth: number;
}

/** Floats between floats, `width` of them an item. */
export const LERP: Method = {
  index: 0,
  name: "lerp",
  operands: ["a", "b"],
  takes: "float32",
  gives: "float32",
  width: 1,
  growth: 1,
};

/** Quaternions between quaternions, xyzw. */
export const SLERP: Method = {
  index: 1,
  name: "slerp",
  operands: ["qa", "qb"],
  takes: "float32",
  gives: "float32",
  width: 4,
  growth: 1,
};

/** States of 16 bytes in, 32 floats a state out. */
export const GRADIENTS: Method = {
  index: 2,
  name: "states.gradients",
  operands: ["states"],
  takes: "uint8",
  gives: "float32",
  width: 16,
  growth: 2,
};

/** States between states, the phase taken as a number. */
export const STATES_LERP: Method = {
  index: 3,
  name: "states.lerp",
  operands: ["a", "b"],
  takes: "uint8",
  gives: "uint8",
  width: 16,
  growth: 1,
};

/** States between states, the phase taken the short way around. */
export const STATES_SLERP: Method = {
  index: 4,
  name: "states.slerp",
  operands: ["a", "b"],
  takes: "uint8",
  gives: "uint8",
  width: 16,
  growth: 1,
};

/** Every method, by index. */
export const METHODS: readonly Method[] = [
  LERP,
  SLERP,
  GRADIENTS,
  STATES_LERP,
  STATES_SLERP,
];

/**
 * The core's numbers for the structures in use, each asked for once. The usual
 * ones lie in an array; a `lerp` of an unusual width is looked up by its width.
 */
export class Structures {
  private readonly usual: number[] = new Array(METHODS.length * 2).fill(-1);
  private readonly wide = new Map<number, number>();

  constructor(private readonly core: Core) {}

  /** The number of this method's structure; `each` says that `t` is an array. */
  id(method: Method, each: boolean, width: number): number {
    if (width !== method.width) return this.wideId(method, each, width);
    const at = method.index * 2 + (each ? 1 : 0);
    const known = this.usual[at];
    if (known >= 0) return known;
    return (this.usual[at] = this.ask(method, each, width));
  }

  private wideId(method: Method, each: boolean, width: number): number {
    // With one t for all, a float is an item of its own whatever the width.
    if (!each) return this.id(method, each, method.width);
    let id = this.wide.get(width);
    if (id === undefined) {
      id = this.ask(method, each, width);
      this.wide.set(width, id);
    }
    return id;
  }
  private ask(method: Method, each: boolean, width: number): number {
    const { core } = this;
    return checked(core, core.structure(method.name, width, each));
  }
}
