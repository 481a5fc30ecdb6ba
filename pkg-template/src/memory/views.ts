// Memory that may grow, seen as words, floats and bytes.
//
// Views are made when they are asked for, and made anew when the memory has grown. What
// lies where is not known here.

/** Memory whose buffer may be replaced: WebAssembly memory gets another one when it grows. */
export interface Memory {
  readonly buffer: ArrayBuffer;
}

const NO_WORDS = new Uint32Array(0);
const NO_FLOATS = new Float32Array(0);
const NO_BYTES = new Uint8Array(0);

/**
 * Memory as words, floats and bytes. A view without a length is made anew: growing memory
 * detaches its buffer, and views of a detached buffer are empty.
 */
export class Views {
  private asWords = NO_WORDS;
  private asFloats = NO_FLOATS;
  private asBytes = NO_BYTES;

  constructor(private readonly memory: Memory) {}

  get words(): Uint32Array {
    if (this.asWords.length === 0) {
      this.asWords = new Uint32Array(this.memory.buffer);
    }
    return this.asWords;
  }

  get floats(): Float32Array {
    if (this.asFloats.length === 0) {
      this.asFloats = new Float32Array(this.memory.buffer);
    }
    return this.asFloats;
  }

  get bytes(): Uint8Array {
    if (this.asBytes.length === 0) {
      this.asBytes = new Uint8Array(this.memory.buffer);
    }
    return this.asBytes;
  }
}
