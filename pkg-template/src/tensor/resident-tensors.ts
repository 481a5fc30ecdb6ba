// The tensors that lie on the device for longer than a call: uploaded, restored after a
// loss, released.
//
// This file owns the core's numbers of tensors. Which data becomes resident is decided by
// `TensorStorage`; chains that read tensors are written in `chain-writer.ts`.

import { allocate, type Want } from "../checks/allocation.js";
import {
  FramebatchError,
  fromCore,
  isCoreFailure,
  subject,
} from "../checks/errors.js";
import {
  AS_GIVEN,
  AS_SNAPSHOT,
  checked,
  type Core,
  type DeviceEvent,
  type TensorBuffer,
} from "../core/core.js";
import type { Span } from "../memory/arrays.js";
import { PACKED, RESIDENT } from "./codes.js";
import type { Node } from "./node.js";
import { isOfRecord } from "./recomputation.js";
import {
  AUTO,
  bytesOf,
  FEWER,
  isPacked,
  lostError,
  NOWHERE,
  paddedBytesOf,
  type TensorStorage,
} from "./storage.js";

/** A tensor that went with a device, and that nothing could restore. */
export interface LostTensor {
  /** The label that the tensor was made with. */
  readonly label: string | undefined;
  readonly elements: number;
  /** What calls that read the tensor reject with. */
  readonly error: FramebatchError;
}

/** A tensor that holds its last snapshot, because it went with a device. */
export interface RevertedTensor {
  /** The label that the tensor was made with. */
  readonly label: string | undefined;
  readonly elements: number;
  /** Acknowledged writes that the snapshot lacks, and that are gone. */
  readonly writes: number;
}

/** What became of tensors with a device. */
export interface TensorNews {
  /** The tensors that nothing could restore. */
  readonly lostTensors: readonly LostTensor[];
  /** The tensors that hold what they held at their last snapshot. */
  readonly revertedTensors: readonly RevertedTensor[];
}

/** The resident tensors of one session. */
export class ResidentTensors {
  private core: Core | undefined;
  private isPaused = false;
  /** Tensors on the device, by the core's number. A storage knows no node, so the map keeps no tensor alive. */
  private readonly held = new Map<number, TensorStorage>();
  /** Tensors that were made while the session opens, to be uploaded as soon as it is open. */
  private readonly early = new Set<TensorStorage>();
  /** Releases tensors that nobody disposes of. */
  private readonly collected = new FinalizationRegistry<TensorStorage>(
    (storage) => this.drop(storage),
  );
  private lost: LostTensor[] = [];
  private reverted: RevertedTensor[] = [];
  /** Whether there is no device to upload to. */
  isLost = false;

  constructor(
    /** Hears what the core throws when it has trapped. */
    private readonly trapped: (thrown: unknown) => void,
    /** Hears of tensors of which a snapshot is due. */
    private readonly due: (storage: TensorStorage) => void,
  ) {}

  /** The session is open. */
  open(core: Core): void {
    this.core = core;
    for (const storage of this.early) {
      try {
        // A call may have needed the tensor before this was asked.
        if (storage.number === NOWHERE) this.hold(storage);
      } catch (error) {
        storage.failure = error as FramebatchError;
      }
    }
    this.early.clear();
  }

  /** The core must not be entered until {@link resume}. */
  pause(): void {
    this.core = undefined;
    this.isPaused = true;
  }

  /** The core may be entered again. What came meanwhile is brought there by {@link open}. */
  resume(core: Core): void {
    this.core = core;
    this.isPaused = false;
  }

  /** The session has ended; the core has released everything. */
  close(): void {
    this.core = undefined;
    // No device gets the data any more, and whoever still has a tensor may have it for long.
    const all = [...this.held.values(), ...this.early];
    for (const storage of all) storage.data = undefined;
    this.held.clear();
    this.early.clear();
  }

  /**
   * Uploads a tensor's data, unless the device has it. The tensor shares no buffer with
   * `others`. Throws where there is no room.
   */
  makeResident(node: Node, others?: readonly (Node | undefined)[]): void {
    const storage = node.storage!;
    if (storage.number === NOWHERE) {
      if (this.core === undefined) this.early.add(storage);
      else this.hold(storage, others);
    }
    if (storage.isWatched || isOfRecord(node)) return;
    storage.isWatched = true;
    this.collected.register(node, storage, storage);
  }

