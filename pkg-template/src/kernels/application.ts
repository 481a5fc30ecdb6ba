// A trace with arguments: what a call of a traced function or of a kernel gives.
//
// A tensor of it has no node as long as it is only read; where something else is done with it,
// the trace is recorded once more, with the arguments in the places of the parameters.

import { aligned } from "../memory/arrays.js";
import type { Arena } from "../memory/arena.js";
import type { ChainWriter } from "../tensor/chain-writer.js";
import { FLOATS, WITH_CALL } from "../tensor/codes.js";
import type { Deferred } from "../tensor/deferred.js";
import { input, constant, type Node } from "../tensor/node.js";
import { READ, ReadOperands } from "../tensor/read-operands.js";
import { disposedError, NOWHERE } from "../tensor/storage.js";
import type { TensorSession } from "../tensor/tensor-session.js";
import {
  type Argument,
  argumentNode,
  ArrayArgument,
  isAtHand,
} from "./arguments.js";
import type { Trace, TracedResult } from "./trace.js";

/** One result of a trace, for some arguments. */
export class Application implements Deferred {
  private made: Node | undefined = undefined;

  constructor(
    private readonly calls: TensorSession,
    private readonly trace: Trace,
    private readonly given: readonly Argument[],
    private readonly at: number,
  ) {}

  get root(): Node {
    return this.trace.results[this.at].root;
  }

  node(): Node {
    if (this.made !== undefined) return this.made;
    const nodes = this.given.map(argumentNode);
    return (this.made = this.trace.expanded(this.at, nodes));
  }

  reading(): ReadOperands {
    const { calls, trace, given, at } = this;
    if (!given.every(isAtHand)) {
      return new ReadOperands(calls.chains, READ, [this.node()]);
    }
    return new ApplicationOperands(calls.chains, trace, given, at);
  }
}

const NOTHING: readonly never[] = [];

/** The homes of the inputs of the call that is being written. */
const homes: number[] = [];

/**
 * The operands of a call that reads one result. Nothing is encoded: the structure is known from
 * the call before, and the arguments are all that is written.
 */
class ApplicationOperands extends ReadOperands {
  constructor(
    writer: ChainWriter,
    private readonly trace: Trace,
    /** Nothing once the call is written, so that its nodes can be collected. */
    private given: readonly Argument[],
    private readonly at: number,
  ) {
    super(writer, READ, [trace.results[at].root]);
  }

  override copy(): void {
    for (const input of this.trace.results[this.at].inputs) {
      const source = sourceOf(this.given, input);
      if (source instanceof ArrayArgument) continue;
      this.pinStorage(source.storage!);
    }
  }

  override write(arena: Arena): number {
    const { given } = this;
    const result = this.trace.results[this.at];
    const { inputs, numbers } = result;
    const words = this.place(result);
    const known = result.structure(homes) ?? this.ask(result);
    const behind = aligned(numbers.length);
    const data = words.data;
    let at = arena.reserve(data + behind + aligned(words.names));
    for (let i = 0; i < numbers.length; i += 1) {
      const { dtype, value } = sourceOf(given, numbers[i]) as Node;
      if (dtype === FLOATS) arena.putNumber(value, at + data + i);
      else arena.words[at + data + i] = value;
    }
    let name = at + data + behind;
    for (let i = 0; i < inputs.length; i += 1) {
      const source = sourceOf(given, inputs[i]);
      if (homes[i] !== WITH_CALL) {
        arena.putTensor((source as Node).storage!.number, name++);
        continue;
      }
      const span = dataOf(source);
      arena.putData(span, at);
      at += aligned(span.words);
    }
    this.written(known.roots);
    this.given = NOTHING;
    return known.number;
  }

  protected override prepare(about: string): void {
    const { given } = this;
    const { inputs } = this.trace.results[this.at];
    for (let i = 0; i < inputs.length; i += 1) {
      const source = sourceOf(given, inputs[i]);
      if (source instanceof ArrayArgument) continue;
      const { dropped, label } = source.storage!;
      if (dropped) throw disposedError(about, label);
    }
  }

  // Tensors become resident before anything is written, because uploads may move the cursor.
  private place({ inputs }: TracedResult): { data: number; names: number } {
    const { given, writer } = this;
    let data = 0;
    let names = 0;
    homes.length = inputs.length;
    for (let i = 0; i < inputs.length; i += 1) {
      const source = sourceOf(given, inputs[i]);
      homes[i] = WITH_CALL;
      if (source instanceof ArrayArgument) {
        data += aligned(source.data.words);
        continue;
      }
      const storage = source.storage!;
      if (storage.failure !== undefined) throw storage.failure;
      if (!storage.isResident) {
        data += aligned(storage.words);
        continue;
      }
      if (storage.number === NOWHERE) writer.residents.makeResident(source);
      this.pinStorage(storage);
      homes[i] = storage.home;
      names += 1;
    }
    return { data, names };
  }

  private ask(result: TracedResult): ReturnType<ChainWriter["structureOf"]> {
    // Each argument is an input of its own, though two may be one tensor.
    const nodes = this.given.map((argument) => {
      const { storage, shape, value, dtype } = argumentNode(argument);
      return storage === undefined
        ? constant(value, dtype)
        : input(shape, storage, dtype);
    });
    const root = this.trace.expanded(this.at, nodes);
    const known = this.writer.structureOf(READ.name, root);
    result.keep(homes, known);
    return known;
  }
}

function sourceOf(given: readonly Argument[], source: number | Node): Argument {
  return typeof source === "number" ? given[source] : source;
}

function dataOf(source: Argument): ArrayArgument["data"] {
  if (source instanceof ArrayArgument) return source.data;
  const storage = source.storage!;
  // From its next call on the data is resident.
  storage.uses += 1;
  return storage.data!;
}
