// An index on the device of its session: the tensors of its pages, and the core's
// numbers of searches of it.

import { fromCore, isCoreFailure } from "../checks/errors.js";
import { checked, type Core, type DeviceEvent, forget } from "../core/core.js";
import { LruMap } from "../core/lru.js";
import type { Companion } from "../session/companion.js";
import { RESIDENT } from "../tensor/codes.js";
import { TYPES } from "./packing.js";
import type { PageUploader, Vectors } from "./vectors.js";

/** What a search is laid by. */
interface Sizes {
  readonly structure: number;
  readonly pages: number;
}

/** An index of one session. */
export class IndexStore implements PageUploader {
  /** The core's number of each page's tensor. */
  readonly numbers: number[] = [];
  /** Searches that still need it. */
  pins = 0;
  /** Nobody will search it any more. */
  dropped = false;

  constructor(
    readonly vectors: Vectors,
    private readonly stores: IndexStores,
  ) {
    stores.all.add(this);
  }

  /** Tells the device what changed. Throws where it has no room. */
  tell(): void {
    this.stores.ask(() => {
      const { pages } = this.vectors;
      for (let i = this.numbers.length; i < pages.length; i += 1) {
        const { core } = this.stores;
        this.numbers.push(checked(core!, core!.hold()));
      }
      // While there is no device it is told nothing, and then all of it.
      if (!this.stores.isLost) this.vectors.tell(this);
    });
  }

  /** The sizes of a search of the index as it is. */
  sizes(count: number, mask: number): Sizes {
    const { kind, quads, blocks, pageBlocks } = this.vectors;
    const structure = this.stores.structure(
      TYPES.indexOf(kind.dtype),
      kind.metric === "l2" ? 1 : 0,
      count,
      quads,
      blocks,
      pageBlocks,
      mask,
    );
    return { structure, pages: Math.ceil(blocks / pageBlocks) };
  }

  page(number: number, words: Uint32Array): void {
    const core = this.stores.core!;
    checked(core, core.fill(this.numbers[number], words, RESIDENT));
  }

  range(number: number, at: number, words: Uint32Array): void {
    const core = this.stores.core!;
    checked(core, core.patch(this.numbers[number], at, words));
  }

  /** Frees what it has on the device once no search needs it. */
  drop(): void {
    this.dropped = true;
    if (this.pins > 0) return;
    this.stores.all.delete(this);
    for (const number of this.numbers.splice(0)) this.stores.release(number);
  }

  /** A search of it was answered. */
  unpin(): void {
    this.pins -= 1;
    if (this.dropped) this.drop();
  }
}

/** All indexes of a session. */
export class IndexStores implements Companion {
  core: Core | undefined;
  readonly all = new Set<IndexStore>();
  isLost = false;
  /** The core's numbers of searches, by their sizes. */
  private structures!: LruMap<string, number>;

  constructor(
    /** Told what the core throws when it has trapped. */
    private readonly trapped: (thrown: unknown) => void,
  ) {}

  /** The core's number for searches of these sizes. */
  structure(...sizes: number[]): number {
    const key = sizes.join();
    let id = this.structures.get(key);
    if (id === undefined) {
      id = checked(this.core!, this.core!.searching(Uint32Array.from(sizes)));
      this.structures.add(key, id);
    }
    return id;
  }

  open(core: Core): void {
    this.core = core;
    this.structures = new LruMap((dropped) => forget(core, dropped));
  }

  hear(event: DeviceEvent): void {
    this.isLost = event === "lost";
    // One may be told before the session is open, and the searches then do it.
    if (this.isLost || this.core === undefined) return;
    for (const store of this.all) {
      store.vectors.forget();
      // Of pages that find no room, calls are told as of any tensor; the next
      // search tries again.
      try {
        store.tell();
      } catch {}
    }
  }

  close(): void {
    this.core = undefined;
    this.all.clear();
  }

  /** Frees the tensor of a page. */
  release(number: number): void {
    try {
      this.core?.release(number);
    } catch (thrown) {
      this.trapped(thrown);
    }
  }

  /** Asks the core, and tells what it throws. */
  ask(question: () => void): void {
    try {
      question();
    } catch (thrown) {
      if (!isCoreFailure(thrown)) this.trapped(thrown);
      throw fromCore("search", thrown);
    }
  }
}
