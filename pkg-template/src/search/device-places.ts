// Where vectors lie that came with tensors: places in device pages, which calls alone write.
//
// Device pages never move and never grow: each has twice the blocks of the one before, up to
// those of a full page. What lies at a place only the device knows. The twin is
// `src/ops/search/device_places.rs`.

import { BLOCK, rounded } from "./vectors.js";

/** The page of a vector, and the vector's place in this page. */
export interface Spot {
  readonly page: number;
  readonly place: number;
}

/** The places of one index. */
export class DevicePlaces {
  private readonly free: number[] = [];
  /** How many places were ever taken. */
  private end = 0;

  constructor(
    /** Blocks of the first page. */
    readonly first: number,
    /** Blocks of a full page. */
    private readonly most: number,
  ) {}

  /** Takes a place that no vector has. */
  take(): number {
    return this.free.pop() ?? this.end++;
  }

  /** A vector left its place. */
  give(place: number): void {
    this.free.push(place);
  }

  /** All vectors have left. */
  clear(): void {
    this.free.length = 0;
    this.end = 0;
  }

  /** Blocks of a page. */
  blocksOf(page: number): number {
    return Math.min(this.first * 2 ** page, this.most);
  }

  /** Where a place is. */
  locate(place: number): Spot {
    let left = place;
    let page = 0;
    while (left >= this.blocksOf(page) * BLOCK) {
      left -= this.blocksOf(page) * BLOCK;
      page += 1;
    }
    return { page, place: left };
  }

  /** Pages that hold all places taken so far. */
  get pages(): number {
    return this.end === 0 ? 0 : this.locate(this.end - 1).page + 1;
  }

  /** Blocks that a search looks through. */
  get blocks(): number {
    let all = 0;
    for (let page = this.pages - 1; page >= 0; page -= 1) {
      all += this.blocksOf(page);
    }
    return Math.min(rounded(Math.ceil(this.end / BLOCK)), all);
  }
}
