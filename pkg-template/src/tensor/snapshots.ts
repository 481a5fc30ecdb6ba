// The snapshots of one tensor that calls write: which of them is due, what the newest one holds,
// and how many writes it lacks.
//
// A record without a session: snapshots are read in `snapshot-reading.ts`, and a lost tensor is
// filled from one in `resident-tensors.ts`.

import type { Span } from "../memory/arrays.js";

/** What is kept of one tensor. Its size does not grow with the number of writes. */
export class Snapshots {
  /** What the newest finished snapshot holds; before the first, what the tensor was made with. */
  data: Span | undefined;
  /** How many were begun. A call remembers the number, which tells the snapshots that lack its write. */
  begun = 0;
  /** The number of the newest finished snapshot. */
  private finished = 0;
  /** Acknowledged writes that the newest finished snapshot lacks. */
  private newer = 0;
  /** Acknowledged writes that the last snapshot which was begun lacks. */
  private later = 0;
  /** Acknowledged writes since a snapshot was begun. */
  private count = 0;
  private isUnderWay = false;

  constructor(
    /** Writes from one snapshot to the next. */
    private readonly every: number,
  ) {}

  /**
   * A write was acknowledged, of a call made when so many snapshots had been begun. Whether a
   * snapshot is to be taken, which is under way from here on.
   */
  note(begun: number): boolean {
    // Acknowledgments may come behind the answer of a snapshot that holds their writes.
    if (begun >= this.finished) this.newer += 1;
    if (begun === this.begun) this.later += 1;
    this.count += 1;
    if (this.isUnderWay || this.count < this.every) return false;
    this.isUnderWay = true;
    return true;
  }

  /** The reading of a snapshot is about to be called. */
  begin(): void {
    this.begun += 1;
    this.later = 0;
    this.count = 0;
  }

  /** The snapshot under way is read. */
  finish(memory: Span["memory"]): void {
    this.data = { memory, start: 0, words: memory.length };
    this.finished = this.begun;
    this.newer = this.later;
    this.isUnderWay = false;
  }

  /** The snapshot under way failed: the next one is due after as many writes as ever. */
  skip(): void {
    this.isUnderWay = false;
  }

  /** The tensor holds the newest snapshot again: how many acknowledged writes are gone. */
  revert(): number {
    const { newer } = this;
    this.newer = 0;
    this.later = 0;
    return newer;
  }
}
