// An index on the device of its session: the tensors of its pages, and the core's
// numbers of searches of it.

import { fromCore, isCoreFailure } from "../checks/errors.js";
import { checked, type Core, type DeviceEvent, forget } from "../core/core.js";
import { LruMap } from "../core/lru.js";
import type { Companion } from "../session/companion.js";
import { RESIDENT } from "../tensor/codes.js";
import { TYPES } from "./packing.js";
import type { PageUploader, Vectors } from "./vectors.js";

/** What a search needs to know of its index at the moment of writing. */
interface Sizes {
  readonly structure: number;
  readonly pages: number;
}

/** An index of one session. */
export class IndexStore implements PageUploader {
  /** The core's number of each page's tensor. */
  readonly numbers: number[] = [];
  /** Pending searches of the index. */
  pins = 0;
  /** Whether the index was disposed of. */
  dropped = false;

  constructor(
    readonly vectors: Vectors,
    private readonly stores: IndexStores,
  ) {
    stores.all.add(this);
  }

  /** Uploads what changed. Throws where the device has no room. */
  upload(): void {
    this.stores.ask(() => {
      const { pages } = this.vectors;
      for (let i = this.numbers.length; i < pages.length; i += 1) {
        const { core } = this.stores;
        this.numbers.push(checked(core!, core!.hold()));
      }
      // While the device is lost nothing is uploaded; the next device gets all pages.
      if (!this.stores.isLost) this.vectors.upload(this);
    });
  }

  /** The structure and the pages of a search of the index as it is. */
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

  /** Frees the pages on the device once no pending search needs them. */
  drop(): void {
    this.dropped = true;
    if (this.pins > 0) return;
    this.stores.all.delete(this);
    for (const number of this.numbers.splice(0)) this.stores.release(number);
  }

  /** A search of the index was answered. */
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
    /** Hears what the core throws when it has trapped. */
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
    // Before the session is open there is no core; searches upload their index by themselves.
    if (this.isLost || this.core === undefined) return;
    for (const store of this.all) {
      store.vectors.forget();
      // Where a page finds no room, pending searches fail as calls with a lost tensor do,
      // and the next search tries again.
      try {
        store.upload();
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

  /** Asks the core, and passes on what it throws as the package's error. */
  ask(question: () => void): void {
    try {
      question();
    } catch (thrown) {
      if (!isCoreFailure(thrown)) this.trapped(thrown);
      throw fromCore("search", thrown);
    }
  }
}
