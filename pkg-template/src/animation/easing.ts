// Easings by their CSS names: parsed, and computed on the page's thread for tweens.
//
// The names are those of CSS Easing Functions Level 2. On devices, `clip.wgsl` computes
// easings.

import { invalid, kindOf } from "../checks/errors.js";

/**
 * How progress from one value to the next is eased, as in CSS: a keyword,
 * `cubic-bezier(x1, y1, x2, y2)` or `steps(count, jump-end)`.
 */
export type Easing =
  | "linear"
  | "ease"
  | "ease-in"
  | "ease-out"
  | "ease-in-out"
  | "step-start"
  | "step-end"
  | `cubic-bezier(${string})`
  | `steps(${string})`;

/** An easing as kernels read it. */
export interface Eased {
  /** 0: none, 8: a curve, 16: steps; as in a lane's flags. */
  readonly flag: 0 | 8 | 16;
  /** x1, y1, x2, y2; or steps, whether one jumps at the start, and all jumps. */
  readonly numbers: readonly [number, number, number, number];
}

const LINEAR: Eased = { flag: 0, numbers: [0, 0, 0, 0] };
const NAMED: Record<string, string> = {
  ease: "cubic-bezier(0.25, 0.1, 0.25, 1)",
  "ease-in": "cubic-bezier(0.42, 0, 1, 1)",
  "ease-out": "cubic-bezier(0, 0, 0.58, 1)",
  "ease-in-out": "cubic-bezier(0.42, 0, 0.58, 1)",
  "step-start": "steps(1, jump-start)",
  "step-end": "steps(1, jump-end)",
};

/** For each position of jumps: 1 with a jump at the start, and how many more jumps than steps. */
const JUMPS: Record<string, readonly [number, number]> = {
  "jump-start": [1, 0],
  start: [1, 0],
  "jump-end": [0, 0],
  end: [0, 0],
  "jump-none": [0, -1],
  "jump-both": [1, 1],
};

/** Parses an easing. Throws for what is none. */
export function parseEasing(about: string, easing: unknown): Eased {
  if (easing === undefined || easing === "linear") return LINEAR;
  if (typeof easing !== "string") {
    throw invalid(about, `easing must be a string, got ${kindOf(easing)}`);
  }
  const named = Object.hasOwn(NAMED, easing) ? NAMED[easing] : easing;
  const match = /^\s*([a-z-]+)\(([^()]*)\)\s*$/.exec(named);
  const words = match === null ? [] : match[2].split(",").map((w) => w.trim());
  if (match?.[1] === "cubic-bezier" && words.length === 4) {
    const numbers = words.map((word) => (word === "" ? NaN : Number(word)));
    const [x1, , x2] = numbers;
    const isCurve = x1 >= 0 && x1 <= 1 && x2 >= 0 && x2 <= 1;
    if (isCurve && numbers.every(Number.isFinite)) {
      return { flag: 8, numbers: numbers as unknown as Eased["numbers"] };
    }
  }
  if (match?.[1] === "steps" && words.length <= 2) {
    const steps = Number(words[0]);
    const place = words[1] ?? "jump-end";
    if (Object.hasOwn(JUMPS, place) && Number.isInteger(steps) && steps > 0) {
      const [first, more] = JUMPS[place];
      if (steps + more > 0) {
        return { flag: 16, numbers: [steps, first, steps + more, 0] };
      }
    }
  }
  throw invalid(
    about,
    `'${easing}' is no easing; give one of CSS: a keyword, cubic-bezier(x1, y1, x2, y2) with both x within 0 and 1, or steps(count, jump-end)`,
  );
}

/** The eased progress of a progress from 0 to 1. */
export function ease(
  { flag, numbers: [p, q, r, s] }: Eased,
  u: number,
): number {
  if (flag === 0) return u;
  if (flag === 16) return Math.min(Math.floor(u * p) + q, r) / r;
  if (u <= 0 || u >= 1) return u <= 0 ? 0 : 1;
  let low = 0;
  let high = 1;
  let at = u;
  // Newton's method between bounds, with a bisection where a step leaves these.
  for (let i = 0; i < 32; i += 1) {
    const miss = curve(p, r, at) - u;
    if (Math.abs(miss) < 1e-12) break;
    if (miss < 0) low = at;
    else high = at;
    const next = at - miss / slope(p, r, at);
    at = next >= low && next <= high ? next : (low + high) / 2;
  }
  return curve(q, s, at);
}

function curve(a: number, b: number, t: number): number {
  const rest = 1 - t;
  return 3 * rest * rest * t * a + 3 * rest * t * t * b + t * t * t;
}

function slope(a: number, b: number, t: number): number {
  const rest = 1 - t;
  return 3 * rest * rest * a + 6 * rest * t * (b - a) + 3 * t * t * (1 - b);
}
