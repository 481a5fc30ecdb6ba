// Brings readings to the core: the chain's number, and what the call takes along.
//
// At the cursor lie the data of each input that comes with the call, then the numbers,
// then the core's names of resident tensors; each block from a multiple of four words,
// and none where there is nothing. Promises and tickets are the matter of `calls.ts`.

import { aligned, type Arena } from "../arena.js";
import type { Core } from "../core.js";
import { Encoder } from "./encode.js";
import { disposedError, type Leaf } from "./leaf.js";
import type { Reading } from "./reading.js";
import type { Residents } from "./residents.js";
import { ChainStructures } from "./structures.js";

/** Enters the readings of one session. */
export class Reader {
  private readonly encoder = new Encoder();
  private structures!: ChainStructures;
  private arena!: Arena;

  constructor(private readonly residents: Residents) {}

  /** The session is open. */
  open(core: Core, arena: Arena): void {
    this.structures = new ChainStructures(core);
    this.arena = arena;
  }

  /** Encodes a reading that is new. Throws if it names what was disposed of. */
  begin(about: string, { asked }: Reading): void {
    const { encoder } = this;
    encoder.encode(about, asked);
    for (let i = 0; i < encoder.inputs; i += 1) {
      const leaf = encoder.leaf(i);
      if (leaf.dropped) throw disposedError(about, leaf.label);
    }
  }

  /** Keeps what the reading just begun needs, until it can be entered. */
  keep(reading: Reading): void {
    const { encoder } = this;
    for (let i = 0; i < encoder.inputs; i += 1) pin(reading, encoder.leaf(i));
    encoder.clear();
  }

  /** Takes up a reading that was kept. What was disposed of meanwhile is still there. */
  resume(about: string, { asked }: Reading): void {
    this.encoder.encode(about, asked);
  }

  /** Lays what the encoded reading takes along at the cursor; returns its structure. */
  lay(reading: Reading): number {
    try {
      const resident = this.settleInputs(reading);
      const known = this.structures.find(this.encoder, reading.asked);
      this.write(resident);
      reading.entered(known.roots);
      return known.number;
    } finally {
      this.encoder.clear();
    }
  }

  // Before anything is written: what becomes resident may move the cursor's memory.
  private settleInputs(reading: Reading): number {
    const { encoder } = this;
    let resident = 0;
    for (let i = 0; i < encoder.inputs; i += 1) {
      const node = encoder.leaves[i]!;
      const leaf = node.leaf!;
      if (leaf.failure !== undefined) throw leaf.failure;
      if (!leaf.isResident) continue;
      this.residents.settle(node);
      pin(reading, leaf);
      resident += 1;
    }
    return resident;
  }

  private write(resident: number): void {
    const { encoder, arena } = this;
    let data = 0;
    for (let i = 0; i < encoder.inputs; i += 1) {
      const leaf = encoder.leaf(i);
      if (!leaf.isResident) data += aligned(leaf.words);
    }
    const numbers = aligned(encoder.numbers);
    let at = arena.room(data + numbers + aligned(resident));
    let name = at + data + numbers;
    arena.putNumbers(encoder.values, encoder.numbers, at + data);
    for (let i = 0; i < encoder.inputs; i += 1) {
      const leaf = encoder.leaf(i);
      if (leaf.isResident) arena.words[name++] = leaf.number;
      else {
        arena.putData(leaf.data!, at);
        at += aligned(leaf.words);
        // From its next call on it is resident.
        leaf.uses += 1;
      }
    }
  }
}

// Invariant: a pinned leaf keeps its data and its place on the device.
function pin(reading: Reading, leaf: Leaf): void {
  leaf.pins += 1;
  if (reading.pinned === undefined) reading.pinned = [leaf];
  else reading.pinned.push(leaf);
}
