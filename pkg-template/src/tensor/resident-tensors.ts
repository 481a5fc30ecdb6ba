// What lies on the device for longer than a call: taken there, restored after a loss,
// released.
//
// It owns the core's tensor numbers and nothing else: which data becomes resident is
// said by its `Leaf`, and calls are entered in `reader.ts`.

import { allocate, type Want } from "../checks/allocation.js";
import {
  FramebatchError,
  fromCore,
  isCoreFailure,
  subject,
} from "../checks/errors.js";
import {
  AS_GIVEN,
  checked,
  type Core,
  type DeviceEvent,
  type TensorBuffer,
} from "../core/core.js";
import type { Span } from "../memory/arrays.js";
import { PACKED, RESIDENT } from "./codes.js";
import type { Node } from "./node.js";
import { AUTO, FEWER, type Leaf, NOWHERE } from "./storage.js";

/** The resident tensors of one session. */
export class Residents {
  private core: Core | undefined;
  /** On the device, by the core's number. Leaves know no node, so these are no leak. */
  private readonly held = new Map<number, Leaf>();
  /** Made while the session opens, and to be uploaded as soon as it is open. */
  private readonly early = new Set<Leaf>();
  /** The net under tensors that nobody disposes of. */
  private readonly collected = new FinalizationRegistry<Leaf>((leaf) =>
    this.drop(leaf),
  );
  /** Whether there is no device to upload to. */
  private isLost = false;

  constructor(
    /** Told what the core throws when it has trapped. */
    private readonly trapped: (thrown: unknown) => void,
  ) {}

  /** The session is open. */
  open(core: Core): void {
    this.core = core;
    for (const leaf of this.early) {
      try {
        this.hold(leaf);
      } catch (error) {
        leaf.failure = error as FramebatchError;
      }
    }
    this.early.clear();
  }

  /** The session has ended; the core has released everything. */
  close(): void {
    this.core = undefined;
    this.held.clear();
    this.early.clear();
  }

  /** Takes a tensor's data to the device for good. Throws where there is no room. */
  settle(node: Node): void {
    const leaf = node.leaf!;
    if (leaf.number !== NOWHERE) return;
    if (this.core === undefined) this.early.add(leaf);
    else this.hold(leaf);
    this.collected.register(node, leaf, leaf);
  }

  /** Nobody will use the tensor in another call. */
  drop(leaf: Leaf): void {
    if (leaf.dropped) return;
    leaf.dropped = true;
    this.collected.unregister(leaf);
    this.early.delete(leaf);
    if (leaf.pins === 0) this.free(leaf);
  }

  /** A call that needed the tensor was answered. */
  unpin(leaf: Leaf): void {
    leaf.pins -= 1;
    if (leaf.dropped && leaf.pins === 0) this.free(leaf);
  }

  /** Where the renderer finds a tensor; undefined on the CPU. */
  locate(leaf: Leaf): TensorBuffer | undefined {
    const buffer = this.ask(() => this.core!.locate(leaf.number));
    return buffer && { buffer, offset: 0, size: bytesOf(leaf) };
  }

  /** Uploads everything again when there is another device. */
  hear(event: DeviceEvent): void {
    this.isLost = event === "lost";
    if (this.isLost || this.core === undefined) return;
    for (const leaf of this.held.values()) {
      try {
        this.fill(leaf);
      } catch (error) {
        this.lose(leaf, error);
      }
    }
  }

  private hold(leaf: Leaf): void {
    if (leaf.home === AUTO) {
      leaf.home = this.suitsF16(leaf) ? PACKED.f16 : RESIDENT;
    }
    leaf.number = this.ask(() => checked(this.core!, this.core!.hold()));
    this.held.set(leaf.number, leaf);
    // With no device it is filled when there is one.
    if (this.isLost) return;
    try {
      this.fill(leaf);
    } catch (error) {
      this.release(leaf);
      throw error;
    }
  }

  private fill(leaf: Leaf): void {
    const source = allocate(wantOf(leaf), () => leaf.own());
    if (source === undefined) {
      throw new FramebatchError("device-lost", "it was made with keep: false");
    }
    if (source.length !== leaf.words) {
      throw new FramebatchError("device-lost", "its array was detached");
    }
    const home =
      source instanceof Uint16Array ? leaf.home | AS_GIVEN : leaf.home;
    const words = allocate(wantOf(leaf), () => wordsOf(source));
    this.ask(() =>
      checked(this.core!, this.core!.fill(leaf.number, words, home, leaf.row)),
    );
    if (!leaf.keep) leaf.data = undefined;
  }

  // In software, f16 would be unpacked in every call to spare memory that is the page's.
  private suitsF16(leaf: Leaf): boolean {
    const { engine, software } = this.core!.info();
    const fits = (x: number): boolean => Math.abs(x) < 65520 || !isFinite(x);
    if (engine !== "gpu" || software) return false;
    return allocate(wantOf(leaf), () => leaf.own())?.every(fits) ?? false;
  }

  // The core settles calls that name a released tensor as `device-lost`.
  private lose(leaf: Leaf, cause: unknown): void {
    leaf.failure = new FramebatchError(
      "device-lost",
      `${subject("tensor", leaf.label)}: its data was lost with the device, and could not be restored (${(cause as Error).message}); make it anew`,
      { cause },
    );
    this.release(leaf);
  }

  private free(leaf: Leaf): void {
    leaf.data = undefined;
    if (leaf.number !== NOWHERE) this.release(leaf);
  }

  private release(leaf: Leaf): void {
    const { number } = leaf;
    leaf.number = NOWHERE;
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

/** Copies of a tensor's data. */
function wantOf({ label, words }: Leaf): Want {
  return { about: subject("tensor", label), bytes: words * 4, instead: FEWER };
}

/** The bits: an array of floats would be converted where it is copied. */
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

function bytesOf({ words, home }: Leaf): number {
  if (home === PACKED.int8) return Math.ceil(words / 64) * 68;
  return home === RESIDENT ? words * 4 : Math.ceil(words / 2) * 4;
}
