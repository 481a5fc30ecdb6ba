// The methods on arrays, as data: what each takes and gives.
//
// A new method of this kind (arrays, and a number or one an item) is one more entry in
// this table and a typed line on the session. No argument is looked at here.

import type { Element } from "../memory/arrays.js";
import type { CallMethod } from "./operands.js";

/** One method of the session on arrays. */
export interface Method extends CallMethod {
  /** The method's index in {@link METHODS}. */
  readonly index: number;
  /** The core's name of the method. */
  readonly op: string;
  /** The names of the operands in messages. */
  readonly operands: readonly string[];
  /** The name of the number behind the operands. All but `steps` may be one number an item. */
  readonly last: "t" | "rate" | "steps" | undefined;
  /** Elements of an operand. */
  readonly takes: Element;
  /** Elements of the result for each element of the first operand, and each step. */
  readonly growth: number;
}

/** Most steps of a sequence: each step has a `t` that fits 16.16 fixed point. */
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
  return {
    index,
    name: entry.name,
    op: entry.op ?? entry.name,
    operands: entry.operands,
    last: entry.last,
    takes: entry.takes,
    gives: entry.gives,
    width: entry.width,
    growth: entry.growth,
    option: entry.option,
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
