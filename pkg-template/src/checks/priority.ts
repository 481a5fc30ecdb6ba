// The priority of a call: its names, and whether one was given.
//
// What follows from priorities the core decides.

import { invalid } from "./errors.js";

/** All priorities, in the order of the core's numbers. */
export const PRIORITIES = ["normal", "high", "low"] as const;

/** The priority of a call: waiting calls of a higher one go first. */
export type Priority = (typeof PRIORITIES)[number];

/** Throws unless this is a priority, or none was given. */
export function checkPriority(about: string, priority: unknown): void {
  const known: readonly unknown[] = PRIORITIES;
  if (priority === undefined || known.includes(priority)) return;
  throw invalid(
    about,
    `priority must be 'high', 'normal' or 'low', got '${String(priority)}'`,
  );
}
