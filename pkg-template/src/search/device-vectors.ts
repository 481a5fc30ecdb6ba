// The vectors of an index that came with tensors: inserted and removed by calls, inserted again
// after a loss, and brought to the page by `download`.
//
// Where vectors lie is in `device-places.ts`, and what a call writes in `insert-operands.ts`.
// The page knows no element of these vectors.

import { FramebatchError } from "../checks/errors.js";
import type { Calls } from "../session/calls.js";
import { RESIDENT } from "../tensor/codes.js";
import { input, type Node } from "../tensor/node.js";
import { READ, ReadOperands } from "../tensor/read-operands.js";
import {
  isRepeatable,
  type Recording,
  recordingOf,
} from "../tensor/recomputation.js";
import { shapeOf } from "../tensor/shape.js";
import { TensorStorage, UNKNOWN } from "../tensor/storage.js";
import { compute } from "../tensor/stored-calls.js";
import { COMPUTE } from "../tensor/stored-operands.js";
import { InsertOperands, NOTHING, type Source } from "./insert-operands.js";
import type { IndexStore } from "./store.js";
import { BLOCK, HEADER, onDevice, placeOf } from "./vectors.js";

/** How often a download asks again for a page whose reading is refused. */
const MOST_REFUSALS = 8;

const LOST = "device-lost";

/** Vectors that came with one tensor, and how they are had again. */
interface Added {
  readonly first: number;
  readonly count: number;
  /** Vectors of these that were not removed. */
  left: number;
  /** Undefined where the tensor cannot be had again. */
  readonly record: Recording | undefined;
}

/** The vectors of one index that came with tensors. */
export class DeviceVectors {
  /** Ids of the vectors that went with a device. */
  readonly lost = new Set<number>();
  /** Vectors on the device. */
  count = 0;
  /** In the order of their ids. */
  private readonly added: Added[] = [];
  /** Places whose vectors are gone, though the call that was to clear these failed. */
  private readonly uncleared = new Set<number>();

  constructor(
    private readonly calls: Calls,
    private readonly store: IndexStore,
  ) {
    store.restore = () => this.restore();
  }

  /** Inserts the rows of a tensor, as many as there are ids; these follow each other. */
  add(node: Node, ids: Uint32Array): void {
    const { places, vectors } = this.store;
    for (const id of ids) {
      const place = places.take();
      this.uncleared.delete(place);
      vectors.slots.set(id, onDevice(place));
    }
    this.count += ids.length;
    const added = {
      first: ids[0],
      count: ids.length,
      left: ids.length,
      record: recordingOf(node),
    };
    this.added.push(added);
    this.insert(added, node, ids);
    // Calls that are only planned write nothing.
    if (this.calls.isRecording) this.takeOut(ids);
  }

  /** Removes vectors that came with tensors, in the order of calls. */
  remove(ids: readonly number[]): void {
    this.clearPlaces(this.takeOut(ids));
  }

  /** Takes vectors out of the index; the places that these leave. */
  private takeOut(ids: Iterable<number>): number[] {
    const { places, vectors } = this.store;
    return Array.from(ids, (id) => {
      const place = placeOf(vectors.slots.get(id)!);
      vectors.slots.delete(id);
      this.lost.delete(id);
      this.forget(id);
      places.give(place);
      return place;
    });
  }

  /** Throws where vectors are lost. */
  check(about: string): void {
    const { size } = this.lost;
    if (size === 0) return;
    throw new FramebatchError(
      "device-lost",
      `${about}: ${size} vectors of the index were lost with the device, and their tensors could not be had again; call index.remove(index.lost), and add these anew`,
    );
  }

  /** Makes pages anew that the core has given up, and calls again what failed to clear places. */
  mend(): void {
    if (this.store.isLost) return;
    const pages = this.store.lostPages();
    if (pages.length > 0) this.remake(pages);
    if (this.uncleared.size > 0) this.clearPlaces([...this.uncleared]);
  }

