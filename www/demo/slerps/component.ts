// A component of the second table: two rotations, a rhythm, and the rotation it has now.
//
// A component asks for its own rotation once a frame and knows neither the others
// nor how its call is answered.

import { facing } from "./quaternion.ts";

/** Answers a call, now or later. */
export type Slerp = (
  from: Float32Array,
  to: Float32Array,
  t: number,
) => Float32Array | Promise<Float32Array>;

export class Component {
  /** The last answer. */
  rotation: Float32Array;

  constructor(
    readonly from: Float32Array,
    readonly to: Float32Array,
    /** Where in its swing it starts, in radians. */
    readonly phase: number,
  ) {
    this.rotation = from;
  }

  /** How far between the two rotations it is, at a time in seconds. */
  progress(seconds: number): number {
    return 0.5 - 0.5 * Math.cos(seconds * 1.1 - this.phase);
  }

  /** Asks for its rotation at a time in seconds. */
  async turn(slerp: Slerp, seconds: number): Promise<void> {
    this.rotation = await slerp(this.from, this.to, this.progress(seconds));
  }

  /** The same without a promise, for the plain loop. */
  turnAtOnce(slerp: typeof import("./quaternion.ts").slerp, seconds: number) {
    this.rotation = slerp(this.from, this.to, this.progress(seconds));
  }
}

/** A field of components, row by row, whose rotations differ from place to place. */
export function field(columns: number, rows: number): Component[] {
  return Array.from({ length: columns * rows }, (_, index) => {
    const x = ((index % columns) + 0.5) / columns - 0.5;
    const y = (Math.floor(index / columns) + 0.5) / rows - 0.5;
    const swirl = Math.atan2(y, x) + 5 * Math.hypot(x, y);
    const lean = 3 * Math.sin(5 * x + 2) * Math.cos(4 * y);
    return new Component(
      facing(Math.cos(swirl), Math.sin(swirl), 0.55),
      facing(Math.cos(swirl + lean + 2), Math.sin(swirl + lean + 2), 0.9),
      9 * Math.hypot(x * 1.3, y),
    );
  });
}
