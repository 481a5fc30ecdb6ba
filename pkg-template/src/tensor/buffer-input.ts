// The node of a `GPUBuffer` of the page, and what is checked of the buffer at once.
//
// WebGPU tells nobody which device a buffer is of, nor whether it is destroyed: calls that
// read such a buffer reject. How buffers get to the core is in `resident-tensors.ts`.

import { FramebatchError, invalid, kindOf, tagOf } from "../checks/errors.js";
import { checkOptions, labeled } from "../checks/options.js";
import { FLOATS, INDEXES, INTEGERS, PACKED, RESIDENT } from "./codes.js";
import { input, type Node } from "./node.js";
import { shapeOf } from "./shape.js";
import { bytesOf, paddedBytesOf, TensorStorage, UNKNOWN } from "./storage.js";
import type { TensorSession } from "./tensor-session.js";

/** What `gpu.tensor` takes last for a `GPUBuffer`. All of it is optional. */
export interface BufferOptions {
  /** Bytes of the buffer in front of the tensor, a multiple of 16. Default: 0. */
  offset?: number;
  /**
   * What lies there: floats of 32 or 16 bits, or whole numbers to pick elements with.
   * Default: `f32`.
   */
  dtype?: "f32" | "f16" | "bf16" | "u32" | "i32";
  /** Appears in the message of every error about this tensor. Default: none. */
  label?: string;
}

const NAMES: Record<keyof BufferOptions, true> = {
  offset: true,
  dtype: true,
  label: true,
};

const HOMES = {
  f32: RESIDENT,
  u32: RESIDENT,
  i32: RESIDENT,
  f16: PACKED.f16,
  bf16: PACKED.bf16,
};

/** `GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC`, which workers lack in some browsers. */
const USAGES = 0x80 | 0x04;

/** Whether data is a `GPUBuffer`, of any realm. */
export function isBuffer(data: unknown): data is GPUBuffer {
  // Arrays, which are many, are told apart without making a string.
  const isArray = ArrayBuffer.isView(data) || Array.isArray(data);
  return !isArray && tagOf(data) === "GPUBuffer";
}

/** The node of a buffer. Throws where it does not fit its shape or its options. */
export function bufferInput(
  { core, residents }: TensorSession,
  buffer: GPUBuffer,
  dims: readonly number[] | undefined,
  options: BufferOptions,
): Node {
  checkOptions("tensor", options, NAMES);
  const { offset = 0, dtype = "f32", label } = options;
  const about = labeled("tensor", label);
  if (!Array.isArray(dims)) {
    throw invalid(
      about,
      `give the shape that lies in the buffer, as an array of numbers; got ${kindOf(dims)}`,
    );
  }
  if (!Object.hasOwn(HOMES, dtype)) {
    throw invalid(
      about,
      `dtype of a GPUBuffer must be 'f32', 'f16', 'bf16', 'u32' or 'i32', got '${dtype as string}'`,
    );
  }
  const shape = shapeOf(about, [...dims]);
  const kind = dtype === "u32" ? INDEXES : dtype === "i32" ? INTEGERS : FLOATS;
  const storage = new TensorStorage(
    { memory: new Float32Array(0), start: 0, words: 0 },
    shape.count,
    HOMES[dtype],
    kind === FLOATS ? undefined : UNKNOWN,
    true,
    label,
  );
  checkPlace(about, buffer, offset, paddedBytesOf(storage));
  if (core === undefined) {
    throw invalid(
      about,
      "the session is still opening; await gpu.ready, and make the buffer on gpu.device",
    );
  }
  if (residents.isLost) {
    throw new FramebatchError(
      "device-lost",
      `${about}: the device is lost; await 'restored', and make the buffer anew on gpu.device`,
    );
  }
  storage.place = { buffer, offset, size: bytesOf(storage) };
  return input(shape, storage, kind);
}

function checkPlace(
  about: string,
  { usage, size, mapState }: GPUBuffer,
  offset: number,
  bytes: number,
): void {
  if ((usage & USAGES) !== USAGES) {
    throw invalid(
      about,
      "the GPUBuffer lacks a usage; make it with GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC",
    );
  }
  if (mapState !== "unmapped") {
    throw invalid(about, `the GPUBuffer is ${mapState}; unmap it first`);
  }
  if (!(Number.isInteger(offset) && offset >= 0 && offset % 16 === 0)) {
    throw invalid(
      about,
      `offset must be a multiple of 16 bytes, from 0, got ${offset}`,
    );
  }
  if (offset + bytes > size) {
    throw invalid(
      about,
      `the GPUBuffer has ${size} bytes, and the shape takes ${bytes}, a multiple of 16, from byte ${offset} on; make the buffer of ${offset + bytes} bytes or more`,
    );
  }
}
