// An operation that is measured: its inputs, what is right, and how each system asks for it.
//
// One entry holds all of it, so that a new operation is one file. How a system is
// opened and how its calls are awaited is in `../systems`; nothing here is timed.

import type { numpy } from "@jax-js/jax";
import type * as tf from "@tensorflow/tfjs-core";
import type { Session } from "framebatch";

export type Operand = Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;

/** One call: its operands, and the one `t` of all its items where the operation has one. */
export interface Call {
  readonly operands: readonly Operand[];
  readonly t: number;
}

/**
 * How far an answer may be from float64. `builtin` is for systems that compute with
 * the trigonometry of WGSL, of which the specification promises little.
 */
export interface Bounds {
  readonly own: number;
  readonly builtin: number;
}

/** WGSL by hand: four floats of the result a thread. */
export interface Kernel {
  /** The element type of each operand's binding, `in0`, `in1`, … */
  readonly operands: readonly string[];
  /** Whether the kernel reads `t`. */
  readonly timed: boolean;
  /** Bytes of an operand for four floats of the result. */
  readonly bytes: number;
  /** `fn compute(i: u32, t: f32) -> vec4f`: the i-th four floats. */
  readonly code: string;
}

export type TensorFlow = typeof tf;
export type Jax = typeof import("@jax-js/jax");

/** Traced and compiled once; takes the operands as they are, and `t` as an array of one. */
export type Jitted = (...inputs: numpy.Array[]) => numpy.Array;

export interface Op {
  readonly name: string;
  readonly bounds: Bounds;
  /** `count` calls of `items` each. */
  calls(count: number, items: number): Call[];
  /** What is right, in float64. */
  expected(call: Call): ArrayLike<number>;
  /** The typed-array loop. */
  loop(call: Call): Float32Array;
  framebatch(gpu: Session, call: Call): Promise<Float32Array>;
  readonly kernel: Kernel;
  /** Undefined where the system cannot express it. */
  readonly tfjs?: (tf: TensorFlow, call: Call) => tf.Tensor;
  readonly jax?: {
    /** The operands as arrays. */
    inputs(jax: Jax, call: Call): numpy.Array[];
    jitted(jax: Jax): Jitted;
  };
}
