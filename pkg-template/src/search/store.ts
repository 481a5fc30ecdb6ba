// An index on the device of its session: the tensors of its pages, and the core's
// numbers of searches and insertions.
//
// Pages are those of vectors that the page has too, and device pages, which calls write.

import { fromCore, isCoreFailure } from "../checks/errors.js";
import { checked, type Core, type DeviceEvent, forget } from "../core/core.js";
import { LruMap } from "../core/lru.js";
import type { Companion } from "../session/companion.js";
import { RESIDENT } from "../tensor/codes.js";
import { DevicePlaces } from "./device-places.js";
import { TYPES } from "./packing.js";
import type { PageUploader, Vectors } from "./vectors.js";

/** What a search needs to know of its index at the moment of writing. */
interface Sizes {
  readonly structure: number;
  /** The core's numbers of the pages. */
  readonly pages: readonly number[];
}

/** Words of the first device page, if a block is not larger. */
const FIRST_PAGE = 2 ** 18;

/** An index of one session. */
export class IndexStore implements PageUploader {
  /** The core's number of the tensor of each page of vectors. */
  private numbers: number[] = [];
  /** The same of the device pages. */
  readonly devicePages: number[] = [];
  /** Places of vectors in the device pages. */
  readonly places: DevicePlaces;
  /** Pages that pending calls still name. */
  private readonly retired: number[] = [];
  /** Hears that another device took over. */
  restore: () => void = () => {};
  /** Pending searches of the index, and insertions. */
  pins = 0;
  /** Whether the index was disposed of. */
  dropped = false;

  constructor(
    readonly vectors: Vectors,
    private readonly stores: IndexStores,
  ) {
    const { blockWords, pageBlocks } = vectors;
    const first = Math.max(1, Math.floor(FIRST_PAGE / blockWords));
    this.places = new DevicePlaces(Math.min(first, pageBlocks), pageBlocks);
    stores.all.add(this);
  }

  /** Whether there is no device for now. */
  get isLost(): boolean {
    return this.stores.isLost;
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

  /** Makes the device pages that the places taken so far need. Throws where there is no room. */
  makeDevicePages(): void {
    const { devicePages, stores } = this;
    for (let page = devicePages.length; page < this.places.pages; page += 1) {
      stores.ask(() => {
        const core = stores.core!;
        devicePages.push(checked(core, core.hold()));
      });
      if (stores.isLost) continue; // The next device gets all pages.
      try {
        this.clear(page);
      } catch (error) {
        stores.release(devicePages.pop()!);
        throw error;
      }
    }
  }

  /** Words of a device page. */
  wordsOf(page: number): number {
    return this.places.blocksOf(page) * this.vectors.blockWords;
  }

  /** Empties a device page, which may be new on its device. Throws where there is no room. */
  clear(page: number): void {
    this.stores.ask(() => {
      const core = this.stores.core!;
      checked(core, core.clear(this.devicePages[page], this.wordsOf(page)));
    });
  }

  /** Lets calls read device pages that were made anew. */
  heal(pages: readonly number[]): void {
    const { core } = this.stores;
    if (core === undefined) return;
    this.stores.ask(() => {
      for (const page of pages) core.heal(this.devicePages[page]);
    });
  }

  /** Refuses the searches that wait: they would find less than there was when they were called. */
  refuseReaders(): void {
    const { core } = this.stores;
    if (core === undefined) return;
    this.stores.ask(() => {
      for (const page of this.devicePages) core.refuse_readers(page);
    });
  }

  /** The device pages whose readers the core refuses. */
  lostPages(): number[] {
    const { core } = this.stores;
    const all = this.devicePages.map((_, page) => page);
    return all.filter((page) => core?.is_lost(this.devicePages[page]));
  }

  /** No vector is on the device alone any more. */
  dropDevicePages(): void {
    this.retire(this.devicePages.splice(0));
    this.places.clear();
  }

  /** Has all vectors of the page uploaded anew, to other tensors: pending searches read the old ones. */
  renew(): void {
    this.retire(this.numbers.splice(0));
    this.vectors.forget();
  }

  /** The core's number of insertions, or of removals. */
  insertion(hasSource: boolean): number {
    const { dtype, metric, dim } = this.vectors.kind;
    return this.stores.structure("insertion", [
      TYPES.indexOf(dtype),
      metric === "cosine" ? 1 : 0,
      dim,
      hasSource ? 1 : 0,
    ]);
  }

  /** The structure and the pages of a search of the index as it is. */
  sizes(count: number, mask: number): Sizes {
    const { kind, quads, blocks, pageBlocks } = this.vectors;
    const { blocks: deviceBlocks, first } = this.places;
    const structure = this.stores.structure("searching", [
      TYPES.indexOf(kind.dtype),
      kind.metric === "l2" ? 1 : 0,
      count,
      quads,
      blocks,
      pageBlocks,
      mask,
      deviceBlocks,
      deviceBlocks > 0 ? first : 0,
    ]);
    const own = this.numbers.slice(0, Math.ceil(blocks / pageBlocks));
    let pages = 0;
    for (let left = deviceBlocks; left > 0; pages += 1) {
      left -= this.places.blocksOf(pages);
    }
    return { structure, pages: [...own, ...this.devicePages.slice(0, pages)] };
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
    this.retire(this.numbers.splice(0));
    this.retire(this.devicePages.splice(0));
  }

  /** A call that names pages of the index was answered. */
  unpin(): void {
    this.pins -= 1;
    if (this.pins > 0) return;
    if (this.dropped) this.drop();
    this.retire([]);
  }

  /** Frees pages once no pending call names these. */
  private retire(numbers: readonly number[]): void {
    this.retired.push(...numbers);
    if (this.pins > 0) return;
    for (const number of this.retired.splice(0)) this.stores.release(number);
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

  /** The core's number for searches or insertions of these sizes. */
  structure(kind: "searching" | "insertion", sizes: readonly number[]): number {
    const key = `${kind} ${sizes.join()}`;
    let id = this.structures.get(key);
    if (id === undefined) {
      id = checked(this.core!, this.core![kind](Uint32Array.from(sizes)));
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
      store.restore();
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
