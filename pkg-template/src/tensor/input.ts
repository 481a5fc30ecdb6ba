// The node of a tensor of data, and the options that say how its data is kept.
//
// How data is checked and copied is in `copy-in.ts`. Nothing is uploaded here.

import { invalid } from "../checks/errors.js";
import {
  checkStorageOptions,
  type StorageOptions,
} from "../checks/storage-options.js";
import type { Span } from "../memory/arrays.js";
import { FLOATS, PACKED, RESIDENT } from "./codes.js";
import { largestOf, copyIn, type TensorData } from "./copy-in.js";
import { input, type Node } from "./node.js";
import { AUTO, LARGE, TensorStorage } from "./storage.js";
import type { TensorSession } from "./tensor-session.js";

/**
 * How the device keeps floats. `f16` and `bf16` take half the memory of `f32`: a value is
 * off by at most 2⁻¹¹ of it as f16, which is for magnitudes from 2⁻¹⁴ to 65,504 (below
 * that by 2⁻²⁵, or a device gives 0; from 65,520 on it is infinite), and 2⁻⁸ as bf16, over
 * the whole range. `int8` takes 0.27 of it: whole numbers and a scale for every 32
 * neighbors in row-major order, off by at most 1/253 of the largest magnitude among them,
 * or 2⁻²²; it holds magnitudes below 65,009 and no NaN. `int4` takes 0.14 in the same way,
 * off by at most 1/5, and by a tenth or less for nearly all; magnitudes below 4,095. `auto` is
 * f16 on a hardware GPU, for data of 16,384 elements or more in which no value is too large
 * for it, and f32 otherwise.
 */
export type StorageType = "f32" | keyof typeof PACKED | "auto";

/** What `gpu.tensor` takes last. All of it is optional. */
export interface TensorOptions extends StorageOptions {
  /**
   * How the device keeps floats, to spare memory: every operation takes such a tensor, and
   * computes in float32 with the values that were kept, which `read` gives. A `Uint16Array`
   * holds f16 or bf16 bits, and goes up as it is. The CPU keeps the same values as f32. A
   * tensor that is restored is what it was. Default: `f32`.
   *
   * @example
   * const halves = gpu.tensor(new Float32Array([0.1, 2]), [2], { dtype: "f16" });
   * await halves.read(); // [0.0999755859375, 2]
   */
  dtype?: StorageType;
  /**
   * Keeps the data, to restore it on another device when this one is lost. Without it
   * the tensor is gone then, and must be made anew. Default: true.
   */
  keep?: boolean;
  /** Appears in the message of every error about this tensor. Default: none. */
  label?: string;
}

/** The node of data. Throws where it does not fit its shape or its options. */
export function inputOf(
  { slab }: TensorSession,
  about: string,
  data: TensorData,
  dims?: readonly number[],
  options: TensorOptions = {},
): Node {
  checkStorageOptions(about, options);
  const { dtype, keep = true, label, snapshotEvery } = options;
  const { data: own, shape, dtype: kind } = copyIn(slab, about, data, dims);
  const home = homeOf(about, own, dtype);
  const largest = kind === FLOATS ? undefined : largestOf(own);
  const row = own.words / (shape.dims[0] || 1);
  const storage = new TensorStorage(
    own,
    own.words,
    home,
    largest,
    keep,
    label,
    row,
    options,
  );
  if (snapshotEvery !== undefined && home !== RESIDENT) {
    throw invalid(
      about,
      "no call writes a tensor in fewer bits, so there is nothing to take snapshots of; leave snapshotEvery out, or make it with dtype 'f32'",
    );
  }
  return input(shape, storage, kind);
}

/** The home of data with this `dtype`: how the device keeps it. */
function homeOf(
  about: string,
  { memory, words }: Span,
  dtype: StorageType | undefined,
): number {
  const isHalves = memory instanceof Uint16Array;
  if (isHalves && dtype !== "f16" && dtype !== "bf16") {
    throw invalid(
      about,
      "a Uint16Array holds 16-bit floats; say with dtype whether they are 'f16' or 'bf16'",
    );
  }
  if (dtype === undefined) return RESIDENT;
  if (memory instanceof Uint32Array) {
    throw invalid(about, "dtype is for floats, and whole numbers have none");
  }
  if (dtype === "f32") return RESIDENT;
  if (dtype === "auto") return words < LARGE ? RESIDENT : AUTO;
  if (Object.hasOwn(PACKED, dtype)) return PACKED[dtype];
  throw invalid(
    about,
    `dtype must be 'f32', 'f16', 'bf16', 'int8', 'int4' or 'auto', got '${dtype as string}'`,
  );
}
