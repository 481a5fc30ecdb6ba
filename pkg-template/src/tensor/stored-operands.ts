// The operands of a call whose results stay on the device, each in a tensor.
//
// A call that stores is answered when it was submitted, without words. The tensors that take
// results are chosen in `stored-calls.ts`.

import type { Answer } from "../calls/call.js";
import type { CheckedOptions } from "../calls/call-options.js";
import type { Arena } from "../memory/arena.js";
import type { Targets } from "./chain-encoder.js";
import { ChainOperands } from "./chain-operands.js";
import type { ChainWriter } from "./chain-writer.js";
import type { Node } from "./node.js";
import {
  isRepeatable,
  type Recomputation,
  recomputationOf,
} from "./recomputation.js";
import { lostError, type TensorStorage, UNKNOWN } from "./storage.js";

const METHOD = { gives: "float32", width: 1 } as const;

/** The method that gives a tensor of one result. */
export const COMPUTE = { ...METHOD, name: "compute", option: "keep" } as const;
/** The same after a loss, of a tensor that is there. */
export const RECOMPUTE = { ...COMPUTE } as const;
/** The method that gives tensors of several results. */
export const COMPUTE_ALL = { ...COMPUTE, name: "computeAll" } as const;
/** The method that stores a result in a tensor that is there. */
export const COMPUTE_INTO = {
  ...METHOD,
  name: "computeInto",
  option: "target",
} as const;
/** The method that stores data in a tensor that is there. */
export const WRITE = { ...COMPUTE_INTO, name: "write" } as const;

/** A call that stores results. */
export interface StoredCall {
  readonly method:
    typeof COMPUTE | typeof COMPUTE_ALL | typeof COMPUTE_INTO | typeof WRITE;
  /** The results, each of which holds something. */
  readonly roots: readonly Node[];
  readonly targets: Targets;
  /** Whether results are computed again after a loss. */
  readonly isRemembered: boolean;
  /** What the call resolves to. */
  readonly answer: Answer;
}

/** The results that one call stores, and their tensors. */
export class StoredOperands extends ChainOperands {
  readonly elements = 0;
  override readonly targets: Targets;
  private readonly storages: readonly TensorStorage[];
  private readonly isRemembered: boolean;
  private readonly given: Answer;
  /** Snapshots that were begun of the target when the call was made. */
  private begun = 0;
  private records: readonly (Recomputation | undefined)[] = [];
  private isPending = false;

  constructor(
    writer: ChainWriter,
    { method, roots, targets, isRemembered, answer }: StoredCall,
  ) {
    super(writer, method, roots);
    this.targets = targets;
    this.storages = targets.nodes.map(({ storage }) => storage!);
    this.isRemembered = isRemembered;
    this.given = answer;
  }

  override check(about: string, terms: CheckedOptions | undefined): void {
    // Encoding tells which inputs are on the device.
    for (const storage of this.storages) {
      storage.isTarget = true;
      if (storage.largest !== undefined) storage.largest = UNKNOWN;
    }
    this.begun = this.storages[0]?.snapshots?.begun ?? 0;
    super.check(about, terms);
    if (this.isRemembered) this.records = this.asked.map(recomputationOf);
  }

  override empty(): Answer {
    return this.given;
  }

  override write(arena: Arena): number {
    const structure = super.write(arena);
    this.isPending = true;
    for (const storage of this.storages) storage.writes += 1;
    return structure;
  }

  override answer(): Answer {
    this.settle();
    this.storages.forEach((storage, i) => {
      const record = this.records[i];
      const isKept = record !== undefined && isRepeatable(record);
      storage.store(isKept && !storage.dropped ? record : undefined);
      if (this.method !== RECOMPUTE) {
        this.writer.residents.written(storage, this.begun);
      }
    });
    return this.given;
  }

  // A call that is rejected wrote nothing: what fails later is told by readings.
  override rejected(reason: unknown): void {
    this.settle();
    for (const storage of this.storages) this.abandon(storage, reason);
  }

  private settle(): void {
    if (!this.isPending) return;
    this.isPending = false;
    for (const storage of this.storages) storage.writes -= 1;
  }

  private abandon(storage: TensorStorage, reason: unknown): void {
    if (this.method === COMPUTE || this.method === COMPUTE_ALL) {
      return this.writer.residents.drop(storage);
    }
    // Readings behind another call that writes the tensor wait for what that call stores.
    if (storage.writes > 0) return;
    if (this.method === RECOMPUTE) storage.failure = lostError(storage, reason);
    else storage.abandon(reason);
  }
}
