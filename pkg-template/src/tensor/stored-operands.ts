// The operands of a call whose results stay on the device, each in a tensor.
//
// A call that stores is answered when it was submitted, without words. The tensors that take
// results are chosen in `stored-calls.ts`; what becomes of these is in `stored-results.ts`.

import type { Answer } from "../calls/call.js";
import type { CheckedOptions } from "../calls/call-options.js";
import type { Arena } from "../memory/arena.js";
import type { Targets } from "./chain-encoder.js";
import { ChainOperands } from "./chain-operands.js";
import type { ChainWriter } from "./chain-writer.js";
import { input, type Node } from "./node.js";
import { type Recomputation, recordingOf } from "./recomputation.js";
import { StoredResults, type Targeting } from "./stored-results.js";

const METHOD = { gives: "float32", width: 1 } as const;

/** The method that gives a tensor of one result. */
export const COMPUTE = { ...METHOD, name: "compute", option: "keep" } as const;
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
  readonly targeting: Targeting;
  /** Whether results are computed again after a loss. */
  readonly isRemembered: boolean;
  /** What the call resolves to. */
  readonly answer: Answer;
}

/** The results that one call stores, and their tensors. */
export class StoredOperands extends ChainOperands {
  readonly elements = 0;
  override readonly targets: Targets;
  private readonly results: StoredResults;
  private readonly isRemembered: boolean;
  private readonly given: Answer;
  private records: readonly (Recomputation | undefined)[] = [];

  constructor(
    writer: ChainWriter,
    { method, roots, targets, targeting, isRemembered, answer }: StoredCall,
  ) {
    super(writer, method, roots);
    this.targets = targets;
    const storages = targets.nodes.map(({ storage }) => storage!);
    this.results = new StoredResults(writer.residents, storages, targeting);
    this.isRemembered = isRemembered;
    this.given = answer;
  }

  override check(about: string, terms: CheckedOptions | undefined): void {
    // Encoding tells which inputs are on the device.
    this.results.called();
    super.check(about, terms);
    if (!this.isRemembered) return;
    const { writer } = this;
    this.records = this.asked.map((root) => recomputationOf(writer, root));
  }

  override empty(): Answer {
    return this.given;
  }

  override write(arena: Arena): number {
    const structure = super.write(arena);
    this.results.entered();
    return structure;
  }

  override answer(): Answer {
    this.results.stored(this.records);
    return this.given;
  }

  override rejected(reason: unknown): void {
    this.results.rejected(reason);
  }
}

function recomputationOf(
  writer: ChainWriter,
  result: Node,
): Recomputation | undefined {
  const recording = recordingOf(result);
  if (recording === undefined) return undefined;
  const { root, operands, depth } = recording;
  const again: Recomputation["again"] = (target) =>
    new StoredOperands(writer, {
      method: COMPUTE,
      roots: [root],
      targets: {
        nodes: [input(root.shape, target, root.dtype)],
        offset: undefined,
      },
      targeting: "restored",
      isRemembered: true,
      answer: undefined,
    });
  return { operands, depth, again };
}
