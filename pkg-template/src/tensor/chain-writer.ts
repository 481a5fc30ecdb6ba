// Brings chains to the core: the number of the structure, and the call's operands.
//
// At the cursor lie the data of each input that comes with the call, then the numbers,
// then the core's names of resident tensors; each block from a multiple of four words,
// and none where there is nothing. Where tensors take the results, the offset in these
// follows the names at once. What is asked, and how it is answered, is said in
// `chain-operands.ts`.

import type { Core } from "../core/core.js";
import { type Arena } from "../memory/arena.js";
import { aligned } from "../memory/arrays.js";
import { ChainEncoder, type Targets } from "./chain-encoder.js";
import { FLOATS } from "./codes.js";
import type { ChainOperands } from "./chain-operands.js";
import { ChainStructures, type Known } from "./chain-structures.js";
import type { Node } from "./node.js";
import type { ResidentTensors } from "./resident-tensors.js";
import { disposedError, NOWHERE, type TensorStorage } from "./storage.js";

/** Writes the chains of one session. */
export class ChainWriter {
  private readonly encoder = new ChainEncoder();
  private structures!: ChainStructures;
  /** The operands whose chain the encoder holds. */
  private encoded: ChainOperands | undefined;

  constructor(readonly residents: ResidentTensors) {}

  /** The session is open. */
  open(core: Core): void {
    this.structures = new ChainStructures(core);
  }

  /** Encodes a chain that is new. Throws if it reads a tensor that was disposed of. */
  encode(about: string, operands: ChainOperands): void {
    const { encoder } = this;
    encoder.encode(about, operands.asked, operands.targets);
    for (let i = 0; i < encoder.inputs; i += 1) {
      const storage = encoder.storage(i);
      if (storage.dropped) throw disposedError(about, storage.label);
    }
    this.encoded = operands;
  }

  /** Pins all inputs of the encoded chain, until it can be written. */
  keep(operands: ChainOperands): void {
    const { encoder } = this;
    for (let i = 0; i < encoder.inputs; i += 1) {
      operands.pinStorage(encoder.storage(i));
    }
    this.clear();
  }

  /** Writes the operands of a chain at the cursor; returns the number of its structure. */
  write(operands: ChainOperands, arena: Arena): number {
    const { encoder } = this;
    // A chain that waited may read tensors that were disposed of since: these are pinned.
    if (this.encoded !== operands) {
      const { method, asked, targets } = operands;
      encoder.encode(method.name, asked, targets);
    }
    try {
      const resident = this.makeInputsResident(operands);
      const known = this.structures.find(encoder, operands.asked);
      this.writeInputs(arena, resident, operands.targets);
      operands.written(known.roots);
      return known.number;
    } finally {
      this.clear();
    }
  }

  // Tensors become resident before anything is written, because uploads may move the cursor.
  private makeInputsResident(operands: ChainOperands): number {
    const { encoder } = this;
    const isPart = operands.targets?.offset !== undefined;
    let resident = 0;
    for (let i = 0; i < encoder.inputs; i += 1) {
      const node = encoder.inputNodes[i]!;
      const storage = node.storage!;
      if (storage.failure !== undefined) {
        // A lost tensor is there again once all of it is written.
        if (i < encoder.operands || isPart) throw storage.failure;
        storage.expect();
      }
      if (!storage.isResident) continue;
      if (storage.number === NOWHERE) {
        this.residents.makeResident(node, this.conflicting(storage, operands));
      }
      operands.pinStorage(storage);
      resident += 1;
    }
    return resident;
  }

  // The nodes that an input is to share no buffer with: what is stored beside what it reads
  // takes a copy.
  private conflicting(
    { isTarget }: TensorStorage,
    { targets }: ChainOperands,
  ): readonly (Node | undefined)[] {
    const { inputNodes, inputs } = this.encoder;
    if (targets === undefined) return [];
    return isTarget ? inputNodes.slice(0, inputs) : targets.nodes;
  }

  private writeInputs(
    arena: Arena,
    resident: number,
    targets: Targets | undefined,
  ): void {
    const { encoder } = this;
    let data = 0;
    for (let i = 0; i < encoder.inputs; i += 1) {
      const storage = encoder.storage(i);
      if (!storage.isResident) data += aligned(storage.words);
    }
    const numbers = aligned(encoder.numbers);
    const names = aligned(targets === undefined ? resident : resident + 1);
    let at = arena.reserve(data + numbers + names);
    let name = at + data + numbers;
    for (let i = 0; i < encoder.numbers; i += 1) {
      const { dtype, value } = encoder.constants[i];
      if (dtype === FLOATS) arena.putNumber(value, at + data + i);
      else arena.words[at + data + i] = value;
    }
    for (let i = 0; i < encoder.inputs; i += 1) {
      const storage = encoder.storage(i);
      if (storage.isResident) arena.putTensor(storage.number, name++);
      else {
        arena.putData(storage.data!, at);
        at += aligned(storage.words);
        // From its next call on the data is resident.
        storage.uses += 1;
      }
    }
    if (targets !== undefined) arena.words[name] = targets.offset ?? 0;
  }

  /** The structure of a chain whose inputs are where they are going to be read. */
  structureOf(op: string, root: Node): Known {
    const { encoder } = this;
    try {
      encoder.encode(op, [root], undefined);
      return this.structures.find(encoder, [root]);
    } finally {
      this.clear();
    }
  }

  private clear(): void {
    this.encoded = undefined;
    this.encoder.clear();
  }
}
