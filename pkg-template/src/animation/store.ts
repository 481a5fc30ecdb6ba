// The store of all clips of a session: one tensor on the device, so that calls of
// different clips are computed together.
//
// The store gives clips ranges of words and uploads these; what the words mean is not
// looked at.

import {
  type FramebatchError,
  fromCore,
  isCoreFailure,
} from "../checks/errors.js";
import { checked, type Core, type DeviceEvent, forget } from "../core/core.js";
import { LruMap } from "../core/lru.js";
import type { Companion } from "../session/companion.js";
import { RESIDENT } from "../tensor/codes.js";
import { wordsOf } from "./arrays.js";
import { FreeList } from "./free-list.js";

/** Words of the store at first; a full store doubles. */
const SMALLEST = 2 ** 14;

/** The number of a store that the core has no tensor of. */
const NOWHERE = -1;

/** The words of a clip in the store. */
export interface StoreRange {
  readonly at: number;
  readonly words: number;
  /** Whether the clip was disposed of: no further call samples it. */
  dropped: boolean;
}

/** A range whose clip was disposed of. */
interface DroppedRange {
  readonly range: StoreRange;
  /** A fence behind the calls that sample the clip; undefined while the session still opens. */
  fence: number | undefined;
}

/** The store of one session. */
export class ClipStore implements Companion {
  /** The core's number of the store's tensor. */
  number = NOWHERE;
  /** Why the device does not have the store. */
  failure: FramebatchError | undefined;
  private core: Core | undefined;
  private words = new Uint32Array(SMALLEST);
  private readonly freeList = new FreeList();
  /** Ranges that pending batches may sample yet, the oldest first. */
  private readonly dropped: DroppedRange[] = [];
  /** Words that the device has. */
  private held = 0;
  private isLost = false;
  /** The core's numbers of samplings, by their sizes. */
  private structures!: LruMap<number, number>;

  constructor(
    /** Hears what the core throws when it has trapped. */
    private readonly trapped: (thrown: unknown) => void,
  ) {}

  /** Writes words to a free range. Throws where there is no room. */
  put(words: Uint32Array): StoreRange {
    if (this.core !== undefined) this.reclaim(this.core);
    const at = this.freeList.take(words.length);
    const before = this.words;
    const end = at + words.length;
    if (end > before.length) {
      let size = before.length;
      while (size < end) size *= 2;
      this.words = this.grown(at, words.length, size);
      this.words.set(before);
    }
    this.words.set(words, at);
    const range = { at, words: words.length, dropped: false };
    if (this.core === undefined || this.isLost) return range;
    try {
      if (end > this.held) this.fill(this.core);
      else this.patch(this.core, at, words);
    } catch (error) {
      // The device keeps the words that it had.
      this.words = before;
      this.freeList.give(at, words.length);
      throw error;
    }
    return range;
  }

  /** A clip was disposed of: others get its words once no batch can sample it. */
  drop(range: StoreRange): void {
    if (range.dropped) return;
    range.dropped = true;
    try {
      this.dropped.push({ range, fence: this.core?.fence() });
    } catch (thrown) {
      this.trapped(thrown);
    }
  }

  /** The core's number for samplings of these sizes. */
  structure(
    layers: number,
    lanes: number,
    width: number,
    fields: number,
    isStored: boolean,
  ): number {
    // The key stays below 2^53, because a clip has no more lanes than floats of a row.
    const kind = ((layers * 4 + fields / layers) * 2 + (isStored ? 1 : 0)) | 0;
    const key = (width * 2 ** 21 + lanes) * 512 + kind;
    let id = this.structures.get(key);
    if (id === undefined) {
      const stored = isStored ? 1 : 0;
      const sizes = Uint32Array.of(layers, lanes, width, fields, stored);
      id = checked(this.core!, this.core!.sampling(sizes));
      this.structures.add(key, id);
    }
    return id;
  }

  open(core: Core): void {
    this.core = core;
    this.structures = new LruMap((dropped) => forget(core, dropped));
    if (this.freeList.end > 0) this.fillOrLose(core);
  }

  hear(event: DeviceEvent): void {
    this.isLost = event === "lost";
    this.held = 0;
    if (this.isLost || this.core === undefined) return;
    this.reclaim(this.core);
    if (this.freeList.end > 0) this.fillOrLose(this.core);
  }

  close(): void {
    this.core = undefined;
  }

  /** Memory for a larger store; without any, the range at its end is given back. */
  private grown(
    at: number,
    words: number,
    size: number,
  ): Uint32Array<ArrayBuffer> {
    try {
      return wordsOf("clip", size);
    } catch (error) {
      this.freeList.give(at, words);
      throw error;
    }
  }

  private reclaim(core: Core): void {
    this.ask(() => {
      // Calls that were made while the session opened have entered the core by now.
      for (const dropped of this.dropped) dropped.fence ??= core.fence();
      // Ranges go in the order in which they were dropped, because later fences seldom pass earlier.
      let passed = 0;
      for (const { range, fence } of this.dropped) {
        if (!core.has_passed(fence!)) break;
        this.freeList.give(range.at, range.words);
        passed += 1;
      }
      this.dropped.splice(0, passed);
    });
  }

  private fill(core: Core): void {
    this.ask(() => {
      if (this.number === NOWHERE) {
        this.number = checked(core, core.hold());
      }
      checked(core, core.fill(this.number, this.words, RESIDENT));
      this.held = this.words.length;
      this.failure = undefined;
    });
  }

  // Each call that samples a clip then rejects with the failure.
  private fillOrLose(core: Core): void {
    try {
      this.fill(core);
    } catch (error) {
      this.failure = error as FramebatchError;
    }
  }

  private patch(core: Core, at: number, words: Uint32Array): void {
    this.ask(() => checked(core, core.patch(this.number, at, words)));
  }

  private ask(question: () => unknown): void {
    try {
      question();
    } catch (thrown) {
      if (!isCoreFailure(thrown)) this.trapped(thrown);
      throw fromCore("clip", thrown);
    }
  }
}
