// The calls a session offers, as data: what each takes, gives, and merges with.
//
// A new call of the same kind (operands, and a number or one an item) is one more
// entry here and a typed line on the session. No argument is looked at in this file.

import { checked, type Core, forget } from "./core.js";
import { Recent } from "./recent.js";

/** What the elements of an operand or a result are. */
export type Element = "float32" | "uint8";

/** One call of the session. */
export interface Method {
  /** Its place in {@link METHODS}. */
  readonly index: number;
  /** As the caller writes it; every message begins with it. */
  readonly name: string;
  /** As the core knows it. */
  readonly op: string;
  /** The names of its operands, as messages give them. */
  readonly operands: readonly string[];
  /** The name of the number that follows, which may be one an item, but for `steps`. */
  readonly last: "t" | "rate" | "steps" | undefined;
  /** Elements of an operand. */
  readonly takes: Element;
  /** Elements of the result. */
  readonly gives: Element;
  /** Elements of one item in an operand, unless the caller may choose (`lerp`). */
  readonly width: number;
  /** Elements of the result for each element of the first operand, and each step. */
  readonly growth: number;
  /** The option that it has beside those of every call. */
  readonly option: "width" | "field" | undefined;
}

/** Most steps of a sequence: a `t` each that fits 16.16 fixed point. */
export const MOST_STEPS = 65_536;

const PAIR = ["a", "b"];
const POINTS = ["p0", "p1", "p2", "p3"];
const FLOATS = { takes: "float32", gives: "float32", growth: 1 } as const;
const STATES = {
  takes: "uint8",
  gives: "uint8",
  width: 16,
  growth: 1,
} as const;

const ENTRIES: readonly Entry[] = [
  {
    name: "lerp",
    operands: PAIR,
    last: "t",
    ...FLOATS,
    width: 1,
    option: "width",
  },
  { name: "slerp", operands: ["qa", "qb"], last: "t", ...FLOATS, width: 4 },
  { name: "nlerp", operands: ["qa", "qb"], last: "t", ...FLOATS, width: 4 },
  {
    name: "bezier",
    operands: POINTS,
    last: "t",
    ...FLOATS,
    width: 1,
    option: "width",
  },
  {
    name: "states.gradients",
    operands: ["states"],
    ...STATES,
    gives: "float32",
    growth: 2,
    option: "field",
  },
  { name: "states.lerp", operands: PAIR, last: "t", ...STATES },
  { name: "states.slerp", operands: PAIR, last: "t", ...STATES },
  { name: "states.bezier", operands: POINTS, last: "t", ...STATES },
  {
    name: "states.sequence",
    op: "states.sequence lerp",
    operands: PAIR,
    last: "steps",
    ...STATES,
  },
  {
    name: "states.sequence",
    op: "states.sequence slerp",
    operands: PAIR,
    last: "steps",
    ...STATES,
  },
  {
    name: "states.distance",
    operands: PAIR,
    ...STATES,
    gives: "float32",
    growth: 1 / 16,
  },
  {
    name: "states.geodesicDistance",
    operands: PAIR,
    ...STATES,
    gives: "float32",
    growth: 1 / 16,
  },
  { name: "states.descend", operands: ["states"], last: "rate", ...STATES },
];

type Entry = Omit<Method, "index" | "op" | "last" | "option"> &
  Partial<Pick<Method, "op" | "last" | "option">>;

function method(entry: Entry, index: number): Method {
  const {
    name,
    op = name,
    operands,
    last,
    takes,
    gives,
    width,
    growth,
    option,
  } = entry;
  return {
    index,
    name,
    op,
    operands,
    last,
    takes,
    gives,
    width,
    growth,
    option,
  };
}

/** Every method, by index; of one shape, so that the hot path sees one kind of object. */
export const METHODS: readonly Method[] = ENTRIES.map(method);

export const [
  /** Floats between floats, `width` of them an item. */
  LERP,
  /** Quaternions between quaternions, xyzw. */
  SLERP,
  /** Quaternions on the chords between quaternions, xyzw. */
  NLERP,
  /** Floats on curves, `width` of them an item. */
  BEZIER,
  /** States of 16 bytes in, 32 floats a state out. */
  GRADIENTS,
  /** States between states, the phase taken as a number. */
  STATES_LERP,
  /** States between states, the phase taken the short way around. */
  STATES_SLERP,
  /** States on curves. */
  STATES_BEZIER,
  /** Every step between states, the phase taken as a number. */
  SEQUENCE_LERP,
  /** Every step between states, the phase taken the short way around. */
  SEQUENCE_SLERP,
  /** One float a pair of states. */
  DISTANCE,
  /** One float a pair of states, in steps of magnitude and phase. */
  GEODESIC_DISTANCE,
  /** States one step down. */
  DESCEND,
] = METHODS;

/**
 * The core's numbers for the structures in use, each asked for once. The usual
 * ones lie in an array; an unusual width, or number of steps, is looked up.
 */
export class Structures {
  private readonly usual: number[] = new Array(METHODS.length * 2).fill(-1);
  private readonly wide: Recent<number, number>;
  private readonly fields: Recent<string, number>;

  constructor(private readonly core: Core) {
    const drop = (numbers: number[]): void => forget(core, numbers);
    this.wide = new Recent(drop);
    this.fields = new Recent(drop);
  }

  /** The number of this method's structure; `each` says that `t` is an array. */
  id(method: Method, each: boolean, width: number): number {
    if (width !== method.width) return this.wideId(method, each, width);
    const at = method.index * 2 + (each ? 1 : 0);
    const known = this.usual[at];
    if (known >= 0) return known;
    return (this.usual[at] = this.ask(method, each, width));
  }

  /** The number of the structure of a field's gradients, by its formula. */
  fieldId(formula: string): number {
    let id = this.fields.get(formula);
    if (id === undefined) {
      id = checked(this.core, this.core.field_gradients(formula));
      this.fields.add(formula, id);
    }
    return id;
  }

  private wideId(method: Method, each: boolean, width: number): number {
    // With one t for all, a float is an item of its own whatever the width.
    if (!each && method.last === "t")
      return this.id(method, each, method.width);
    const key = width * METHODS.length + method.index;
    let id = this.wide.get(key);
    if (id === undefined) {
      id = this.ask(method, each, width);
      this.wide.add(key, id);
    }
    return id;
  }

  private ask(method: Method, each: boolean, width: number): number {
    const { core } = this;
    return checked(core, core.structure(method.op, width, each));
  }
}