  /** No further call will read the tensor: frees it once pending calls are answered. */
  drop(storage: TensorStorage): void {
    if (this.isPaused) return queueMicrotask(() => this.drop(storage));
    if (storage.dropped) return;
    storage.dropped = true;
    storage.recomputation = undefined;
    storage.snapshots = undefined;
    this.collected.unregister(storage);
    this.early.delete(storage);
    if (storage.pins === 0) this.free(storage);
  }

  /** A call that needed the tensor was answered. */
  unpin(storage: TensorStorage): void {
    storage.pins -= 1;
    if (storage.dropped && storage.pins === 0) this.free(storage);
  }

  /** A call wrote the tensor that was made when so many of its snapshots had been begun. */
  written(storage: TensorStorage, begun: number): void {
    if (storage.snapshots?.note(begun)) this.due(storage);
  }

  /** Where a tensor lies; undefined on the CPU. */
  locate(storage: TensorStorage): TensorBuffer | undefined {
    if (storage.place !== undefined) return storage.place;
    const buffer = this.ask(() => this.core!.locate(storage.number));
    if (buffer === undefined) return undefined;
    const offset = this.ask(() => this.core!.offset(storage.number));
    return { buffer, offset, size: bytesOf(storage) };
  }

  /**
   * Uploads everything again when there is another device, snapshots too, and makes room for
   * what is to be computed again.
   */
  hear(event: DeviceEvent): void {
    this.isLost = event === "lost";
    if (this.isLost || this.core === undefined) return;
    for (const storage of this.held.values()) {
      try {
        this.restore(storage);
      } catch (error) {
        this.lose(storage, error);
      }
    }
  }

  /** The tensors that are computed again after a loss, each behind its operands. */
  get recomputable(): TensorStorage[] {
    const all = [...this.held.values()];
    return all.filter(({ recomputation }) => recomputation !== undefined);
  }

  /** Has the calls made in `make` go before all that waits. */
  restoreFirst(make: () => void): void {
    try {
      this.core!.begin_restoration();
      make();
      // A call in `make` may have ended the session.
      this.core?.end_restoration();
    } catch (thrown) {
      this.trapped(thrown);
    }
  }

  /**
   * Fills a tensor from its last snapshot, which is older than what calls wrote; `why` nothing
   * else brings it back. Without a snapshot the tensor is lost.
   */
  revert(storage: TensorStorage, why: string): void {
    const { snapshots, label, words: elements } = storage;
    storage.recomputation = undefined;
    storage.data = snapshots?.data;
    try {
      if (storage.data === undefined) throw new Error(why);
      this.fill(storage, AS_SNAPSHOT);
      storage.failure = undefined;
      const writes = snapshots!.revert();
      this.reverted.push({ label, elements, writes });
    } catch (error) {
      this.lose(storage, error);
    }
    storage.data = undefined;
  }

  /** What became of tensors since this was asked last. */
  takeNews(): TensorNews {
    const { lost: lostTensors, reverted: revertedTensors } = this;
    this.lost = [];
    this.reverted = [];
    return { lostTensors, revertedTensors };
  }

  /** A tensor's data went with the device: what reads the tensor rejects from here on. */
  private lose(storage: TensorStorage, cause: unknown): void {
    const { label, words: elements } = storage;
    const error = lostError(storage, cause);
    storage.failure = error;
    storage.place = undefined;
    storage.recomputation = undefined;
    this.lost.push({ label, elements, error });
    // The core settles calls that name a released tensor as `device-lost`.
    this.release(storage);
  }

  private hold(
    storage: TensorStorage,
    others: readonly (Node | undefined)[] | undefined = undefined,
  ): void {
    if (storage.home === AUTO) {
      storage.home = this.suitsF16(storage) ? PACKED.f16 : RESIDENT;
    }
    const { home, place, hasOwnBuffer } = storage;
    const shares = home === RESIDENT && place === undefined && !hasOwnBuffer;
    const words = shares ? storage.words : undefined;
    const apart = others && numbersOf(others);
    storage.number = this.ask(() =>
      checked(this.core!, this.core!.hold(words, apart)),
    );
    this.held.set(storage.number, storage);
    // While the device is lost there is nothing to fill; the next device is filled in `hear`.
    if (this.isLost) return;
    try {
      if (storage.contents !== "data") this.allocate(storage);
      else if (storage.place === undefined) this.fill(storage);
      else this.import(storage, storage.place);
    } catch (error) {
      this.release(storage);
      throw error;
    }
  }

