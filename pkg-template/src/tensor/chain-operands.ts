// The operands of a call that computes a chain: the results that are asked for, and what of
// the chain must stay until the call is answered.
//
// Where results go is said by the kinds of such operands, `read-operands.ts` and
// `stored-operands.ts`. How a chain gets to the core is in `chain-writer.ts`, its promise
// in `calls/call.ts`.

import type { CheckedOptions } from "../calls/call-options.js";
import { type CallMethod, Operands } from "../calls/operands.js";
import { type Arena } from "../memory/arena.js";
import type { Targets } from "./chain-encoder.js";
import type { ChainWriter } from "./chain-writer.js";
import type { Node } from "./node.js";
import type { TensorStorage } from "./storage.js";

/** What is known of a result without its node. */
export type Root = Pick<Node, "shape" | "dtype">;

/** A chain that one call computes. */
export abstract class ChainOperands extends Operands {
  readonly rows = 0;
  /** The tensors that take the results; undefined where the caller does. */
  readonly targets: Targets | undefined = undefined;
  /** Storages that the call needs: resident ones, and all of them while the session opens. */
  private pinned: TensorStorage[] | undefined = undefined;

  constructor(
    protected readonly writer: ChainWriter,
    method: CallMethod,
    /** The results that are asked for; nodes until the chain is written. */
    protected roots: readonly Root[],
  ) {
    super(method);
  }

  get isEmpty(): boolean {
    return this.asked.length === 0;
  }

  override check(about: string, _terms: CheckedOptions | undefined): void {
    this.prepare(about);
  }

  override copy(_about: string): void {
    this.writer.keep(this);
  }

  write(arena: Arena): number {
    return this.writer.write(this, arena);
  }

  override unpin(): void {
    if (this.pinned === undefined) return;
    for (const storage of this.pinned) this.writer.residents.unpin(storage);
  }

  /** The nodes that the core is asked for: those that hold anything. */
  get asked(): readonly Node[] {
    const roots = this.roots as readonly Node[];
    if (roots.length === 1 && roots[0].shape.count > 0) return roots;
    return roots.filter(({ shape }) => shape.count > 0);
  }

  /**
   * The core has the chain, and nodes can be collected from here on: a frame's calls
   * would otherwise keep many small objects alive together. `asked` are the results that
   * hold anything, which all calls of one structure share.
   */
  written(asked: readonly Root[]): void {
    const { roots } = this;
    this.roots =
      asked.length === roots.length
        ? asked
        : roots.map(({ shape, dtype }) => ({ shape, dtype }));
  }

  /** Throws unless the chain can be computed. */
  protected prepare(about: string): void {
    this.writer.encode(about, this);
  }

  /** Keeps a storage until {@link unpin}. Invariant: a pinned storage keeps its data and its number. */
  pinStorage(storage: TensorStorage): void {
    storage.pins += 1;
    if (this.pinned === undefined) this.pinned = [storage];
    else this.pinned.push(storage);
  }
}
