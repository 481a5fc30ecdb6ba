// The three ways to step the swarm, behind one shape.
//
// A way steps the swarm and says where its places and velocities lie on its own device; it
// draws nothing and measures nothing.

import { openByFramebatch } from "./by-framebatch.ts";
import { openByLoop } from "./by-loop.ts";
import { openByTensorFlow } from "./by-tensorflow.ts";
import type { Swarm, Well } from "./swarm.ts";

/** The names of the ways, as the page's switch has them. */
export type WayName = "framebatch" | "tfjs" | "loop";

/** A run of floats in a buffer, in bytes. */
export interface Place {
  readonly buffer: GPUBuffer;
  readonly offset: number;
  readonly size: number;
}

/** Where the fields of a swarm lie. */
export type Places = Readonly<Record<keyof Swarm, Place>>;

export interface Way {
  readonly device: GPUDevice;
  /** Asks for one step; what the page's thread does for it is over when this returns. */
  step(wells: readonly Well[]): void;
  /** Where the fields lie once the steps so far are done; changes from frame to frame. */
  places(): Promise<Places>;
  /** The field as numbers, for the page's own check. */
  read(field: keyof Swarm): Promise<Float32Array>;
  /** Frees what a frame took, after the frame was drawn. */
  drawn?(): void;
}

export type OpenWay = (swarm: Swarm) => Promise<Way>;

export const WAYS: Readonly<Record<WayName, OpenWay>> = {
  framebatch: openByFramebatch,
  tfjs: openByTensorFlow,
  loop: openByLoop,
};
