// The options that say how a tensor lies on the device and how it comes back after a loss: those
// of tensors of data, and those of computed tensors.
//
// What snapshots are is said in `tensor/snapshots.ts`.

import { invalid, kindOf } from "./errors.js";

/** What may be asked for when a tensor is made that calls write. */
export interface StorageOptions {
  /**
   * After every so many calls that wrote the tensor (`compute` counts too), the session reads the
   * tensor in the background, in the order of calls and at low priority, and keeps the elements in
   * the page. After a lost device a tensor that nothing else brings back is filled with the
   * newest of these snapshots, or until there is one with the data that it was made with, before
   * all that waits. It then holds what it held at the snapshot: `restored` and `fallback` name
   * it in `revertedTensors`, with the number of writes that are gone. A whole number from 1.
   * Default: no snapshots.
   */
  snapshotEvery?: number;
  /**
   * Gives the tensor a buffer that no other tensor shares, however small it is. Calls that are
   * alike but for tensors in buffers of their own are not computed together. Default: false, and
   * tensors of 64 KiB and more have one anyway.
   */
  ownBuffer?: boolean;
}

/** The same, with what both kinds of tensors say in words of their own. */
interface KeptOptions extends StorageOptions {
  keep?: boolean;
}

/** The names of these options. */
export const STORAGE_NAMES: Record<keyof KeptOptions, true> = {
  keep: true,
  snapshotEvery: true,
  ownBuffer: true,
};

/** Throws unless these options are what they should be. */
export function checkStorageOptions(
  about: string,
  { snapshotEvery, ...flags }: KeptOptions,
): void {
  for (const name of ["keep", "ownBuffer"] as const) {
    const flag = flags[name];
    if (flag !== undefined && typeof flag !== "boolean") {
      throw invalid(
        about,
        `${name} must be true or false, got ${kindOf(flag)}`,
      );
    }
  }
  if (
    snapshotEvery !== undefined &&
    !(Number.isSafeInteger(snapshotEvery) && snapshotEvery >= 1)
  ) {
    throw invalid(
      about,
      `snapshotEvery must be a whole number from 1, got ${String(snapshotEvery)}`,
    );
  }
}