  /** Makes all pages anew, because another device took over. */
  restore(): void {
    const pages = this.store.devicePages.map((_, page) => page);
    if (pages.length === 0) return;
    this.uncleared.clear();
    this.remake(pages);
  }

  /** Makes pages anew, in front of the searches that wait. */
  private remake(pages: readonly number[]): void {
    let made: readonly number[] = [];
    this.calls.residents.restoreFirst(() => (made = this.rebuild(pages)));
    this.store.heal(made);
    // Searches to come are refused by `check`.
    if (this.lost.size > 0) this.store.refuseReaders();
  }

  /** Brings all vectors to the page. */
  async download(about: string): Promise<void> {
    this.mend();
    this.check(about);
    const { store } = this;
    const { pages } = store.places;
    for (let page = 0; page < pages && this.count > 0; page += 1) {
      await this.downloadPage(about, page);
    }
  }

  private async downloadPage(about: string, page: number): Promise<void> {
    const { store } = this;
    const { vectors } = store;
    store.makeDevicePages();
    const ids = this.idsOf(page);
    if (ids.length === 0) return;
    const words = await this.readAgain(about, page);
    this.check(about);
    const kept = ids.filter((id) => this.isAt(id, page));
    const scratch = new Uint32Array(1 + 4 * vectors.quads);
    const gone: number[] = [];
    try {
      for (const id of kept) {
        const place = placeOf(vectors.slots.get(id)!);
        const at = store.places.locate(place).place;
        const start = Math.floor(at / BLOCK) * vectors.blockWords;
        const lane = at % BLOCK;
        // A vector with what is no number has no id there: no search found it.
        if (words[start + BLOCK + lane] === id + 1) {
          scratch[0] = words[start + lane];
          for (let quad = 0; quad < vectors.quads; quad += 1) {
            const from = start + HEADER + 4 * (BLOCK * quad + lane);
            scratch.set(words.subarray(from, from + 4), 1 + 4 * quad);
          }
          vectors.put(id, scratch);
        } else vectors.slots.delete(id);
        this.forget(id);
        gone.push(place);
      }
    } finally {
      // Nobody may find a vector in both places, nor one that the page had no room for in none.
      for (const place of gone) store.places.give(place);
      if (this.count > 0) this.clearPlaces(gone);
      else {
        this.uncleared.clear();
        store.dropDevicePages();
      }
      store.renew();
    }
  }

  /**
   * Reads a page, and once more where a device went with a call in front that wrote the page: the
   * next device has the page again, unless vectors are lost.
   */
  private async readAgain(about: string, page: number): Promise<Uint32Array> {
    for (let left = MOST_REFUSALS; ; left -= 1) {
      try {
        return await this.read(page);
      } catch (error) {
        const isLost = (error as FramebatchError | undefined)?.code === LOST;
        if (!isLost || left === 0) throw error;
        this.mend();
        this.check(about);
      }
    }
  }

  private read(page: number): Promise<Uint32Array> {
    const { calls, store } = this;
    const words = store.wordsOf(page);
    const none = { memory: new Uint32Array(0), start: 0, words: 0 };
    const storage = new TensorStorage(
      none,
      words,
      RESIDENT,
      UNKNOWN,
      true,
      undefined,
    );
    storage.number = store.devicePages[page];
    storage.contents = "stored";
    const node = input(shapeOf("download", [words]), storage);
    store.pins += 1;
    const read = calls.take<Uint32Array>(
      new ReadOperands(calls.chains, READ, [node]),
      undefined,
    );
    return read.finally(() => store.unpin());
  }

  /**
   * Clears pages, and inserts again what lay there; the pages that there was room for. Vectors
   * that cannot be had again are lost.
   */
  private rebuild(pages: readonly number[]): readonly number[] {
    const { store, calls } = this;
    const roomy: number[] = [];
    for (const page of pages) {
      // Where a page finds no room its vectors are lost, and all others are not.
      try {
        store.clear(page);
        roomy.push(page);
      } catch {
        this.lose(this.idsOf(page));
      }
    }
    for (const added of this.added) {
      const ids: number[] = [];
      for (let id = added.first; id < added.first + added.count; id += 1) {
        if (roomy.some((page) => this.isAt(id, page))) ids.push(id);
      }
      if (ids.length === 0) continue;
      const { record } = added;
      if (record === undefined || !isRepeatable(record)) this.lose(ids);
      else if (calls.core !== undefined) this.insert(added, record.root, ids);
    }
    return roomy;
  }

