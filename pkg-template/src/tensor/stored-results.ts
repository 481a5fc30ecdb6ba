// The tensors that a call stores its results in, from the call to its answer.
//
// What a call computes is known to its operands, `stored-operands.ts` and others.

import { isRepeatable, type Recomputation } from "./recomputation.js";
import type { ResidentTensors } from "./resident-tensors.js";
import { lostError, type TensorStorage, UNKNOWN } from "./storage.js";

/** Whether tensors are made for a call, made anew by it after a loss, or given by its caller. */
export type Targeting = "made" | "restored" | "given";

/** The tensors that one call stores results in. */
export class StoredResults {
  /** Snapshots that were begun of the target when the call was made. */
  private begun = 0;
  private isPending = false;

  constructor(
    private readonly residents: ResidentTensors,
    private readonly storages: readonly TensorStorage[],
    private readonly targeting: Targeting,
  ) {}

  /** The call is made. */
  called(): void {
    for (const storage of this.storages) {
      storage.isTarget = true;
      if (storage.largest !== undefined) storage.largest = UNKNOWN;
    }
    this.begun = this.storages[0]?.snapshots?.begun ?? 0;
  }

  /** The core has the call. */
  entered(): void {
    this.isPending = true;
    for (const storage of this.storages) storage.writes += 1;
  }

  /** The call was submitted; how each result is computed again, where that is remembered. */
  stored(records: readonly (Recomputation | undefined)[]): void {
    this.settle();
    this.storages.forEach((storage, i) => {
      const record = records[i];
      const isKept = record !== undefined && isRepeatable(record);
      storage.store(isKept && !storage.dropped ? record : undefined);
      if (this.targeting !== "restored") {
        this.residents.written(storage, this.begun);
      }
    });
  }

  /** The call is rejected, and wrote nothing: what fails later is told by readings. */
  rejected(reason: unknown): void {
    this.settle();
    for (const storage of this.storages) this.abandon(storage, reason);
  }

  private settle(): void {
    if (!this.isPending) return;
    this.isPending = false;
    for (const storage of this.storages) storage.writes -= 1;
  }

  private abandon(storage: TensorStorage, reason: unknown): void {
    const { targeting } = this;
    if (targeting === "made") return this.residents.drop(storage);
    // Readings behind another call that writes the tensor wait for what that call stores.
    if (storage.writes > 0) return;
    if (targeting === "restored") storage.failure = lostError(storage, reason);
    else storage.abandon(reason);
  }
}
