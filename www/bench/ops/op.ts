// An operation that is measured: its inputs, what is right, and how each system asks for it.
//
// One entry holds all of it, so that a new operation is one file. How a system is
// opened and how its calls are awaited is in `../systems`; nothing here is timed.

import type { numpy } from "@jax-js/jax";
import type * as tf from "@tensorflow/tfjs-core";
import type { Session, Tensor } from "framebatch";

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

/**
 * Operands, the last so many, that are the same arrays in all calls of a run. A system
 * keeps them as whatever it has for that: from the start of each run, or from before
 * anything is timed.
 */
export interface Held {
  readonly operands: number;
  readonly since: "run" | "open";
  /** The dimensions of each, where they are no vectors. */
  readonly shapes?: readonly number[][];
  /** Whether results go to an array that the caller keeps, in systems that can. */
  readonly into?: true;
}

/** WGSL by hand. */
export interface Kernel {
  /** The element type of each operand's binding, `in0`, `in1`, … */
  readonly operands: readonly string[];
  /** Whether the kernel reads `t`. */
  readonly timed: boolean;
  /** Bytes of the first operand for four floats of the result. */
  readonly bytes: number;
  /** `fn compute(i: u32, t: f32) -> vec4f`: the i-th four floats; or see `whole`. */
  readonly code: string;
  /** Where `code` has a `main` of its own, which writes to `output`. */
  readonly whole?: {
    /** The element type of `output`. */
    readonly output: string;
    /** Workgroups for a result of so many floats. */
    groups(floats: number): readonly [x: number, y: number];
  };
}

export type TensorFlow = typeof tf;
export type Jax = typeof import("@jax-js/jax");

/** A part of an operation, as an API of single operations has it. */
export interface Step {
  readonly kernel: Kernel;
  /** The call's operands that it takes, behind the result of the step before. */
  readonly takes: readonly number[];
}

/** Traced and compiled once; takes the operands as they are, and `t` as an array of one. */
export type Jitted = (...inputs: numpy.Array[]) => numpy.Array;

export interface Op {
  readonly name: string;
  readonly bounds: Bounds;
  readonly held?: Held;
  /** `count` calls of `items` each. */
  calls(count: number, items: number): Call[];
  /** What is right, in float64: all of it, or of every so manieth place. */
  expected(call: Call): ArrayLike<number>;
  /** How far those places are apart, where computing all would take too long. */
  stride?(call: Call): number;
  /** The typed-array loop. */
  loop(call: Call, into?: Float32Array): Float32Array;
  framebatch(
    gpu: Session,
    call: Call,
    held: readonly Tensor[],
    into?: Float32Array,
  ): Promise<Float32Array>;
  readonly kernel: Kernel;
  /** What it is made of where each operation is a call of its own; one kernel if undefined. */
  readonly steps?: readonly Step[];
  /** Undefined where the system cannot express it. */
  readonly tfjs?: (
    tf: TensorFlow,
    call: Call,
    held: readonly tf.Tensor[],
  ) => tf.Tensor;
  readonly jax?: {
    /** The operands as arrays; those that are held follow. */
    inputs(jax: Jax, call: Call): numpy.Array[];
    jitted(jax: Jax): Jitted;
  };
  /** For gpu.js: the source of a function of an element, of the operands and of `t` where the kernel is timed. */
  readonly gpuJs?: string;
}

/** The operands of a call that are held, and their dimensions. */
export function heldOf({ held }: Op, { operands }: Call) {
  const kept = operands.slice(operands.length - (held?.operands ?? 0));
  return kept.map((data, k) => ({
    data: data as Float32Array<ArrayBuffer>,
    shape: held!.shapes?.[k] ?? [data.length],
  }));
}