  private restore(storage: TensorStorage): void {
    const { contents, place, recomputation } = storage;
    if (place !== undefined) {
      throw new Error("its GPUBuffer is of the lost device");
    }
    if (contents === "data") return this.fill(storage);
    if (contents === "stored" && recomputation === undefined) {
      return this.revert(storage, "only the device had it");
    }
    this.allocate(storage);
  }

  private allocate({ number, words }: TensorStorage): void {
    this.ask(() => checked(this.core!, this.core!.allocate(number, words)));
  }

  private import(
    storage: TensorStorage,
    { buffer, offset }: TensorBuffer,
  ): void {
    const { number, home } = storage;
    const quads = paddedBytesOf(storage) / 16;
    this.ask(() =>
      checked(
        this.core!,
        this.core!.import(number, buffer, offset / 16, quads, home),
      ),
    );
  }

  private fill(storage: TensorStorage, how = 0): void {
    const source = allocate(wantOf(storage), () => storage.own());
    if (source === undefined) {
      throw new FramebatchError("device-lost", "it was made with keep: false");
    }
    const isReady = isPacked(source, storage.home);
    const isBlocks = isReady && source instanceof Uint32Array;
    const length = isBlocks ? bytesOf(storage) / 4 : storage.words;
    if (source.length !== length) {
      throw new FramebatchError("device-lost", "its array was detached");
    }
    const packed = isReady ? AS_GIVEN : 0;
    const words = allocate(wantOf(storage), () => wordsOf(source));
    this.ask(() =>
      checked(
        this.core!,
        this.core!.fill(
          storage.number,
          words,
          storage.home | packed | how,
          storage.row,
        ),
      ),
    );
    if (!storage.keep) storage.data = undefined;
  }

  // A software adapter would unpack f16 in every call, to spare memory that is the page's own.
  private suitsF16(storage: TensorStorage): boolean {
    const { engine, software } = this.core!.info();
    const fits = (x: number): boolean => Math.abs(x) < 65520 || !isFinite(x);
    if (engine !== "gpu" || software) return false;
    return allocate(wantOf(storage), () => storage.own())?.every(fits) ?? false;
  }

  private free(storage: TensorStorage): void {
    storage.data = undefined;
    storage.place = undefined;
    if (storage.number !== NOWHERE) this.release(storage);
  }

  private release(storage: TensorStorage): void {
    const { number } = storage;
    storage.number = NOWHERE;
    // After the end of the session there is nothing to release.
    if (!this.held.delete(number) || this.core === undefined) return;
    try {
      this.core.release(number);
    } catch (thrown) {
      this.trapped(thrown);
    }
  }

  private ask<Answer>(question: () => Answer): Answer {
    try {
      return question();
    } catch (thrown) {
      if (!isCoreFailure(thrown)) this.trapped(thrown);
      throw fromCore("tensor", thrown);
    }
  }
}

/** The core's numbers of the inputs that are on the device. */
function numbersOf(inputs: readonly (Node | undefined)[]): Uint32Array {
  const numbers = inputs.map((node) => node!.storage!.number);
  return Uint32Array.from(numbers.filter((number) => number !== NOWHERE));
}

/** What allocating a copy of a tensor's data says where there is no memory. */
function wantOf({ label, words }: TensorStorage): Want {
  return { about: subject("tensor", label), bytes: words * 4, instead: FEWER };
}

/** The bits of data: an array of floats would be converted where it is copied. */
function wordsOf(source: Span["memory"]): Uint32Array {
  const { buffer, byteOffset, length } = source;
  if (!(source instanceof Uint16Array)) {
    return new Uint32Array(buffer, byteOffset, length);
  }
  if (byteOffset % 4 === 0 && length % 2 === 0) {
    return new Uint32Array(buffer, byteOffset, length / 2);
  }
  const words = new Uint32Array(Math.ceil(length / 2));
  new Uint16Array(words.buffer).set(source);
  return words;
}
