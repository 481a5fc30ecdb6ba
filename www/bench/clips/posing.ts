// What a way of animating a scene does for the bench, and the buffer that is drawn from.

import { openDevice } from "../systems/system.ts";
import { rowOf, type Scene } from "./scene.ts";

/** A way that is open for a scene. */
export interface Posing {
  /** Poses everybody; resolves when the rows are here, or the GPU has them in the buffer. */
  pose(now: number): Promise<void>;
  /** All rows of the last pose. */
  rows(): Promise<Float32Array>;
  close(): void | Promise<void>;
}

/** Somebody's buffer, which is drawn from; it is filled by the page. */
export interface Drawn {
  readonly device: GPUDevice;
  readonly buffer: GPUBuffer;
  put(rows: Float32Array<ArrayBuffer>): Promise<void>;
  rows(): Promise<Float32Array>;
}

/** Whoever needs no device gets none. */
export async function drawnOf(scene: Scene): Promise<Drawn | undefined> {
  if (!scene.isDrawn) return undefined;
  const device = await openDevice();
  const { STORAGE, COPY_DST, COPY_SRC } = GPUBufferUsage;
  const buffer = device.createBuffer({
    size: scene.instances * rowOf(scene) * 4,
    usage: STORAGE | COPY_DST | COPY_SRC,
  });
  return {
    device,
    buffer,
    async put(rows) {
      device.queue.writeBuffer(buffer, 0, rows);
      await device.queue.onSubmittedWorkDone();
    },
    rows: () => readBack(device, { buffer, offset: 0, size: buffer.size }),
  };
}

/** What lies in a part of a buffer. */
export async function readBack(
  device: GPUDevice,
  { buffer, offset, size }: { buffer: GPUBuffer; offset: number; size: number },
): Promise<Float32Array> {
  const { COPY_DST, MAP_READ } = GPUBufferUsage;
  const staging = device.createBuffer({ size, usage: COPY_DST | MAP_READ });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, offset, staging, 0, size);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  const rows = new Float32Array(staging.getMappedRange().slice(0));
  staging.destroy();
  return rows;
}

/** Rows of their own, end to end. */
export function joined(parts: readonly Float32Array[]): Float32Array {
  const width = parts[0].length;
  const all = new Float32Array(parts.length * width);
  parts.forEach((part, i) => all.set(part, i * width));
  return all;
}