  /** Makes the calls that write these vectors to their places, from a tensor that may have to be computed. */
  private insert({ first }: Added, node: Node, ids: Iterable<number>): void {
    const { calls } = this;
    const storage = node.storage;
    // The kernel of insertions reads tensors of the session, of 32-bit floats.
    const isThere = storage?.home === RESIDENT && storage.place === undefined;
    const own = isThere ? node : this.compute(node);
    const rows = [...ids].map((id) => ({ id, row: id - first }));
    const source = { node: own, residents: calls.residents };
    const groups = new Map<number, { words: number[]; ids: number[] }>();
    for (const { id, row } of rows) {
      const { slots } = this.store.vectors;
      const { page, place } = this.store.places.locate(placeOf(slots.get(id)!));
      let group = groups.get(page);
      if (group === undefined)
        groups.set(page, (group = { words: [], ids: [] }));
      group.words.push(row, place, id + 1);
      group.ids.push(id);
    }
    for (const [page, group] of groups) {
      this.call(page, group.words, source).catch(() => this.lose(group.ids));
    }
    // The calls keep what they need.
    if (own !== node) calls.residents.drop(own.storage!);
  }

  /** A tensor of what was recorded, for the insertions that are called next. */
  private compute(root: Node): Node {
    let own!: Node;
    const done = compute(this.calls, {
      method: COMPUTE,
      roots: [root],
      options: { keep: false },
      give: ([node]) => (own = node),
    });
    // The insertion fails where this does.
    done.catch(() => {});
    return own;
  }

  private clearPlaces(places: readonly number[]): void {
    const groups = new Map<number, { words: number[]; places: number[] }>();
    for (const place of places) {
      const { page, place: within } = this.store.places.locate(place);
      let group = groups.get(page);
      if (group === undefined)
        groups.set(page, (group = { words: [], places: [] }));
      group.words.push(NOTHING, within, 0);
      group.places.push(place);
      this.uncleared.delete(place);
    }
    for (const [page, group] of groups) {
      this.call(page, group.words, undefined).catch(() => {
        const taken = new Set(this.store.vectors.slots.values());
        for (const place of group.places) {
          if (!taken.has(onDevice(place))) this.uncleared.add(place);
        }
      });
    }
  }

  private call(
    page: number,
    words: readonly number[],
    source: Source | undefined,
  ): Promise<void> {
    const { store, calls } = this;
    return calls.take(
      new InsertOperands(store, page, words, source),
      undefined,
    );
  }

  /** Counts vectors as lost, as far as they are still there. */
  private lose(ids: readonly number[]): void {
    const { slots } = this.store.vectors;
    for (const id of ids) {
      const slot = slots.get(id);
      if (slot !== undefined && placeOf(slot) >= 0) this.lost.add(id);
    }
  }

  /** A vector is not on the device any more. */
  private forget(id: number): void {
    this.count -= 1;
    const { added } = this;
    let [from, to] = [0, added.length - 1];
    while (from < to) {
      const middle = Math.ceil((from + to) / 2);
      if (added[middle].first <= id) from = middle;
      else to = middle - 1;
    }
    added[from].left -= 1;
    if (added[from].left === 0) added.splice(from, 1);
  }

  private idsOf(page: number): number[] {
    const { slots } = this.store.vectors;
    return [...slots.keys()].filter((id) => this.isAt(id, page));
  }

  private isAt(id: number, page: number): boolean {
    const slot = this.store.vectors.slots.get(id);
    if (slot === undefined || placeOf(slot) < 0) return false;
    return this.store.places.locate(placeOf(slot)).page === page;
  }
}
